#include "cuda/graph.h"

#include <atomic>

#include "cuda/allocator.h"
#include "cuda/fault.h"

namespace facula::cuda {

GraphRandomHooks graph_random;

namespace {
std::atomic<uint64_t> graph_numbers{0};
}

Graph::Graph(bool keep_graph) : number_(++graph_numbers), keep_graph_(keep_graph) {}

Graph::~Graph() {
  ContextScope scope;
  try {
    reset();
  } catch (const CudaError&) {
    // A broken context: whoever synchronises next hears of it.
  }
}

void Graph::begin_capture(uint64_t pool, CuCaptureMode mode) {
  if (captured_ || capturing_)
    throw CudaError("This CUDAGraph holds a capture already; call reset() before another one");
  const int device = current_device();
  CuStream stream = current_stream(device);
  if (!stream)
    throw CudaError(
        "CUDA graphs must be captured on a non-default stream. (However, after capture, it is "
        "ok to replay them on the default stream.)");
  if (stream_is_capturing(device, stream))
    throw CudaError(
        "This stream is being captured already, and captures cannot be nested; end the other one "
        "first");
  use_device(device);
  // Where bad indices are noted: made now, since page-locking memory is no work for a stream.
  fault_site(device, "", 0, 0);
  device_ = device;
  stream_ = stream;
  pool_ = pool ? pool : new_memory_pool();
  begin_pool_capture(device_, pool_);
  try {
    FACULA_CU(cuStreamBeginCapture_v2, stream_, mode);
  } catch (...) {
    end_pool_capture(device_, pool_);
    release_memory_pool(device_, pool_);
    throw;
  }
  capturing_ = true;
  if (graph_random.begin_capture) graph_random.begin_capture(device_, number_);
}

void Graph::end_capture() {
  if (!capturing_) throw CudaError("capture_end() without a capture_begin()");
  if (current_stream(device_) != stream_)
    throw CudaError("Capture must end on the same stream it began on.");
  use_device(device_);
  capturing_ = false;
  captured_ = true;  // from here on reset() has the pool to release
  CuResult result = driver().cuStreamEndCapture(stream_, &graph_);
  end_pool_capture(device_, pool_);
  if (graph_random.end_capture) graph_random.end_capture(device_, number_);
  if (result != kCuSuccess || !graph_) {
    graph_ = nullptr;
    reset();
    check_driver(result, "cuStreamEndCapture");
    throw CudaError("The capture was invalidated and gave no graph");
  }
  if (!keep_graph_) instantiate();
}

void Graph::instantiate() {
  if (!graph_) throw CudaError("instantiate(): there is no captured graph to make executable");
  use_device(device_);
  if (executable_) {
    FACULA_CU(cuGraphExecDestroy, executable_);
    executable_ = nullptr;
  }
  FACULA_CU(cuGraphInstantiateWithFlags, &executable_, graph_, 0ull);
}

void Graph::replay() {
  if (!captured_)
    throw CudaError("Called CUDAGraph::replay without a preceding successful capture.");
  use_device(device_);
  if (!executable_) instantiate();
  CuStream stream = current_stream(device_);
  if (graph_random.before_replay) graph_random.before_replay(device_, number_, stream);
  FACULA_CU(cuGraphLaunch, executable_, stream);
}

void Graph::reset() {
  if (capturing_) {
    // Abandoned half way: the stream must be usable again.
    capturing_ = false;
    CuGraph half = nullptr;
    use_device(device_);
    driver().cuStreamEndCapture(stream_, &half);
    if (half) driver().cuGraphDestroy(half);
    end_pool_capture(device_, pool_);
    if (graph_random.end_capture) graph_random.end_capture(device_, number_);
    captured_ = true;
  }
  if (!captured_) return;
  captured_ = false;
  use_device(device_);
  if (graph_random.forget) graph_random.forget(device_, number_);
  release_memory_pool(device_, pool_);
  pool_ = 0;
  CuGraphExec executable = executable_;
  CuGraph graph = graph_;
  executable_ = nullptr;
  graph_ = nullptr;
  if (executable) FACULA_CU(cuGraphExecDestroy, executable);
  if (graph) FACULA_CU(cuGraphDestroy, graph);
}

void Graph::write_dot(const std::string& path) const {
  if (!graph_) throw CudaError("debug_dump(): there is no captured graph");
  constexpr unsigned kVerbose = 1;
  FACULA_CU(cuGraphDebugDotPrint, graph_, path.c_str(), kVerbose);
}

}  // namespace facula::cuda
