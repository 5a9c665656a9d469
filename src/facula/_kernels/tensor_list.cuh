// Many tensors in one launch. Each block works on a piece of one of them. The host
// (csrc/cuda/tensor_list.h) defines
//   FACULA_OPERANDS  tensors that belong together: a parameter, its gradient, its state
//   FACULA_TENSORS   how many such sets fit into the arguments
//   FACULA_CHUNK     elements of a piece
#pragma once
#include "types.cuh"

namespace facula {

struct TensorList {
  int32 tensors;
  int32 end[FACULA_TENSORS];  // blocks of this set and those before it
  struct {
    int64 count;
    char* pointer[FACULA_OPERANDS];
  } set[FACULA_TENSORS];
};

// What the calling block works on: elements first .. last of set `at`.
struct Piece {
  int at;
  int64 first, last;

  __device__ __forceinline__ explicit Piece(const TensorList& list) {
    const int block = int(blockIdx.x);
    int low = 0, high = list.tensors - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (block < list.end[middle]) high = middle;
      else low = middle + 1;
    }
    at = low;
    const int before = low ? list.end[low - 1] : 0;
    first = int64(block - before) * FACULA_CHUNK;
    const int64 count = list.set[low].count;
    last = first + FACULA_CHUNK < count ? first + FACULA_CHUNK : count;
  }
};

// Whether all pointers of a set allow to move `bytes[k]` at once. Pieces start at multiples of
// FACULA_CHUNK elements, which keeps what holds for the pointers.
template <class Set>
__device__ __forceinline__ bool aligned(const Set& set, int operand, int bytes) {
  return reinterpret_cast<uint64>(set.pointer[operand]) % uint64(bytes) == 0;
}

}  // namespace facula
