// CUDA graphs: work that is recorded from streams once and launched as a whole.
#pragma once
#include <cstdint>
#include <string>

#include "cuda/context.h"

namespace facula::cuda {

// What random operators need in a graph: numbers that differ from replay to replay. The generator's
// part of the backend sets it; `device` is the one captured on, `graph` tells graphs apart.
struct GraphRandomHooks {
  void (*begin_capture)(int device, uint64_t graph) = nullptr;
  void (*end_capture)(int device, uint64_t graph) = nullptr;
  void (*before_replay)(int device, uint64_t graph, CuStream stream) = nullptr;
  void (*forget)(int device, uint64_t graph) = nullptr;
};
extern GraphRandomHooks graph_random;

class Graph {
 public:
  explicit Graph(bool keep_graph = false);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Records what is queued on the current stream, which must not be the default one, until
  // end_capture. Memory comes from `pool`; 0 asks for one of its own.
  void begin_capture(uint64_t pool, CuCaptureMode mode);
  void end_capture();
  void instantiate();
  void replay();  // on the current stream
  void reset();
  uint64_t pool() const { return pool_; }
  void write_dot(const std::string& path) const;

 private:
  uint64_t number_;
  uint64_t pool_ = 0;
  int device_ = -1;
  CuStream stream_ = nullptr;  // while it is being captured
  bool capturing_ = false;
  bool captured_ = false;
  bool keep_graph_;
  CuGraph graph_ = nullptr;
  CuGraphExec executable_ = nullptr;
};

}  // namespace facula::cuda
