// Reductions on the device, driven by four expressions.
#pragma once
#include "cuda/elementwise.h"

namespace facula::cuda {

// sum:    {"0", "a", "a + b", "a"}            mean: finalise "a / p0"
// amax:   {"lowest", "a", "maximum(a, b)", "a"}
// any:    {"False", "a", "a | b", "a"} with compute Bool
// argmax: accumulator "Indexed<T>" of 16 bytes for T up to 8 bytes,
//         {"return {lowest, 0x7fffffffffffffff};", "indexed(a, index)", "larger(a, b)", "a.index"}
// var:    accumulator "Moments<T>" of three T, {"return {0, 0, 0};", "moments(a)", "merge(a, b)",
//         "a.squares / (a.count - p0)"}
// Texts are identified by address, as ElementwiseLaunch's body is.
struct ReduceFormula {
  const char* init = nullptr;
  const char* map = "a";  // of element `a` at row-major position `index` of the reduced part
  const char* combine = nullptr;      // of accumulators `a` and `b`; associative and commutative
  const char* finalise = "a";         // of accumulator `a`
  const char* accumulator = nullptr;  // device type; null: the compute type
  int accumulator_bytes = 0;          // its size, where one is named
};

struct ReduceLaunch {
  const char* name = "reduce";
  ReduceFormula formula;
  DType compute = DType::Float32;  // the type T of the expressions; small floats use Float32
  bool uses_index = false;         // map reads `index`: reduced dimensions keep their order
  const void* in = nullptr;
  void* out = nullptr;
  DType in_dtype = DType::Float32;
  DType out_dtype = DType::Float32;
  int ndim = 0;          // of the input, outermost first
  uint64_t reduced = 0;  // bit d: dimension d is reduced
  int64_t sizes[kLaunchDims];
  int64_t in_strides[kLaunchDims];   // bytes
  int64_t out_strides[kLaunchDims];  // bytes; not read for reduced dimensions
  Params params;
};

// Queues the work. A result over no elements is finalise(init). The order of combination depends on
// shape and device only, so results are reproducible.
void launch_reduce(const ReduceLaunch& launch, int device, CuStream stream);
void launch_reduce(const ReduceLaunch& launch);  // current device and stream

// The kernels that a launch would use on a GPU with so many multiprocessors; needs no device.
std::vector<KernelText> reduce_texts(const ReduceLaunch& launch, int multiprocessors);

}  // namespace facula::cuda
