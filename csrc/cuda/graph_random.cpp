#include "cuda/graph_random.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "core/tensor.h"
#include "cuda/graph.h"
#include "cuda/jit.h"
#include "cuda/layout.h"

namespace facula::cuda {
namespace {

// A generator that a graph draws from.
struct Source {
  Generator* generator;  // a reference of its own
  Tensor place;          // seed and block, in the graph's memory
  uint64_t blocks = 0;   // that one replay takes
};

struct GraphSources {
  int device;
  uint64_t graph;
  std::thread::id thread;  // that captures
  bool capturing = true;
  std::vector<Source> sources;
};

std::mutex mutex;
std::atomic<int> captures{0};

std::list<GraphSources>& all_graphs() {
  static auto* graphs = new std::list<GraphSources>;  // used until the process ends
  return *graphs;
}

GraphSources* find_graph(int device, uint64_t graph) {
  for (GraphSources& g : all_graphs())
    if (g.device == device && g.graph == graph) return &g;
  return nullptr;
}

// The graph that work of this thread goes to: as for memory, that of the thread, or else the last.
GraphSources* capturing_graph(int device) {
  GraphSources* last = nullptr;
  for (GraphSources& g : all_graphs()) {
    if (!g.capturing || g.device != device) continue;
    if (last && last->thread == std::this_thread::get_id() && g.thread != last->thread) continue;
    last = &g;
  }
  return last;
}

void begin_capture(int device, uint64_t graph) {
  std::lock_guard lock(mutex);
  all_graphs().push_back({device, graph, std::this_thread::get_id(), true, {}});
  ++captures;
}

void end_capture(int device, uint64_t graph) {
  std::lock_guard lock(mutex);
  GraphSources* g = find_graph(device, graph);
  if (!g || !g->capturing) return;
  g->capturing = false;
  --captures;
}

void write_place(int device, CuStream stream, void* to, uint64_t seed, uint64_t block) {
  static auto* kernel = new Kernel;
  CuFunction function =
      kernel->on(device, [] { return KernelText{"graph_place.cuh", "facula_graph_place", {}}; });
  ArgumentWriter arguments;
  arguments.put(to);
  arguments.put(seed);
  arguments.put(block);
  launch_kernel(function, {}, stream, arguments.data());
}

void before_replay(int device, uint64_t graph, CuStream stream) {
  std::lock_guard lock(mutex);
  GraphSources* g = find_graph(device, graph);
  if (!g) return;
  for (Source& source : g->sources) {
    const PhiloxPlace place = source.generator->take(source.blocks * 4);
    write_place(device, stream, source.place.data(), place.seed, place.offset / 4);
  }
}

void forget(int device, uint64_t graph) {
  std::vector<Source> gone;  // memory is released without the lock
  {
    std::lock_guard lock(mutex);
    auto& graphs = all_graphs();
    auto found = std::find_if(graphs.begin(), graphs.end(), [&](const GraphSources& g) {
      return g.device == device && g.graph == graph;
    });
    if (found == graphs.end()) return;
    gone.swap(found->sources);
    graphs.erase(found);
  }
  for (Source& source : gone) source.generator->unref();
}

}  // namespace

RandomPlace take_place(Generator& generator, int device, uint64_t words) {
  const uint64_t blocks = (words + 3) / 4;
  if (captures.load(std::memory_order_acquire) != 0) [[unlikely]] {
    CuStream stream = current_stream(device);
    if (stream && stream_is_capturing(device, stream)) {
      Tensor made;  // without the lock: the allocator may call Python
      std::unique_lock lock(mutex);
      while (GraphSources* g = capturing_graph(device)) {
        auto found = std::find_if(g->sources.begin(), g->sources.end(),
                                  [&](const Source& s) { return s.generator == &generator; });
        if (found == g->sources.end() && !made.defined()) {
          lock.unlock();
          made = empty_tensor(Dims{2}, DType::Int64, Device{DeviceType::CUDA, int8_t(device)});
          lock.lock();
          continue;
        }
        if (found == g->sources.end()) {
          found = g->sources.insert(found, Source{&generator, made});
          generator.retain();
        }
        const uint64_t block = found->blocks;
        found->blocks += blocks;
        return {0, block, reinterpret_cast<const uint64_t*>(found->place.data())};
      }
    }
  }
  const PhiloxPlace place = generator.take(words);
  return {place.seed, place.offset / 4, nullptr};
}

void register_graph_random() {
  graph_random = {begin_capture, end_capture, before_replay, forget};
}

}  // namespace facula::cuda
