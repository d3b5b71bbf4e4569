#include "linnet/nn/init.h"

#include <algorithm>
#include <cmath>

namespace linnet::nn::init {
namespace {

struct Fans {
  double in, out;
};

Fans fans(const char* name, const Shape& shape) {
  LINNET_CHECK(shape.rank() >= 2, name, ": weight ", shape, " has no (out, in, ...) axes");
  double rest = 1;
  for (int i = 2; i < shape.rank(); ++i) rest *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * rest, static_cast<double>(shape[0]) * rest};
}

/// sqrt(a / b), finite where the weight has no elements at all.
double root(double a, double b) { return std::sqrt(a / std::max(b, 1.0)); }

}  // namespace

Init zeros() { return constant(0); }
Init ones() { return constant(1); }

Init constant(double value) {
  return [value](const Shape& shape, Generator&) { return Tensor::full(shape, value); };
}

Init normal(double std) {
  return [std](const Shape& shape, Generator& generator) { return generator.normal(shape, 0, std); };
}

Init uniform(double bound) {
  return [bound](const Shape& shape, Generator& generator) { return generator.uniform(shape, -bound, bound); };
}

Init xavier_uniform(double gain) {
  return [gain](const Shape& shape, Generator& generator) {
    const Fans n = fans("xavier_uniform", shape);
    const double bound = gain * root(6, n.in + n.out);
    return generator.uniform(shape, -bound, bound);
  };
}

Init kaiming_uniform(double gain) {
  return [gain](const Shape& shape, Generator& generator) {
    const double bound = gain * root(3, fans("kaiming_uniform", shape).in);
    return generator.uniform(shape, -bound, bound);
  };
}

}  // namespace linnet::nn::init
