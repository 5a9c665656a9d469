#include "autograd/node_streams.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "autograd/node.h"

namespace facula {

StreamHooks stream_hooks;
std::atomic<bool> streams_in_use{false};

namespace {

struct NotedStreams {
  std::mutex mutex;
  std::unordered_map<const Node*, std::vector<DeviceStream>> of;
};
NotedStreams& noted() {
  static auto* all = new NotedStreams;  // nodes die until the process ends
  return *all;
}

void* find(const std::vector<DeviceStream>& streams, int device) {
  for (auto [d, stream] : streams)
    if (d == device) return stream;
  return nullptr;
}

}  // namespace

void note_streams(Node* node) {
  std::vector<DeviceStream> chosen = stream_hooks.chosen();
  if (chosen.empty()) return;
  std::lock_guard lock(noted().mutex);
  noted().of[node] = std::move(chosen);
}

void forget_streams(Node* node) {
  std::lock_guard lock(noted().mutex);
  noted().of.erase(node);
}

void* noted_stream(Node* node, int device) {
  std::lock_guard lock(noted().mutex);
  auto found = noted().of.find(node);
  return found == noted().of.end() ? nullptr : find(found->second, device);
}

PassStreams::PassStreams() : on_(streams_in_use.load(std::memory_order_relaxed)) {
  if (on_) callers_ = stream_hooks.chosen();
}

PassStreams::~PassStreams() {
  restore();
}

void PassStreams::restore() {
  for (int device : changed_) stream_hooks.set(device, callers(device));
  changed_.clear();
}

void* PassStreams::callers(int device) const {
  return find(callers_, device);
}

// Leaves are accumulated on the caller's stream, which so has waited for all gradients at the end.
void* PassStreams::stream_of(Node* node, int device) const {
  return node->is_accumulator() ? callers(device) : noted_stream(node, device);
}

void PassStreams::set(int device, void* stream) {
  if (std::find(changed_.begin(), changed_.end(), device) == changed_.end())
    changed_.push_back(device);
  stream_hooks.set(device, stream);
}

void PassStreams::enter(Node* node) {
  for (const OutputMeta& output : node->outputs)
    if (output.device.is_cuda()) set(output.device.index, stream_of(node, output.device.index));
}

void PassStreams::pass(const Tensor& grad, Node* node) {
  before_.first = -1;
  if (!grad.is_cuda()) return;
  const int device = grad.device().index;
  void* producer = stream_hooks.current(device);
  void* consumer = stream_of(node, device);
  if (producer == consumer) return;
  stream_hooks.order(device, producer, consumer);
  stream_hooks.record(grad, consumer);
  set(device, consumer);
  before_ = {device, producer};
}

void PassStreams::leave() {
  if (before_.first >= 0) stream_hooks.set(before_.first, before_.second);
  before_.first = -1;
}

void PassStreams::give_to_caller(const Tensor& grad) {
  if (!grad.defined() || !grad.is_cuda()) return;
  const int device = grad.device().index;
  void* producer = stream_hooks.current(device);
  if (producer == callers(device)) return;
  stream_hooks.order(device, producer, callers(device));
  stream_hooks.record(grad, callers(device));
}

}  // namespace facula
