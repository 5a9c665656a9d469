// Convolutions of which every channel has its own filter, and their gradients by the input.
#pragma once
#include "cuda/driver.h"
#include "op/hooks/convolution.h"

namespace facula::cuda {

// False for what is left to others: here are planes of rows in memory order, small filters without
// gaps, and one step for both axes.
bool depthwise_convolution(ConvolutionKind kind, const Conv& problem, int device, CuStream stream);

}  // namespace facula::cuda
