#include "cpu/optim.h"

#include <algorithm>
#include <vector>

#include "core/per_thread.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"

namespace facula {

namespace baseline {
extern const OptimLoops optim_rules[];
}
#ifdef FACULA_X86
namespace v3 {
extern const OptimLoops optim_rules[];
}
namespace v4 {
extern const OptimLoops optim_rules[];
}
#endif

const OptimLoops& optim_loops(OptimRule rule) {
#ifdef FACULA_X86
  static const OptimLoops* table[] = {baseline::optim_rules, v3::optim_rules, v4::optim_rules};
  return table[isa_level()][int(rule)];
#else
  return baseline::optim_rules[int(rule)];
#endif
}

namespace {

constexpr int kOperands = 2 + kOptimSlots;
constexpr int64_t kTile = 512;         // elements that are converted at a time
constexpr int64_t kStepGrain = 16384;  // an update does more than an addition for each element

char* start(const TensorImpl* t) {
  return static_cast<char*>(t->storage->data) + t->offset * int64_t(item_size(t->dtype));
}

bool is_converted(const OptimWork& w) {
  for (const TensorImpl* t : w.operands)
    if (t && t->dtype != w.compute) return true;
  return false;
}

// Brings tiles of strided or half-precision operands to the compute type and back.
void run_tiles(const OptimWork& w, char* const* data, const int64_t* strides, int64_t n) {
  alignas(64) double memory[kOperands][kTile];
  const int64_t item = int64_t(item_size(w.compute));
  void* tiles[kOperands];
  for (int o = 0; o < kOperands; ++o) tiles[o] = memory[o];
  for (int64_t done = 0; done < n; done += kTile) {
    const int64_t m = std::min(kTile, n - done);
    for (int o = 0; o < kOperands; ++o)
      if (const TensorImpl* t = w.operands[o])
        cast_loop(t->dtype, w.compute)(reinterpret_cast<char*>(memory[o]), item,
                                       data[o] + done * strides[o], strides[o], m);
    w.loop(tiles, w.k, m);
    for (int o = 0; o < kOperands; ++o)
      if (const TensorImpl* t = w.operands[o]; t && o != 1)
        cast_loop(w.compute, t->dtype)(data[o] + done * strides[o], strides[o],
                                       reinterpret_cast<char*>(memory[o]), item, m);
  }
}

void run_flat(const OptimWork& w, int64_t begin, int64_t end) {
  char* data[kOperands] = {};
  int64_t strides[kOperands] = {};
  for (int o = 0; o < kOperands; ++o)
    if (const TensorImpl* t = w.operands[o]) {
      strides[o] = int64_t(item_size(t->dtype));
      data[o] = start(t) + begin * strides[o];
    }
  if (is_converted(w)) return run_tiles(w, data, strides, end - begin);
  w.loop(reinterpret_cast<void* const*>(data), w.k, end - begin);
}

void run_strided(const OptimWork& w) {
  Iteration it;
  it.begin(w.operands[0]->sizes);
  int position[kOperands];
  for (int o = 0, n = 0; o < kOperands; ++o) {
    const TensorImpl* t = w.operands[o];
    position[o] = t ? n++ : -1;
    if (t) it.add(start(t), t->sizes, t->strides, int64_t(item_size(t->dtype)));
  }
  it.finish();
  it.run_parallel(
      [&](char* const* p, const int64_t* s, int64_t n) {
        char* data[kOperands] = {};
        int64_t strides[kOperands] = {};
        for (int o = 0; o < kOperands; ++o)
          if (position[o] >= 0) data[o] = p[position[o]], strides[o] = s[position[o]];
        run_tiles(w, data, strides, n);
      },
      kStepGrain);
}

// A parameter that is listed twice, or shares memory with another, is updated in turn.
bool share_memory(std::span<const OptimWork> works) {
  std::vector<std::pair<const char*, const char*>> ranges;
  ranges.reserve(works.size() * (kOperands - 1));
  for (const OptimWork& w : works)
    for (int o = 0; o < kOperands; ++o)
      if (const TensorImpl* t = w.operands[o]; t && o != 1 && t->numel)
        ranges.push_back({start(t), start(t) + t->numel * int64_t(item_size(t->dtype))});
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

}  // namespace

bool is_flat(const OptimWork& w) {
  bool contiguous = true;
  for (const TensorImpl* t : w.operands) contiguous = contiguous && (!t || t->flags & kContiguous);
  if (contiguous) return true;
  const TensorImpl* p = w.operands[0];
  for (const TensorImpl* t : w.operands)
    if (t && !same(t->strides, p->strides)) return false;
  return non_overlapping_and_dense(p->sizes, p->strides);
}

void cpu_optimizer_step(std::span<const OptimWork> works) {
  struct Ends {  // of each work, in elements of all flat ones
    std::vector<int64_t> list;
  };
  std::vector<int64_t>& ends = per_thread<Ends>().list;
  ends.clear();
  int64_t total = 0;
  bool all_flat = true;
  for (const OptimWork& w : works) {
    all_flat = all_flat && is_flat(w);
    ends.push_back(total += w.operands[0]->numel);
  }
  if (all_flat && total > kStepGrain && num_threads() > 1 && works.size() > 1 &&
      !share_memory(works)) {
    parallel_for(0, total, kStepGrain, [&, e = ends.data()](int64_t begin, int64_t end) {
      size_t i = size_t(std::upper_bound(e, e + works.size(), begin) - e);
      while (begin < end) {
        const int64_t first = i ? e[i - 1] : 0, stop = std::min(end, e[i]);
        if (stop > begin) run_flat(works[i], begin - first, stop - first);
        begin = stop;
        ++i;
      }
    });
    return;
  }
  for (const OptimWork& w : works) {
    if (is_flat(w))
      parallel_for(0, w.operands[0]->numel, kStepGrain,
                   [&](int64_t b, int64_t e) { run_flat(w, b, e); });
    else run_strided(w);
  }
}

}  // namespace facula
