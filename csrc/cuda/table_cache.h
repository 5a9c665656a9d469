// Small tables in device memory that kernels read again and again: the same content is copied
// there once.
#pragma once
#include <cstddef>

#include "cuda/context.h"

namespace facula::cuda {

// The address of a copy of `bytes` bytes; it stays valid for ever.
const void* device_table(const void* data, size_t bytes, int device);

}  // namespace facula::cuda
