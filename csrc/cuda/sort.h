// Sorting on the device.
#pragma once
#include "core/tensor.h"
#include "cuda/context.h"

namespace facula::cuda {

void sort_lines(const Tensor& in, int64_t dim, bool descending, int64_t k, const Tensor& values,
                const Tensor& indices);

// n keys, of which the lowest `bits` bits count, in rising order, and where each of them was.
void sort_keys(const uint64_t* keys, int64_t n, int bits, uint64_t* sorted, uint32_t* order,
               int device, CuStream stream);

}  // namespace facula::cuda
