// Streams and events. Work waits in its stream's queue until the host synchronises with that stream or with an event
// behind it: what lacks an order on a GPU comes out in the worst one here.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

namespace cuda_on_cpu {

struct Stream {
  std::deque<std::function<void()>> queue;
  uint64_t pushed = 0, done = 0;
  bool blocking = true;  ///< waits for the default stream, and it for this one
};

/// What a handle points to: work on its way keeps the stream alive.
struct StreamHandle {
  std::shared_ptr<Stream> stream;
};

struct Event {
  std::shared_ptr<Stream> stream;  ///< null: never recorded
  uint64_t at = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

std::shared_ptr<Stream> stream_of(StreamHandle* handle);  ///< null is the default stream
StreamHandle* new_stream(bool blocking);
void drop_stream(StreamHandle* handle);  ///< runs what it still has

void push(StreamHandle* handle, std::function<void()> work);  ///< not run once there was an error
void drain(Stream& stream, uint64_t up_to);
void drain(Stream& stream);
void drain_all();

void record(Event& event, StreamHandle* handle);
void wait(StreamHandle* handle, const Event& event);

}  // namespace cuda_on_cpu
