// The coefficients of an optimiser's step, from counts of steps that lie in device memory, which it
// advances: one block for each parameter. Beside what tensor_list.cuh needs, the host defines
//   FACULA_RULE    a struct of optim_coefficients.h
//   FACULA_FLAGS   the terms of its update
//   FACULA_SCALAR  dtype of the scalar state, FACULA_SCALARS of which belong to each parameter
#pragma once
#include "optim_rules.cuh"
#include "tensor_list.cuh"

namespace facula {
namespace optim {

// Written by prepare_rows in csrc/cuda/lists.cpp.
struct Arguments {
  double* rows;  // that of the first parameter: 10 coefficients, flags, padding to 12
  int64 first;   // whether there was no state before
  double option[8];
  const double* given[8];  // options that lie in memory; else null
  TensorList list;
};

}  // namespace optim
}  // namespace facula

extern "C" __global__ void FACULA_NAME(const __grid_constant__ facula::optim::Arguments arguments) {
  using namespace facula;
  using namespace facula::optim;
  if (threadIdx.x != 0) return;
  double option[8], k[10] = {};
  for (int i = 0; i < 8; ++i)
    option[i] = arguments.given[i] ? *arguments.given[i] : arguments.option[i];
  OptimScalars scalars = {};
  scalars.first = arguments.first != 0;
  scalars.single = sizeof(FACULA_SCALAR) == 4;
  [[maybe_unused]] const auto& set = arguments.list.set[blockIdx.x];
#if FACULA_SCALARS
  for (int i = 0; i < FACULA_SCALARS; ++i)
    scalars.value[i] = double(*reinterpret_cast<const FACULA_SCALAR*>(set.pointer[i]));
#endif
  const unsigned flags = FACULA_RULE::prepare(FACULA_FLAGS, option, scalars, k);
#if FACULA_SCALARS
  for (int i = 0; i < FACULA_SCALARS; ++i)
    *reinterpret_cast<FACULA_SCALAR*>(set.pointer[i]) = FACULA_SCALAR(scalars.value[i]);
#endif
  double* row = arguments.rows + int64(blockIdx.x) * 12;
  for (int i = 0; i < 10; ++i) row[i] = k[i];
  row[10] = double(flags);
}
