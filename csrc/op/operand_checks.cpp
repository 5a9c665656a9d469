#include "op/operand_checks.h"

#include <atomic>

#include "core/type_names.h"
#include "cpu/iterate.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::checks {

namespace {

bool is_bool(const Value& v) {
  return v.is_tensor() ? v.tensor().dtype() == DType::Bool : v.tag() == Value::Tag::Bool;
}

// A number may stand in for any operand, but here the tensor itself is looked at.
const Tensor& tensor_in(const Value& v, const char* name) {
  if (!v.is_tensor()) type_error("argument '", name, "' must be Tensor, not a number");
  return v.tensor();
}

template <class T>
bool any_zero(char* const* p, const int64_t* s, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= *reinterpret_cast<const T*>(p[0] + i * s[0]) == T(0);
  return found;
}

}  // namespace

void divisor_not_zero(const Value* args, DType compute) {
  if (!is_integral(compute)) return;
  auto refuse = [] {
    runtime_error(
        "ZeroDivisionError: the divisor holds 0, and integers have no value for the quotient. "
        "Divide floating-point numbers to get inf or nan");
  };
  const Value& divisor = args[1];
  if (args[0].is_tensor() && args[0].tensor().numel() == 0) return;  // nothing is divided
  if (!divisor.is_tensor()) {
    // In the compute type: 256 is 0 as uint8.
    alignas(16) int64_t bits[2] = {0, 0};
    divisor.scalar().store(compute, bits);
    if (bits[0] == 0) refuse();
    return;
  }
  Tensor t = divisor.tensor();
  if (!t.is_cpu() || t.numel() == 0) return;
  if (t.dtype() != compute) {
    GradGuard off(false);
    t = op::_to_copy(t, compute);
  }
  Iteration it;
  it.begin(t.sizes());
  it.add(t.data(), t.sizes(), t.strides(), int64_t(t.item_size()));
  it.finish();
  std::atomic<bool> found = false;
  it.run_parallel([&](char* const* p, const int64_t* s, int64_t n) {
    bool zero = false;
    switch (t.item_size()) {
      case 1: zero = any_zero<uint8_t>(p, s, n); break;
      case 2: zero = any_zero<uint16_t>(p, s, n); break;
      case 4: zero = any_zero<uint32_t>(p, s, n); break;
      default: zero = any_zero<uint64_t>(p, s, n);
    }
    if (zero) found.store(true, std::memory_order_relaxed);
  });
  if (found) refuse();
}

void exponent_not_negative(const Value* args, DType compute) {
  const Value& exponent = args[1];
  if (is_integral(compute) && exponent.tag() == Value::Tag::Int && exponent.to_int() < 0)
    runtime_error("Integers to negative integer powers are not allowed, got the exponent ",
                  exponent.to_int(), ". Convert the base to a floating-point dtype");
}

void no_bool_difference(const Value* args, DType) {
  const bool a = is_bool(args[0]), b = is_bool(args[1]);
  if (a && b)
    runtime_error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
  if (a || b)
    runtime_error(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
        "to invert a mask, use the `~` or `logical_not()` operator instead.");
}

void no_bool_negation(const Value* args, DType) {
  if (is_bool(args[0]))
    runtime_error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead.");
}

void order_not_negative(const Value* args, DType) {
  if (args[0].to_int() < 0)
    runtime_error("polygamma(n, x) does not support negative n. Got n = ", args[0].to_int());
}

void same_dtypes(const Value* args, DType compute) {
  if (!args[0].is_tensor() || !args[1].is_tensor() || is_complex(compute)) return;
  const DType a = args[0].tensor().dtype(), b = args[1].tensor().dtype();
  if (a != b)
    runtime_error("heaviside is not yet implemented for tensors with different dtypes. Got ", a,
                  " and ", b, "; convert one of them");
}

void end_of_one_dtype(const Value* args, DType) {
  if (!args[0].is_tensor()) return;
  const DType wanted = args[0].tensor().dtype();
  auto check = [&](const Value& v, const char* name) {
    if (v.is_tensor() && v.tensor().dtype() != wanted && !v.tensor().is_weak())
      runtime_error("expected dtype ", cpp_type_name(wanted), " for `", name, "` but got dtype ",
                    cpp_type_name(v.tensor().dtype()), ". Convert it with .to(", wanted, ")");
  };
  check(args[1], "end");
  if (args[2].is_tensor() && args[2].tensor().dim() > 0) check(args[2], "weight");
}

