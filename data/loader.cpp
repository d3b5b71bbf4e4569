#include "linnet/data/loader.h"

#include "linnet/core/random.h"

namespace linnet::data {

namespace {

/// A number that tells plans of an epoch apart: of the numbers and of where batches end.
uint64_t sum_of(const Batches& batches) {
  std::string text;
  for (const auto& batch : batches) {
    for (int64_t item : batch) text.append(reinterpret_cast<const char*>(&item), sizeof item);
    text += '|';
  }
  return stream_of(text);
}

}  // namespace

Position::Position(Plan plan) : plan_(std::move(plan)) {
  LINNET_CHECK(plan_, "data_loader: no plan given");
  of_epoch_ = batches_of(0);
}

std::shared_ptr<const Batches> Position::batches_of(uint64_t epoch) const {
  return std::make_shared<const Batches>(plan_(epoch));
}

void Position::end_epoch() {
  of_epoch_ = batches_of(epoch_ + 1);
  ++epoch_;
  batch_ = 0;
}

StateDict Position::state_dict() const {
  StateDict state;
  state.set_integer("epoch", epoch_);
  state.set_integer("batch", static_cast<uint64_t>(batch_));
  state.set_integer("sum", sum_of(*of_epoch_));
  return state;
}

void Position::load_state_dict(const StateDict& state) {
  const uint64_t epoch = state.integer("epoch"), batch = state.integer("batch");
  auto batches = batches_of(epoch);
  LINNET_CHECK(batch <= batches->size(), "data_loader: batch ", batch, " of epoch ", epoch, " saved, which has ",
               batches->size());
  LINNET_CHECK(state.integer("sum") == sum_of(*batches), "data_loader: epoch ", epoch,
               " was saved with other batches: another data set, seed or batch size");
  epoch_ = epoch;
  batch_ = static_cast<int64_t>(batch);
  of_epoch_ = std::move(batches);
}

void fail_for_item(int64_t item) {
  try {
    throw;
  } catch (const std::exception& fault) {
    fail("data_loader: item ", item, ": ", fault.what());
  } catch (...) {
    fail("data_loader: item ", item, ": an exception that is no std::exception");
  }
}

}  // namespace linnet::data
