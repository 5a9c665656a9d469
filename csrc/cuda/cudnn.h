// Convolutions through cuDNN 9.
#pragma once
#include <atomic>

#include "cuda/context.h"
#include "op/hooks/convolution.h"

namespace facula::cuda {

// What facula.backends.cudnn sets.
struct CudnnSettings {
  std::atomic<bool> enabled{true}, benchmark{false}, deterministic{false}, allow_tf32{true};
};
extern CudnnSettings cudnn_settings;

// 0 without cuDNN, or as cudnnGetVersion gives it, e.g. 91002.
size_t cudnn_version();

// The convolution without its bias; false where cuDNN is missing or cannot do it, and nothing has
// been done then.
bool cudnn_convolution(ConvolutionKind kind, const Conv& problem, int dims, int device,
                       CuStream stream);

}  // namespace facula::cuda
