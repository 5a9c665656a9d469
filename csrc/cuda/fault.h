// Bad indices that kernels find. A kernel cannot raise: it notes the first one in host memory that
// the device can write to, leaves the element out, and goes on; whoever next waits for the device
// raises. So the context stays usable, unlike after a trap.
#pragma once
#include <cstdint>

#include "cuda/error.h"

namespace facula::cuda {

// Mirrored by FaultRecord in _kernels/fault.cuh.
struct FaultRecord {
  int32_t state;  // 0: none; 1: being written; 2: complete
  int32_t dim;
  const char* name;
  int64_t value, limit, position;
};

// Part of a kernel's arguments: where to note a bad index, and what it is called in the error.
// Mirrored by FaultSite in _kernels/fault.cuh.
struct FaultSite {
  FaultRecord* record;
  const char* name;  // of the operator; lives for ever
  int64_t limit;     // indices below it are good
  int32_t dim;       // which they index, or kLabels
  int32_t negative;  // whether those from -limit on are good, too
};
constexpr int32_t kLabels = -1;      // the indices are labels of classes
constexpr int32_t kParameters = -2;  // no index, but a number that a distribution cannot have

FaultSite fault_site(int device, const char* name, int64_t limit, int32_t dim,
                     bool negative = false);

// The indices that a kernel refused, as Python's IndexError.
class BadIndex : public CudaError {
 public:
  using CudaError::CudaError;
};

// Raises BadIndex if a kernel that is done has noted one, and forgets it. Called after waiting.
void check_faults(int device);

}  // namespace facula::cuda
