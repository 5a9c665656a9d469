// How dtypes and scalars are named to and handed to kernels.
#pragma once
#include <string>

#include "cuda/elementwise.h"

namespace facula::cuda {

// The device's name of an element type is its Python name in namespace facula (types.cuh).
inline std::string device_type(DType d) {
  return d == DType::Bool ? "bool" : std::string("facula::") + dtype_name(d);
}

// The type that moves elements of a dtype unchanged: it depends on their size alone, so that few
// kernels serve all dtypes.
DType mover_type(DType d);
// Its name, if it is only moved: 16 bytes have a type without arithmetic, which compiles faster.
inline std::string device_mover(DType mover) {
  return mover == DType::Complex128 ? "facula::Words4" : device_type(mover);
}

// FACULA_PARAMS and FACULA_P0, ...; their part of a kernel's key; their slots in the arguments.
void define_params(KernelText& text, const Params& params, DType compute);
uint64_t param_bits(const Params& params);
void write_params(const Params& params, ArgumentWriter& out);

}  // namespace facula::cuda
