#include "cuda_on_cpu/stream.h"

#include <utility>
#include <vector>

#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/settings.h"

namespace cuda_on_cpu {
namespace {

std::vector<std::shared_ptr<Stream>>& streams() {
  static auto& all = *new std::vector<std::shared_ptr<Stream>>{std::make_shared<Stream>()};  // never destroyed
  return all;
}

struct Point {
  std::shared_ptr<Stream> stream;
  uint64_t at;
};

// What the default stream and the blocking ones wait for without being asked.
std::vector<Point> implied(const std::shared_ptr<Stream>& stream) {
  std::vector<Point> points;
  const std::shared_ptr<Stream>& default_stream = streams().front();
  if (stream != default_stream) {
    if (stream->blocking) points.push_back({default_stream, default_stream->pushed});
    return points;
  }
  for (const auto& other : streams())
    if (other != stream && other->blocking) points.push_back({other, other->pushed});
  return points;
}

}  // namespace

std::shared_ptr<Stream> stream_of(StreamHandle* handle) { return handle ? handle->stream : streams().front(); }

StreamHandle* new_stream(bool blocking) {
  streams().push_back(std::make_shared<Stream>());
  streams().back()->blocking = blocking;
  return new StreamHandle{streams().back()};
}

void drop_stream(StreamHandle* handle) {
  drain(*handle->stream);
  std::erase(streams(), handle->stream);
  delete handle;
}

void push(StreamHandle* handle, std::function<void()> work) {
  const std::shared_ptr<Stream> stream = stream_of(handle);
  stream->queue.push_back([points = implied(stream), work = std::move(work)] {
    for (const Point& point : points) drain(*point.stream, point.at);
    if (first_error() == cudaSuccess) work();
  });
  ++stream->pushed;
}

// Device memory is opened once for all that is done here: to open it takes as long as a small kernel.
void drain(Stream& stream, uint64_t up_to) {
  if (stream.done >= up_to || stream.queue.empty()) return;
  const OnDevice open;
  while (stream.done < up_to && !stream.queue.empty()) {
    const std::function<void()> work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work();
    ++stream.done;
  }
}
void drain(Stream& stream) { drain(stream, stream.pushed); }
void drain_all() {
  for (size_t i = 0; i < streams().size(); ++i) drain(*streams()[i]);
}

void record(Event& event, StreamHandle* handle) {
  event.time = std::make_shared<std::chrono::steady_clock::time_point>();
  push(handle, [time = event.time] { *time = std::chrono::steady_clock::now(); });
  event.stream = stream_of(handle);
  event.at = event.stream->pushed;
}

void wait(StreamHandle* handle, const Event& event) {
  if (!event.stream) return;
  push(handle, [stream = event.stream, at = event.at] { drain(*stream, at); });
}

}  // namespace cuda_on_cpu
