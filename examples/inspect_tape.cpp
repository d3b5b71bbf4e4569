// inspect_tape: what a tape keeps for the way back. The same causal linear attention runs twice: as linnet's own op,
// and composed from elementary ops, one step of time after the other, where the tape keeps every state S_i.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>

#include "linnet/core/atomic_file.h"
#include "linnet/linnet.h"
#include "support/device.h"
#include "support/program.h"
#include "support/progress.h"

using namespace linnet;

namespace {

struct Sizes {
  int64_t length = 32, heads = 2, dim = 32, value_dim = 32;
};

/// q, k (1, time, heads, D), v (1, time, heads, M), as everywhere in linnet.
Variable own_op(const Variable& q, const Variable& k, const Variable& v) {
  return linear_attention(q, k, v, {.causal = true});
}

/// S_i = S_{i-1} + b_i v_i^T, z_i = z_{i-1} + b_i, o_i = S_i^T a_i / (z_i . a_i), with a = phi(q), b = phi(k).
Variable composed(const Variable& q, const Variable& k, const Variable& v) {
  const auto heads_first = [](const Variable& x) {  // (heads, time, dim)
    return permute(reshape(x, {x.size(1), x.size(2), x.size(3)}), {1, 0, 2});
  };
  const Variable a = heads_first(elu1(q)), b = heads_first(elu1(k)), values = heads_first(v);
  Variable s, z;
  std::vector<Variable> outputs;
  for (int64_t i = 0; i < q.size(1); ++i) {
    const Variable ai = slice(a, 1, i, i + 1), bi = slice(b, 1, i, i + 1), vi = slice(values, 1, i, i + 1);
    const Variable product = matmul(bi, vi, true);  // (heads, D, M)
    s = i == 0 ? product : s + product;
    z = i == 0 ? bi : z + bi;
    outputs.push_back(matmul(ai, s) / sum(ai * z, {-1}, true));
  }
  return reshape(permute(concat(outputs, 1), {1, 0, 2}), v.shape());
}

struct Run {
  TapeReport report;
  Tensor out, dq, dk, dv;
};

Run run(const std::function<Variable(const Variable&, const Variable&, const Variable&)>& attention, const Tensor& q,
        const Tensor& k, const Tensor& v, const Tensor& seed) {
  const Variable ql = Variable::leaf(q, "q"), kl = Variable::leaf(k, "k"), vl = Variable::leaf(v, "v");
  Tape tape;
  const Variable out = attention(ql, kl, vl);
  tape.backward(out, seed);
  return {tape.report(), out.value(), ql.grad(), kl.grad(), vl.grad()};
}

struct Sum {
  int64_t count = 0, bytes = 0;
  double forward_ms = 0, backward_ms = 0;
};

std::map<std::string, Sum> by_op(const TapeReport& report) {
  std::map<std::string, Sum> sums;
  for (const TapeRow& row : report.rows) {
    for (Sum* sum : {&sums[row.op], &sums["(all)"]}) {
      ++sum->count;
      sum->bytes += row.bytes_kept;
      sum->forward_ms += row.forward_ms;
      sum->backward_ms += row.backward_ms;
    }
  }
  return sums;
}

void print_cells(const std::map<std::string, Sum>& sums, const std::string& op) {
  const auto found = sums.find(op);
  if (found == sums.end()) {
    std::printf(" |%6s %13s %11s %11s", "", "", "", "");
  } else {
    const Sum& sum = found->second;
    std::printf(" |%6s %13s %11.3f %11.3f", example::with_commas(sum.count).c_str(),
                example::with_commas(sum.bytes).c_str(), sum.forward_ms, sum.backward_ms);
  }
}

void print_side_by_side(const Run& left, const Run& right) {
  const auto a = by_op(left.report), b = by_op(right.report);
  std::map<std::string, int> ops;
  for (const auto& [op, sum] : a) ops[op];
  for (const auto& [op, sum] : b) ops[op];
  std::printf("%-17s |%44s |%44s\n", "", "the op linear_attention          ", "composed, every S_i kept         ");
  std::printf("%-17s", "recorded op");
  for (int i = 0; i < 2; ++i) std::printf(" |%6s %13s %11s %11s", "ops", "bytes kept", "forward ms", "backward ms");
  std::printf("\n");
  ops.erase("(all)");
  for (const auto& [op, unused] : ops) {
    std::printf("%-17s", op.c_str());
    print_cells(a, op);
    print_cells(b, op);
    std::printf("\n");
  }
  std::printf("%-17s", "all");
  print_cells(a, "(all)");
  print_cells(b, "(all)");
  std::printf("\n\n");
}

/// max |a - b| / max(1, max |b|); throws where that is above 1e-5.
double check_equal(const char* what, const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  double difference = 0, largest = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(static_cast<double>(x[i]) - y[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
    largest = std::max(largest, std::abs(static_cast<double>(y[i])));
  }
  LINNET_CHECK(std::isfinite(difference) && difference <= 1e-5 * largest, "the two forms' ", what, " differ by ",
               difference);
  return difference / largest;
}

int inspect(const Sizes& n, const std::string& folder) {
  for (const auto& [flag, size] :
       {std::pair("--length", n.length), {"--heads", n.heads}, {"--dim", n.dim}, {"--value-dim", n.value_dim}}) {
    LINNET_CHECK(size >= 1, flag, " ", size, ": must be at least 1");
  }
  manual_seed(1);
  const Tensor q = Tensor::normal({1, n.length, n.heads, n.dim}), k = Tensor::normal({1, n.length, n.heads, n.dim});
  const Tensor v = Tensor::normal({1, n.length, n.heads, n.value_dim}), seed = Tensor::normal(v.shape());
  const Run left = run(own_op, q, k, v, seed), right = run(composed, q, k, v, seed);

  std::printf("Causal linear attention, N = %lld steps, %lld heads, D = %lld, M = %lld, f32\n\n",
              static_cast<long long>(n.length), static_cast<long long>(n.heads), static_cast<long long>(n.dim),
              static_cast<long long>(n.value_dim));
  print_side_by_side(left, right);
  const auto floats = [&](const Run& r) { return example::with_commas(r.report.bytes_kept() / 4 / n.heads); };
  std::cout << "Kept for the way back, floats a head:\n  the op    " << floats(left)
            << ", and N (2D + 2M + 1) = " << example::with_commas(n.length * (2 * n.dim + 2 * n.value_dim + 1))
            << ": q, k, v, o and the denominators\n"
            << "  composed  " << floats(right)
            << ", of which N D M = " << example::with_commas(n.length * n.dim * n.value_dim) << " are the states S_i\n";

  std::cout << "Agreement, relative to the largest value: output " << check_equal("outputs", left.out, right.out)
            << ", dq " << check_equal("dq", left.dq, right.dq) << ", dk " << check_equal("dk", left.dk, right.dk)
            << ", dv " << check_equal("dv", left.dv, right.dv) << "\n";
  const std::string names[] = {folder + "/tape_own_op.dot", folder + "/tape_composed.dot"};
  linnet::write_file(names[0], left.report.dot());
  linnet::write_file(names[1], right.report.dot());
  std::cout << "Graphs: " << names[0] << " and " << names[1] << " (dot -Tsvg FILE > FILE.svg; --length 4 fits a page)"
            << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows what the tape keeps: linear attention as one op, and composed from elementary ops.",
               "inspect_tape");
  Sizes sizes;
  std::string folder = ".";
  example::add_integer(app, "--length", sizes.length, "steps of time (default 32)");
  example::add_integer(app, "--heads", sizes.heads, "heads (default 2)");
  example::add_integer(app, "--dim", sizes.dim, "D, the size of queries and keys (default 32)");
  example::add_integer(app, "--value-dim", sizes.value_dim, "M, the size of values (default 32)");
  app.add_option("--out", folder, "an existing folder for the two graphs (default: this one)");
  std::string device;
  example::add_device(app, device);
  return example::run_program(app, argc, argv, [&] {
    example::use_device(device);
    return inspect(sizes, folder);
  });
}
