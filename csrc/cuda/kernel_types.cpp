#include "cuda/kernel_types.h"

namespace facula::cuda {

DType mover_type(DType dtype) {
  switch (item_size(dtype)) {
    case 1: return DType::UInt8;
    case 2: return DType::UInt16;
    case 4: return DType::UInt32;
    case 8: return DType::UInt64;
    default: return DType::Complex128;
  }
}

void define_params(KernelText& text, const Params& params, DType compute) {
  text.define("FACULA_PARAMS", std::to_string(params.count));
  const bool narrow = to_real(compute) == DType::Float32;
  for (int i = 0; i < params.count; ++i) {
    const std::string number = std::to_string(i);
    // Formulas never see small floats.
    const DType d = is_reduced_float(params.dtypes[i]) ? DType::Float32 : params.dtypes[i];
    const bool narrowed = d == DType::Float64 && narrow;
    text.define(("FACULA_SLOT" + number).c_str(), device_type(d));
    text.define(("FACULA_P" + number).c_str(), narrowed ? "R" : device_type(d));
    text.define(("FACULA_PARAM_NAME" + number).c_str(),
                params.names[i] ? params.names[i] : "p" + number);
  }
}

uint64_t param_bits(const Params& params) {
  uint64_t bits = 0;
  for (int i = 0; i < params.count; ++i) bits = bits << 5 | uint64_t(params.dtypes[i]);
  return bits << 4 | uint64_t(params.count);
}

void write_params(const Params& params, ArgumentWriter& out) {
  for (int i = 0; i < params.count; ++i) {
    if (!is_reduced_float(params.dtypes[i])) {
      out.put_slot(params.slots[i]);
      continue;
    }
    alignas(16) unsigned char slot[16] = {};
    dispatch_dtype(params.dtypes[i], [&](auto tag) {
      using Stored = typename decltype(tag)::type;
      *reinterpret_cast<float*>(slot) =
          convert<float>(*reinterpret_cast<const Stored*>(params.slots[i]));
    });
    out.put_slot(slot);
  }
}

}  // namespace facula::cuda
