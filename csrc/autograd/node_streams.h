// Streams of devices in the backward pass: a node runs on the stream that its forward work ran on,
// and the engine orders streams where gradients pass from one to another. Programs that never leave
// the default streams pay for one test.
#pragma once
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace facula {

struct Node;
using DeviceStream = std::pair<int, void*>;  // a device and one of its streams; null: the default

// What the backend provides. Streams are those of the calling thread.
struct StreamHooks {
  std::vector<DeviceStream> (*chosen)() = nullptr;  // current streams other than default ones
  void* (*current)(int device) = nullptr;
  void (*set)(int device, void* stream) = nullptr;
  // Work that comes to `later` waits for what is on `earlier` now.
  void (*order)(int device, void* earlier, void* later) = nullptr;
  // The tensor's memory is used on `stream`, too.
  void (*record)(const Tensor& t, void* stream) = nullptr;
};
extern StreamHooks stream_hooks;
extern std::atomic<bool> streams_in_use;  // some thread has chosen a stream

// Kept beside the nodes, which are many, while streams are rare.
void note_streams(Node* node);    // the calling thread's, for a node that is being made
void forget_streams(Node* node);  // that is being destroyed
void* noted_stream(Node* node, int device);

// The streams of one backward pass. The caller's are current again when it is gone.
class PassStreams {
 public:
  PassStreams();
  ~PassStreams();
  PassStreams(const PassStreams&) = delete;
  PassStreams& operator=(const PassStreams&) = delete;

  bool on() const { return on_; }
  void enter(Node* node);  // makes the node's streams current
  // A gradient that was made on the current stream goes to `node`, whose stream becomes current
  // until leave(), for what is done to the gradient on the way.
  void pass(const Tensor& grad, Node* node);
  void leave();
  void give_to_caller(const Tensor& grad);
  void restore();  // the caller's streams

 private:
  void* stream_of(Node* node, int device) const;
  void* callers(int device) const;
  void set(int device, void* stream);

  const bool on_;
  std::vector<DeviceStream> callers_;
  std::vector<int> changed_;
  DeviceStream before_{-1, nullptr};  // to be restored by leave()
};

}  // namespace facula
