#include "support/attention_settings.h"

#include "linnet/core/error.h"
#include "support/settings.h"

namespace example {

void AttentionSettings::check_attention() const {
  using linnet::nn::AttentionKind;
  const AttentionKind given = kind();
  const bool is_linear = given == AttentionKind::linear, is_local = given == AttentionKind::local;
  LINNET_CHECK(!is_local || window >= 0, "--attention local: wants --window, how many steps back a step looks");
  LINNET_CHECK(is_local || window == -1, "--window ", window, ": only for --attention local");
  (void)linnet::nn::feature_map(feature_map, "--feature-map");
  LINNET_CHECK(is_linear || feature_map == "elu1", "--feature-map ", feature_map, ": only for --attention linear");

  const bool is_lsh = given == AttentionKind::lsh, is_improved = given == AttentionKind::improved_clustered,
             is_clustered = is_improved || given == AttentionKind::clustered;
  const auto check = [&](const char* flag, int64_t value, bool takes, bool wants, const char* kinds) {
    LINNET_CHECK(takes || value == 0, flag, " ", value, ": only for --attention ", kinds);
    LINNET_CHECK(!wants || value != 0, "--attention ", attention, ": wants ", flag);
    if (value != 0) check_between(flag, value, 1, 1 << 24);
  };
  check("--rounds", rounds, is_lsh, false, "lsh");
  check("--buckets", buckets, is_lsh, is_lsh, "lsh");
  check("--chunk", chunk, is_lsh, is_lsh, "lsh");
  check("--clusters", clusters, is_clustered, is_clustered, "clustered or improved_clustered");
  check("--topk", topk, is_improved, false, "improved_clustered");
  LINNET_CHECK(buckets % 2 == 0, "--buckets ", buckets, ": must be even");
}

}  // namespace example
