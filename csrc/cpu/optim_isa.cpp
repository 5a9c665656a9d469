// The loops of the optimisers' updates; built once per ISA.
#include <utility>

#include "cpu/optim_rules.h"

namespace facula::FACULA_ISA {
namespace {

template <class R, class T, unsigned F>
void loop(void* const* operands, const double* coefficients, int64_t n) {
  constexpr unsigned used = R::slots(F);
  T k[kOptimCoefficients];
  for (int i = 0; i < kOptimCoefficients; ++i) k[i] = T(coefficients[i]);
  T* p = static_cast<T*>(operands[0]);
  const T* g = static_cast<const T*>(operands[1]);
  T* a = static_cast<T*>(operands[2]);
  T* b = static_cast<T*>(operands[3]);
  T* c = static_cast<T*>(operands[4]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T x = p[i], u{}, v{}, w{};
    if constexpr (used & 1) u = a[i];
    if constexpr (used & 2) v = b[i];
    if constexpr (used & 4) w = c[i];
    R::template update<F>(x, g[i], u, v, w, k);
    p[i] = x;
    if constexpr (used & 1) a[i] = u;
    if constexpr (used & 2) b[i] = v;
    if constexpr (used & 4) c[i] = w;
  }
}

template <class R, class T, unsigned F>
constexpr OptimLoop variant() {
  if constexpr (possible<R>(F)) return loop<R, T, F>;
  else return nullptr;
}

template <class R, unsigned... F>
constexpr OptimLoops loops_of(std::integer_sequence<unsigned, F...>) {
  return {R::template prepare<double>,
          R::slots,
          {variant<R, float, F>()...},
          {variant<R, double, F>()...}};
}

using Variants = std::make_integer_sequence<unsigned, kOptimVariants>;

}  // namespace

extern const OptimLoops optim_rules[];
const OptimLoops optim_rules[] = {
    loops_of<Sgd>(Variants{}),      loops_of<Adam>(Variants{}),    loops_of<Adamax>(Variants{}),
    loops_of<NAdam>(Variants{}),    loops_of<RAdam>(Variants{}),   loops_of<Adagrad>(Variants{}),
    loops_of<Adadelta>(Variants{}), loops_of<RmsProp>(Variants{}), loops_of<Rprop>(Variants{}),
    loops_of<Asgd>(Variants{}),
};
static_assert(sizeof(optim_rules) / sizeof(OptimLoops) == size_t(OptimRule::Count));

}  // namespace facula::FACULA_ISA
