// record: what an op calls to put itself on the tape, and keep: the complete list of what it holds for the way back.
#pragma once
#include <array>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "linnet/autograd/tape.h"
#include "linnet/autograd/variable.h"

namespace linnet {

/// One gradient an input, in order; undefined where none flows.
using Gradients = std::vector<Tensor>;

/// Whether a gradient of x would be wanted: an op may skip what nobody wants. False where nothing is recorded.
bool wants_grad(const Variable& x);

/// What the tape holds until the op's backward has run, and whose bytes it counts.
template <class... Tensors>
std::array<Tensor, sizeof...(Tensors)> keep(const Tensors&... tensors) {
  return {tensors...};
}

namespace detail {
using Backward = std::function<Gradients(const std::vector<Tensor>& dys, std::span<const Tensor> kept)>;
std::vector<Variable> record(const char* op, std::vector<Tensor> outputs, std::span<const Variable> inputs,
                             std::span<const Tensor> kept, Backward backward);
/// Whether record would put an op with these inputs on a tape.
bool records(std::span<const Variable> inputs);

template <size_t N, class First, class F, size_t... I>
Gradients call(const F& f, const First& dy, [[maybe_unused]] std::span<const Tensor> kept, std::index_sequence<I...>) {
  return f(dy, kept[I]...);
}

template <class F>
constexpr void check_captures() {
  static_assert(std::is_trivially_destructible_v<F>,
                "a backward lambda captures plain values only; tensors go through keep(...)");
}
}  // namespace detail

/// Returns y as a Variable. Where a tape records and an input wants a gradient, the op goes on the tape with
/// backward(dy, kept...) -> Gradients. dy has y's shape and dtype; kept tensors arrive in keep's order.
template <size_t N, class F>
Variable record(const char* op, Tensor y, std::initializer_list<Variable> inputs, const std::array<Tensor, N>& kept,
                F backward) {
  detail::check_captures<F>();
  if (!detail::records(inputs)) return Variable(std::move(y));
  auto erased = [backward](const std::vector<Tensor>& dys, std::span<const Tensor> k) {
    return detail::call<N>(backward, dys[0], k, std::make_index_sequence<N>());
  };
  return detail::record(op, {std::move(y)}, std::span(inputs.begin(), inputs.size()), kept, erased)[0];
}

/// The same for an op with several outputs, or with any number of inputs or kept tensors: backward(dys, kept) gets one
/// gradient an output (undefined where none came) and what was kept.
inline std::vector<Variable> record_many(const char* op, std::vector<Tensor> outputs, std::span<const Variable> inputs,
                                         std::span<const Tensor> kept, detail::Backward backward) {
  return detail::record(op, std::move(outputs), inputs, kept, std::move(backward));
}

}  // namespace linnet
