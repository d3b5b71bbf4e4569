// What tests of decoders go through: every kind of attention to themselves and to a memory, pre- and post-norm.
#pragma once
#include <doctest/doctest.h>

#include "linnet/nn/attention.h"

namespace linnet::test {

/// Calls f(kind, kind of the cross attention, pre_norm).
template <class F>
void for_each_decoder(const F& f) {
  using nn::AttentionKind;
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax}) {
    for (const AttentionKind cross : {AttentionKind::linear, AttentionKind::softmax}) {
      for (const bool pre_norm : {true, false}) {
        CAPTURE(nn::name(kind));
        CAPTURE(nn::name(cross));
        CAPTURE(pre_norm);
        f(kind, cross, pre_norm);
      }
    }
  }
}

}  // namespace linnet::test