void no_integer_quotient(const Value* args, DType) {
  auto is_whole = [](const Value& v) {
    return v.is_tensor() ? is_integral(v.tensor().dtype(), true)
                         : v.scalar().category() <= Category::Integral;
  };
  if (!is_whole(args[1]) || !is_whole(args[2])) return;
  runtime_error(
      "Integer division with addcdiv is no longer supported: tensor1 and tensor2 are integers (",
      tensor_in(args[1], "tensor1").dtype(), " and ", tensor_in(args[2], "tensor2").dtype(),
      "). Convert one of them to a floating-point dtype, or compute self + value * "
      "trunc(tensor1 / tensor2)");
}

void fill_value_fits(const Value* args, DType) {
  const DType mask = tensor_in(args[1], "mask").dtype();
  if (mask != DType::Bool)
    runtime_error("masked_fill_ only supports boolean masks, but got mask with dtype ",
                  cpp_type_name(mask), " (", mask, "). Compare first, for example mask != 0");
  const Value& value = args[2];
  const DType d = tensor_in(args[0], "input").dtype();
  if (!value.is_tensor()) return value.scalar().check_fits(d);
  if (value.tensor().dim() != 0)
    runtime_error("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                  value.tensor().dim(), " dimension(s). Its shape is ", value.tensor().sizes());
  if (value.tensor().is_cpu()) item_of(value.tensor()).check_fits(d);
}

void one_value(const Value* args, DType) {
  const Value& value = args[1];
  const DType d = tensor_in(args[0], "input").dtype();
  if (!value.is_tensor()) return value.scalar().check_fits(d);
  if (value.tensor().dim() != 0)
    runtime_error("fill_ only supports 0-dimension value tensor but got tensor with ",
                  value.tensor().dim(), " dimensions. Its shape is ", value.tensor().sizes());
}

// Whether every element, as a double, passes; true where the data cannot be seen from here.
template <class F>
static bool every(const Tensor& t, F passes) {
  if (!t.is_cpu()) return true;
  GradGuard off(false);
  Tensor numbers = op::_to_copy(t, DType::Float64, kNoDevice, MemoryFormat::Contiguous);
  const double* p = numbers.data_as<double>();
  for (int64_t i = 0; i < numbers.numel(); ++i)
    if (!passes(p[i])) return false;
  return true;
}

void weights_not_negative(const Value* args, DType compute) {
  if (!every(tensor_in(args[0], "input"), [](double w) { return !(w < 0); }))
    runtime_error(is_integral(compute) ? "fweights" : "aweights", " cannot be negative");
}

void total_not_zero(const Value* args, DType) {
  if (!every(tensor_in(args[0], "input"), [](double w) { return w != 0; }))
    runtime_error("weights sum to zero, can't be normalized");
}

void levels_in_range(const Value* args, DType) {
  if (!every(tensor_in(args[0], "input"), [](double q) { return q >= 0 && q <= 1; }))
    runtime_error("quantile() q values must be in the range [0, 1]");
}

void variances(const Value* args, DType) {
  if (!every(tensor_in(args[0], "input"), [](double v) { return !(v < 0); }))
    value_error("var has negative entry/entries; a variance is 0 or more");
}

// The first value outside of [0, 1], or none: NaN is let through, as a loss may be NaN.
template <class T>
static const T* outside_unit(char* const* p, const int64_t* s, int64_t n) {
  auto at = [&](int64_t i) { return *reinterpret_cast<const T*>(p[0] + i * s[0]); };
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= (at(i) < T(0)) | (at(i) > T(1));
  for (int64_t i = 0; found && i < n; ++i)
    if (at(i) < T(0) || at(i) > T(1)) return reinterpret_cast<const T*>(p[0] + i * s[0]);
  return nullptr;
}

static void check_probabilities(Tensor t, DType compute, const char* name, const char* advice) {
  if (!t.is_cpu() || t.numel() == 0) return;
  if (t.dtype() != compute) {
    GradGuard off(false);
    t = op::_to_copy(t, compute);
  }
  Iteration it;
  it.begin(t.sizes());
  it.add(t.data(), t.sizes(), t.strides(), int64_t(t.item_size()));
  it.finish();
  it.run_parallel([&](char* const* p, const int64_t* s, int64_t n) {
    double bad = 0.5;
    if (compute == DType::Float32) {
      if (const float* x = outside_unit<float>(p, s, n)) bad = *x;
    } else if (const double* x = outside_unit<double>(p, s, n)) {
      bad = *x;
    }
    if (bad != 0.5)
      runtime_error("all elements of ", name, " should be between 0 and 1, but one is ", bad,
                    advice);
  });
}
void probabilities(const Value* args, DType compute) {
  if (!is_floating(compute)) return;
  check_probabilities(tensor_in(args[0], "input"), compute, "input",
                      ". Apply sigmoid() first, or use binary_cross_entropy_with_logits()");
  check_probabilities(tensor_in(args[1], "target"), compute, "target", "");
}

}  // namespace facula::checks
