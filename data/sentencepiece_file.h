// Checks the bytes of a SentencePiece model before the library trusts them. Private to data.
#pragma once
#include <string>
#include <string_view>

namespace linnet::data {

/// What is wrong with a serialized ModelProto, or nothing. The library checks most of a model itself; it trusts, and
/// would read out of bounds by, the table of its normaliser; and it would sort scores that are NaN.
std::string sentencepiece_fault(std::string_view model);

}  // namespace linnet::data
