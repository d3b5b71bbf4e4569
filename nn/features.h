// Features: the feature maps that linear attention may take, fused in its op or computed before it.
#pragma once
#include <functional>
#include <string_view>

#include "linnet/nn/module.h"
#include "linnet/ops/linear_attention.h"

namespace linnet::nn {

/// Which feature map linear attention applies to the queries and keys of each head, (.., D) -> (.., features): a fused
/// one, as in `.feature_map = FeatureMap::relu`, or an op before the attention, as in `Features::favor()`. Fused ones
/// take no memory of their own.
struct Features {
  using Map = std::function<Variable(const Variable&)>;
  enum class Kind { fused, squared_relu, polynomial, fourier, favor, own };

  Kind kind = Kind::fused;
  FeatureMap fused = FeatureMap::elu1;  ///< of kind fused
  int64_t count = 0;                    ///< fourier, favor: how many features; 0 means 2 D
  Map map;                              ///< of kind own

  Features() = default;
  Features(FeatureMap fused_map) : fused(fused_map) {}  // NOLINT: a fused one needs no more words than its name

  static Features squared_relu();  ///< D features
  static Features polynomial();    ///< D (D + 1) / 2, of degree 2: a product is (q . k)^2
  /// Both of x / D^(1/4), so that D does not change how sharp the attention is: the kernels are
  /// exp(-|q - k|^2 / (2 sqrt(D))) and, as in softmax attention, exp(q . k / sqrt(D)). ops/feature_maps.h tells more.
  static Features fourier(int64_t count = 0);  ///< a cosine and a sine of each projection: an even count
  static Features favor(int64_t count = 0);    ///< FAVOR+; eps stays 0, or it would weigh each query in its own way
  /// One's own: called with queries (batch, time, heads, D), with keys, and in a step with (batch, heads, D). A row's
  /// features are of that row alone, and products of them not negative.
  static Features own(Map map);
};

/// The one of this name: elu1, relu, identity, squared_relu, polynomial, fourier, favor. Throws, listing them, for
/// another; `what` begins the message.
Features feature_map(std::string_view word, const char* what = "feature map");

struct FeatureLayerOptions {
  Required<int64_t> heads;
  Required<int64_t> width;  ///< D
  Features features;        ///< not a fused one
};

/// The map of an attention whose features are not fused: x (.., heads, D) -> (.., heads, features). Buffer of the
/// random ones: projections (m, D), drawn in the constructor as initial weights are, the same for all heads, saved with
/// the model.
class FeatureLayer : public Module {
 public:
  using Options = FeatureLayerOptions;
  FeatureLayer(Module& parent, std::string name, const Options& options);

  Variable of_queries(const Variable& q) const { return apply(q, true); }
  Variable of_keys(const Variable& k) const { return apply(k, false); }
  /// How many features a row has. One's own map is asked, with a row of zeros of this dtype and device.
  int64_t count(Dtype dtype, Device device) const;
  /// Draws the projections anew; nothing where there are none. A state made before does not fit what comes after.
  void redraw(Generator& generator);

 private:
  Variable apply(const Variable& x, bool of_queries) const;

  int64_t heads_, width_;
  Features features_;
  Tensor* projections_ = nullptr;
};

/// FeatureLayer::redraw of every attention in `module`, always in the same order: between steps of a training with
/// random features (Choromanski et al. 2020, section 4.2).
void redraw_features(Module& module, Generator& generator);

}  // namespace linnet::nn
