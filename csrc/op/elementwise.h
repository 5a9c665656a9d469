// The elementwise family: promotion, broadcasting, result layout and the drive over loops.
#pragma once
#include "op/def.h"
#include "op/loop_types.h"

namespace facula {

constexpr int kMaxInputs = 5;

enum class Promote : uint8_t { Common, Float, First };  // Float: integers go to the default float
enum class OutKind : uint8_t { Compute, Bool, Real };
enum class ParamKind : uint8_t { Compute, Real, Int, Bool };

// How arguments of a category that has no loop are refused, where there are words of their own.
struct Refusal {
  Category category = Category::Bool;
  ErrorKind kind = ErrorKind::Type;
  const char* words = nullptr;
};

struct ElementwiseDef {
  uint8_t inputs;
  uint8_t operands[kMaxInputs];  // indices of the arguments that are operands
  uint8_t bool_operands;         // bit i: operand i is a mask and takes no part in promotion
  Promote promote;
  OutKind out;
  uint32_t dtypes;  // bit per compute dtype that has a loop
  uint8_t params;
  uint8_t param_args[kMaxInputs];
  ParamKind param_kinds[kMaxInputs];
  const Loop* loops[3];     // by ISA level: baseline, v3, v4; each a table over dtypes
  const RowsLoop* rows[3];  // as `loops`; null where rows are handled one by one
  const char* formula[4];   // by category, for devices that compile at run time
  bool costly;  // of floats: computing takes longer than memory does, as far as one processor goes
  // Refuses arguments (a zero divisor) before anything is written; null where all are welcome.
  void (*check)(const Value* args, DType compute);
  // Another definition over the first operands that gives the same values sooner; null where none.
  const ElementwiseDef* (*shortcut)(const Value* args, DType compute);
  // Writes to a tensor whose elements repeat, in the place of a loop; null where that is refused.
  void (*into_repeated)(const Value* args, const Tensor& out);
  Refusal refusal;
};

void elementwise_kernel(const OpDef& op, const Value* args, Rets& rets);

// PyTorch's categories: tensors with dimensions, then 0-dim tensors, then numbers.
class Promotion {
 public:
  void add(const Tensor& t) {
    if (t.is_weak()) add(category(t.dtype()));
    else if (t.dim() > 0) dims_ = promote_types(dims_, t.dtype());
    else zero_ = promote_types(zero_, t.dtype());
  }
  void add(const Value& v) { v.is_tensor() ? add(v.tensor()) : add(v.scalar().category()); }
  void add(Category c) {
    constexpr DType by[] = {DType::Bool, DType::Int64, DType::Float32, DType::Complex64};
    DType d = c == Category::Floating  ? default_dtype()
              : c == Category::Complex ? default_complex_dtype()
                                       : by[int(c)];
    weak_ = promote_types(weak_, d);
  }
  DType result() const { return combine(dims_, combine(zero_, weak_)); }

 private:
  static DType combine(DType higher, DType lower) {
    if (higher == DType::None) return lower;
    if (lower == DType::None || is_complex(higher)) return higher;
    if (is_floating(higher)) return is_complex(lower) ? complex_of(higher) : higher;
    if (higher == DType::Bool || category(lower) > Category::Integral)
      return promote_types(higher, lower);
    return higher;
  }
  static DType complex_of(DType d) {
    return d == DType::Float64 ? DType::Complex128 : DType::Complex64;
  }
  DType dims_ = DType::None, zero_ = DType::None, weak_ = DType::None;
};

constexpr DType compute_dtype(DType d) {
  return is_reduced_float(d) ? DType::Float32 : d;
}
std::string dtype_set_text(uint32_t mask);

// The layout of a fresh result: that of the inputs where they agree, as PyTorch's iterator does.
Dims result_strides(IntSpan shape, const Tensor* const* inputs, int n);
// Prepares a destination of given shape and dtype: checks, resizes (out=) or makes it.
void prepare_result(Rets& rets, int i, IntSpan shape, DType dtype, Device device);
// Raises when writing `out` would change what is still to be read from `in`. True when that cannot
// be told from the geometry: `in` must then be copied before.
[[nodiscard]] bool check_overlap(const Tensor& out, const Tensor& in);
// The device that all tensors share; a 0-dim CPU tensor goes with any.
Device common_device(const Tensor* const* tensors, int n);

extern void (*warn)(const char* message);

}  // namespace facula
