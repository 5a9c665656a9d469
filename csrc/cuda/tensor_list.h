// Many tensors in few launches (_kernels/tensor_list.cuh): sets of tensors of one size, each a
// dense piece of memory, are packed into the arguments of kernels.
#pragma once
#include <functional>
#include <span>

#include "cuda/jit.h"
#include "cuda/layout.h"

namespace facula::cuda {

constexpr int64_t kListChunk = 8192;  // elements that one block works on
constexpr unsigned kListThreads = 256;

struct ListSet {
  int64_t count = 0;
  void* pointers[6] = {};
};

// How many sets fit beside a header of at most 160 bytes.
constexpr int list_capacity(int operands) {
  return (4096 - 160 - 16) / (12 + 8 * operands);
}

void define_list(KernelText& text, int operands);

// Launches the kernel over all sets, as often as it takes; empty ones are left out. `header` writes
// what stands before the list in the arguments, given the number of blocks of earlier launches.
void launch_list(CuFunction function, std::span<const ListSet> sets, int operands,
                 const std::function<void(ArgumentWriter&, int64_t blocks)>& header,
                 CuStream stream);

// Blocks of all launches.
int64_t list_blocks(std::span<const ListSet> sets);

}  // namespace facula::cuda
