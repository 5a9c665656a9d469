// NVRTC, the compiler from CUDA C++ text to machine code.
#pragma once
#include <string>
#include <vector>

namespace facula::cuda {

struct NvrtcVersion {
  int major = 0, minor = 0;
};
NvrtcVersion nvrtc_version();

// Compute capabilities that this NVRTC compiles for, ascending, as 10 * major + minor.
const std::vector<int>& nvrtc_architectures();

// The -arch value for a device of the given compute capability: "sm_90" (machine code) where NVRTC
// knows the device or an older one of the same generation, else "compute_80" (PTX that the driver
// translates). Throws CudaError for devices older than anything NVRTC supports.
std::string nvrtc_target(int compute_capability);

// Compiles `source` and returns the cubin (target sm_XX) or the PTX (compute_XX). On failure throws
// CudaError with the log and the numbered source lines that it speaks of; `name` is for that text.
std::string nvrtc_compile(const std::string& name, const std::string& source,
                          const std::string& target, const std::vector<std::string>& options);

}  // namespace facula::cuda
