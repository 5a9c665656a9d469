#include "cuda/tensor_list.h"

namespace facula::cuda {
namespace {

constexpr int64_t kMostBlocks = 1 << 20;  // of one launch, beyond which a set starts another

int64_t blocks_of(const ListSet& set) {
  return (set.count + kListChunk - 1) / kListChunk;
}

}  // namespace

void define_list(KernelText& text, int operands) {
  text.define("FACULA_OPERANDS", std::to_string(operands));
  text.define("FACULA_TENSORS", std::to_string(list_capacity(operands)));
  text.define("FACULA_CHUNK", std::to_string(kListChunk));
}

int64_t list_blocks(std::span<const ListSet> sets) {
  int64_t blocks = 0;
  for (const ListSet& set : sets) blocks += blocks_of(set);
  return blocks;
}

void launch_list(CuFunction function, std::span<const ListSet> sets, int operands,
                 const std::function<void(ArgumentWriter&, int64_t)>& header, CuStream stream) {
  const int capacity = list_capacity(operands);
  int64_t earlier = 0;
  for (size_t next = 0; next < sets.size();) {
    int taken = 0;
    const ListSet* chosen[4096 / 20];
    int32_t ends[4096 / 20];
    int64_t blocks = 0;
    for (; next < sets.size() && taken < capacity; ++next) {
      if (sets[next].count == 0) continue;
      const int64_t more = blocks_of(sets[next]);
      if (taken && blocks + more > kMostBlocks) break;
      chosen[taken] = &sets[next];
      ends[taken++] = int32_t(blocks += more);
    }
    if (taken == 0) break;
    ArgumentWriter arguments;
    header(arguments, earlier);
    arguments.align(8);
    arguments.put<int32_t>(taken);
    for (int i = 0; i < capacity; ++i) arguments.put<int32_t>(i < taken ? ends[i] : 0);
    arguments.align(8);
    for (int i = 0; i < taken; ++i) {
      arguments.put<int64_t>(chosen[i]->count);
      for (int o = 0; o < operands; ++o) arguments.put<void*>(chosen[i]->pointers[o]);
    }
    launch_kernel(function, {.grid_x = unsigned(blocks), .block_x = kListThreads}, stream,
                  arguments.data());
    earlier += blocks;
  }
}

}  // namespace facula::cuda
