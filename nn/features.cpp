#include "linnet/nn/features.h"

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/nn/words.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/feature_maps.h"

namespace linnet::nn {
namespace {

Features of_kind(Features::Kind kind, int64_t count = 0) {
  Features features;
  features.kind = kind;
  features.count = count;
  return features;
}

}  // namespace

Features Features::squared_relu() { return of_kind(Kind::squared_relu); }
Features Features::polynomial() { return of_kind(Kind::polynomial); }
Features Features::fourier(int64_t count) { return of_kind(Kind::fourier, count); }
Features Features::favor(int64_t count) { return of_kind(Kind::favor, count); }

Features Features::own(Map map) {
  Features features = of_kind(Kind::own);
  features.map = std::move(map);
  return features;
}

Features feature_map(std::string_view word, const char* what) {
  const std::pair<const char*, Features> maps[] = {
      {"elu1", FeatureMap::elu1},
      {"relu", FeatureMap::relu},
      {"identity", FeatureMap::identity},
      {"squared_relu", Features::squared_relu()},
      {"polynomial", Features::polynomial()},
      {"fourier", Features::fourier()},
      {"favor", Features::favor()},
  };
  return detail::of_word(what, word, maps);
}

FeatureLayer::FeatureLayer(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), heads_(options.heads), width_(options.width), features_(options.features) {
  const bool fourier = features_.kind == Features::Kind::fourier, favor = features_.kind == Features::Kind::favor;
  LINNET_CHECK(features_.kind != Features::Kind::own || features_.map, label(), ": no map given");
  if (!fourier && !favor) return;
  int64_t& count = features_.count;
  LINNET_CHECK(count >= 0, label(), ": ", count, " features given, 1 or more wanted, or 0 for 2 D");
  LINNET_CHECK(!fourier || count % 2 == 0, label(), ": ", count,
               " Fourier features given, an even number wanted: a cosine and a sine of each projection");
  if (count == 0) count = 2 * std::max<int64_t>(1, width_);
  Generator generator{default_generator().seed, stream_of(path() + ".projections"), 0};
  projections_ = &buffer("projections", orthogonal_features(fourier ? count / 2 : count, width_, generator));
}

Variable FeatureLayer::apply(const Variable& x, bool of_queries) const {
  const auto scaled = [&] { return x * std::pow(static_cast<double>(std::max<int64_t>(1, width_)), -0.25); };
  switch (features_.kind) {
    case Features::Kind::squared_relu:
      return squared_relu(x);
    case Features::Kind::polynomial:
      return polynomial_features(x);
    case Features::Kind::fourier:
      return fourier_features(scaled(), *projections_);
    case Features::Kind::favor:
      return favor_features(scaled(), *projections_, {.of_queries = of_queries});
    case Features::Kind::own: {
      Variable y = features_.map(x);
      LINNET_CHECK(y.defined() && y.rank() == x.rank() && y.shape().with(-1, width_) == x.shape(), label(),
                   ": the map gave ", y.defined() ? y.shape() : Shape(), " for ", x.shape(),
                   ", only the last size may differ");
      return y;
    }
    case Features::Kind::fused:
      break;
  }
  fail(label(), ": a fused feature map is the op's own");
}

int64_t FeatureLayer::count(Dtype dtype, Device device) const {
  switch (features_.kind) {
    case Features::Kind::squared_relu:
      return width_;
    case Features::Kind::polynomial:
      return width_ * (width_ + 1) / 2;
    case Features::Kind::own:
      break;
    default:
      return features_.count;
  }
  Tape::Pause pause;
  return apply(Tensor::zeros({1, heads_, width_}, dtype, device), true).size(-1);
}

void FeatureLayer::redraw(Generator& generator) {
  if (!projections_) return;
  const Tensor drawn = orthogonal_features(projections_->size(0), width_, generator, projections_->dtype());
  projections_->copy_from(drawn);
}

void redraw_features(Module& module, Generator& generator) {
  std::vector<Module*> all{&module};
  for (size_t i = 0; i < all.size(); ++i) {
    if (auto* layer = dynamic_cast<FeatureLayer*>(all[i])) layer->redraw(generator);
    all.insert(all.end(), all[i]->children().begin(), all[i]->children().end());
  }
}

}  // namespace linnet::nn
