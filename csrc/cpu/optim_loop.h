// What optim_isa.cpp offers: the loops of the optimisers' updates.
#pragma once
#include <cstdint>

#include "_kernels/optim_flags.h"

namespace facula {

enum class OptimRule : uint8_t {
  Sgd,
  Adam,
  Adamax,
  NAdam,
  RAdam,
  Adagrad,
  Adadelta,
  RmsProp,
  Rprop,
  Asgd,
  Count
};

constexpr unsigned kOptimVariants = 16;
constexpr int kOptimCoefficients = 10;
constexpr int kOptimSlots = 3;  // state tensors of the parameter's shape

// operands: parameter, gradient, state tensors; all of n elements.
using OptimLoop = void (*)(void* const* operands, const double* coefficients, int64_t n);

struct OptimLoops {
  // Advances the scalar state and fills the coefficients; returns the flags of the loop to run.
  unsigned (*prepare)(unsigned flags, const double* options, OptimScalars& state, double* k);
  unsigned (*slots)(unsigned flags);                   // bit i: state tensor i is used
  OptimLoop f32[kOptimVariants], f64[kOptimVariants];  // null where the flags make no sense
};

const OptimLoops& optim_loops(OptimRule rule);

}  // namespace facula
