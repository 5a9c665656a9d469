// The rules of cpu/optim_rules.h, with tensors in the place of numbers.
#include <utility>

#include "kernels/optim.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
#include "op/tensor_operators.h"

namespace facula {

// Found through the argument's namespace when the rules are instantiated.
static Tensor root(const Tensor& x) {
  return op::sqrt(x);
}
static Tensor larger(const Tensor& a, const Tensor& b) {
  return op::maximum(a, b);
}
static Tensor smaller(const Tensor& a, const Tensor& b) {
  return op::minimum(a, b);
}
static Tensor magnitude(const Tensor& x) {
  return op::abs(x);
}
static Tensor sign_of(const Tensor& x) {
  return op::sign(x);
}
static Tensor choose(const Tensor& first, const Tensor& a, const Tensor& b) {
  return op::where(first, a, b);
}
static Tensor equals(const Tensor& a, const Tensor& b) {
  return op::eq(a, b);
}
static Tensor mix(const Tensor& a, const Tensor& b, const Tensor& w) {
  return a + w * (b - a);
}
static Tensor power(const Tensor& base, double exponent) {
  return op::pow(base, exponent);
}
static double number_of(const Tensor& x) {
  return item_of(x).to_double();
}

}  // namespace facula

#define FACULA_ISA on_tensors
#include "cpu/optim_rules.h"

namespace facula {
namespace on_tensors {
template <>
inline Tensor number<Tensor>(double x) {
  return number_tensor(Scalar(x), DType::Float64);
}
}  // namespace on_tensors

namespace {

template <class R>
using Update = void (*)(Tensor&, const Tensor&, Tensor&, Tensor&, Tensor&, const Tensor*);

template <class R, unsigned F>
constexpr Update<R> variant() {
  if constexpr (on_tensors::possible<R>(F)) return R::template update<F, Tensor>;
  else return nullptr;
}

template <class R, unsigned... F>
void run(const OptimStep& step, OptimParameter& item, OptimScalars& scalars,
         std::integer_sequence<unsigned, F...>) {
  static constexpr Update<R> updates[] = {variant<R, F>()...};
  Tensor k[kOptimCoefficients];
  bool tensors = false;
  for (const OptimOption& o : step.options) tensors = tensors || o.tensor.defined();
  unsigned flags;
  if (tensors) {
    Tensor options[16];
    for (size_t i = 0; i < step.options.size(); ++i)
      options[i] = step.options[i].tensor.defined()
                       ? step.options[i].tensor
                       : on_tensors::number<Tensor>(step.options[i].value);
    flags = R::template prepare<Tensor>(step.flags, options, scalars, k);
  } else {
    double options[16] = {}, numbers[kOptimCoefficients] = {};
    for (size_t i = 0; i < step.options.size(); ++i) options[i] = step.options[i].value;
    flags = R::template prepare<double>(step.flags, options, scalars, numbers);
    for (int i = 0; i < kOptimCoefficients; ++i) k[i] = weak_number_tensor(Scalar(numbers[i]));
  }

  const unsigned slots = R::slots(flags);
  const bool pairs = item.param.is_complex();
  // Where the tape records, what it saves must not be what is written below.
  auto before = [&](const Tensor& t) {
    Tensor real = pairs ? op::view_as_real(t) : t;
    return step.differentiable ? op::clone(real) : real;
  };
  Tensor p = before(item.param), state[kOptimSlots];
  for (int i = 0; i < kOptimSlots; ++i)
    if (slots & (1u << i)) state[i] = before(item.state[i]);
  updates[flags](p, pairs ? op::view_as_real(item.grad) : item.grad, state[0], state[1], state[2],
                 k);
  auto write = [&](const Tensor& to, const Tensor& value) {
    op::copy_(pairs ? op::view_as_real(to) : to, value);
  };
  for (int i = 0; i < kOptimSlots; ++i)
    if (slots & (1u << i)) write(item.state[i], state[i]);
  write(item.param, p);
}

}  // namespace

void optimizer_step_on_tensors(const OptimStep& step, OptimParameter& item, OptimScalars& scalars) {
  using namespace on_tensors;
  const auto variants = std::make_integer_sequence<unsigned, kOptimVariants>{};
  switch (step.rule) {
    case OptimRule::Sgd: return run<Sgd>(step, item, scalars, variants);
    case OptimRule::Adam: return run<Adam>(step, item, scalars, variants);
    case OptimRule::Adamax: return run<Adamax>(step, item, scalars, variants);
    case OptimRule::NAdam: return run<NAdam>(step, item, scalars, variants);
    case OptimRule::RAdam: return run<RAdam>(step, item, scalars, variants);
    case OptimRule::Adagrad: return run<Adagrad>(step, item, scalars, variants);
    case OptimRule::Adadelta: return run<Adadelta>(step, item, scalars, variants);
    case OptimRule::RmsProp: return run<RmsProp>(step, item, scalars, variants);
    case OptimRule::Rprop: return run<Rprop>(step, item, scalars, variants);
    case OptimRule::Asgd: return run<Asgd>(step, item, scalars, variants);
    case OptimRule::Count: break;
  }
}

}  // namespace facula
