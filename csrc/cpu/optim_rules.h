// The update of every optimiser, once: its coefficients in _kernels/optim_coefficients.h, the
// update itself in _kernels/optim_updates.h. The same text runs on numbers (the loops of
// optim_isa.cpp, which the compiler vectorises, and the kernels of cuda/lists.cpp) and on tensors
// (kernels/optim_tensors.cpp: differentiable steps). Operations are in PyTorch's order, so that
// results agree to the last digits.
#pragma once
#include <cmath>

#include "cpu/optim_loop.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {

template <class T>
FACULA_INLINE T root(T x) {
  return __builtin_sqrt(x);
}
template <>
FACULA_INLINE float root(float x) {
  return __builtin_sqrtf(x);
}
template <class T>
FACULA_INLINE T larger(T a, T b) {
  return math::maximum(a, b);
}
template <class T>
FACULA_INLINE T smaller(T a, T b) {
  return math::minimum(a, b);
}
template <class T>
FACULA_INLINE T magnitude(T x) {
  return math::abs(x);
}
template <class T>
FACULA_INLINE T sign_of(T x) {
  return math::sign(x);
}
template <class T>
FACULA_INLINE T choose(bool first, T a, T b) {
  return first ? a : b;
}
template <class T>
FACULA_INLINE bool equals(T a, T b) {
  return a == b;
}
// From a to b by the share w, exact at both ends.
template <class T>
FACULA_INLINE T mix(T a, T b, T w) {
  return w < T(0.5) ? a + w * (b - a) : b - (b - a) * (1 - w);
}
inline double power(double base, double exponent) {
  return std::pow(base, exponent);
}
inline double number_of(double x) {
  return x;
}
template <class S>
inline S number(double x) {
  return x;
}

}  // namespace facula::FACULA_ISA

#define FACULA_UPDATE FACULA_INLINE
#define FACULA_UPDATES FACULA_ISA
#include "_kernels/optim_coefficients.h"

namespace facula::FACULA_ISA {

// The flags that a rule knows, so that no impossible variant is built.
template <class R>
constexpr unsigned known_flags = 0;
template <>
inline constexpr unsigned known_flags<Sgd> = kDecay | kMomentum | kNesterov;
template <>
inline constexpr unsigned known_flags<Adam> = kDecay | kDecoupledDecay | kAmsgrad;
template <>
inline constexpr unsigned known_flags<Adamax> = kDecay;
template <>
inline constexpr unsigned known_flags<NAdam> = kDecay | kDecoupledDecay;
template <>
inline constexpr unsigned known_flags<RAdam> = kDecay | kDecoupledDecay | kRectified;
template <>
inline constexpr unsigned known_flags<Adagrad> = kDecay;
template <>
inline constexpr unsigned known_flags<Adadelta> = kDecay;
template <>
inline constexpr unsigned known_flags<RmsProp> = kDecay | kMomentum | kCentered;
template <>
inline constexpr unsigned known_flags<Rprop> = 0;
template <>
inline constexpr unsigned known_flags<Asgd> = kDecay | kAveraged;

template <class R>
constexpr bool possible(unsigned f) {
  const bool lone_nesterov = std::is_same_v<R, Sgd> && f & kNesterov && !(f & kMomentum);
  return !(f & ~known_flags<R>) && !((f & kDecay) && (f & kDecoupledDecay)) && !lone_nesterov;
}

}  // namespace facula::FACULA_ISA
