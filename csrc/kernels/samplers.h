// The samplers that CPU and CUDA share, for the host.
#pragma once
#include <cmath>

#define FACULA_SAMPLER inline
#define FACULA_CALLED_SAMPLER inline
#include "_kernels/samplers.h"
