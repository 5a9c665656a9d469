// Elementwise work on the device: one launch for any formula, dtypes and layout.
#pragma once
#include <cstdint>

#include "core/dtype.h"
#include "cuda/jit.h"
#include "cuda/layout.h"

namespace facula::cuda {

constexpr int kLaunchParams = 10;

// Numbers handed to a formula: 16-byte slots that hold a value of the given dtype, in the CPU's own
// representation. A Float64 is narrowed for formulas that compute in float32, so that they stay
// float32 formulas.
struct Params {
  int count = 0;
  DType dtypes[kLaunchParams];
  const char* names[kLaunchParams];  // in the formula; null: p0, p1, ...
  alignas(16) unsigned char slots[kLaunchParams][16];

  // A further parameter; the caller writes its value into the slot.
  unsigned char* next(DType d, const char* name) {
    dtypes[count] = d;
    names[count] = name;
    return slots[count++];
  }
  // The value as dtype `d`, e.g. add(compute, 0.5) or add(DType::Int64, n).
  template <class Value>
  void add(DType d, Value value, const char* name = nullptr) {
    unsigned char* slot = next(d, name);
    dispatch_dtype(d, [&](auto tag) {
      using Stored = typename decltype(tag)::type;
      *reinterpret_cast<Stored*>(slot) = convert<Stored>(value);
    });
  }
};

struct ElementwiseLaunch {
  const char* name = "elementwise";  // of the operator, for profilers and error texts
  // An expression over a, b, c, ... (the inputs), the parameters, `index`, the functions of
  // _kernels/math.cuh and special.cuh, and inf, nan, pi; T is the compute type, R its real type. Or
  // a function body with `return`. Identified by address: it must live and stay the same for ever
  // (see intern), and go with the same parameter names.
  const char* body = nullptr;
  int inputs = 0;                  // up to 7, numbers not counted
  void* ptrs[kLaunchOperands];     // result first
  DType dtypes[kLaunchOperands];   // result first
  DType compute = DType::Float32;  // small floats compute as Float32
  // What the formula's value becomes before it is stored as dtypes[0]; None: the compute type. It
  // matters where the two differ: uint8 sums wrap before they are stored as int32.
  DType result = DType::None;
  uint8_t masks = 0;  // bit i: input i reaches the formula as a bool
  // bit i: input i is no input but a number. It travels with the parameters, under the name that
  // the formula gives it, and the inputs after it move up.
  uint8_t numbers = 0;
  // The body reads `index`, the row-major position of the element; dimensions keep their order.
  bool uses_index = false;
  int ndim = 0;  // outermost first, as tensors have them
  int64_t sizes[kLaunchDims];
  int64_t strides[kLaunchOperands][kLaunchDims];  // bytes; 0 where an input is broadcast
  Params params;
};

// What formulas call operand i: a, b, c, ...
const char* operand_name(int i);

// Queues the work. Nothing is launched for empty shapes. The result must not overlap an input
// except as the very same elements.
void launch_elementwise(const ElementwiseLaunch& launch, int device, CuStream stream);
void launch_elementwise(const ElementwiseLaunch& launch);  // current device and stream

// The kernel that a launch would use, as text; needs no device.
KernelText elementwise_text(const ElementwiseLaunch& launch);

}  // namespace facula::cuda
