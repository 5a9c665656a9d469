// One step of the recursions of connectionist temporal classification, for all states of a
// sequence at once, in logarithms.
#pragma once
#include <cstdint>

namespace facula {

template <class T>
struct CtcLoops {
  // to = log(e^stay + e^move + e^(skip + bar)) + emit
  void (*advance)(const T* stay, const T* move, const T* skip, const T* bar, const T* emit,
                  int64_t n, T* to);
  // The probability of each state, given the whole sequence, whose loss is given. Both alpha and
  // beta count what the state emits.
  void (*posterior)(const T* alpha, const T* beta, const T* emit, T loss, int64_t n, T* to);
  // (e^log_probs - part) * grad
  void (*gradient)(const T* log_probs, const T* part, T grad, int64_t n, T* to);
};

template <class T>
const CtcLoops<T>& ctc_loops();

}  // namespace facula
