// Steps of connectionist temporal classification; built once per ISA.
#include "cpu/ctc.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

template <class T>
void advance(const T* stay, const T* move, const T* skip, const T* bar, const T* emit, int64_t n,
             T* to) {
#pragma GCC ivdep
  for (int64_t s = 0; s < n; ++s) {
    const T a = stay[s], b = move[s], c = skip[s] + bar[s];
    T top = a > b ? a : b;
    top = c > top ? c : top;
    top = top == -__builtin_inf() ? T(0) : top;  // then the sum is 0, and its logarithm -inf
    const T sum = math::exp_of_negative(a - top) + math::exp_of_negative(b - top) +
                  math::exp_of_negative(c - top);
    to[s] = top + math::log(sum) + emit[s];
  }
}

template <class T>
void posterior(const T* alpha, const T* beta, const T* emit, T loss, int64_t n, T* to) {
#pragma GCC ivdep
  for (int64_t s = 0; s < n; ++s) to[s] = math::exp(alpha[s] + beta[s] + loss - emit[s]);
}

template <class T>
void gradient(const T* log_probs, const T* part, T grad, int64_t n, T* to) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) to[c] = (math::exp(log_probs[c]) - part[c]) * grad;
}

}  // namespace

extern const CtcLoops<float> ctc_loops_f32;
extern const CtcLoops<double> ctc_loops_f64;
const CtcLoops<float> ctc_loops_f32 = {advance<float>, posterior<float>, gradient<float>};
const CtcLoops<double> ctc_loops_f64 = {advance<double>, posterior<double>, gradient<double>};

}  // namespace facula::FACULA_ISA
