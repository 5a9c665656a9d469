// Losses over classes, on contiguous host memory: logits (batch, classes, inner), one class for
// each of (batch, inner).
#pragma once
#include <cstdint>

namespace facula {

template <class T>
struct ClassTargets {
  int64_t batch, classes, inner;
  const int64_t* target;
  const T* weight;  // of each class, or null
  int64_t ignored;  // targets that do not count

  int64_t count() const { return batch * inner; }
  T weight_of(int64_t label) const { return weight ? weight[label] : T(1); }
};

template <class T>
struct CrossEntropy {
  ClassTargets<T> targets;
  const T* input;
  double smoothing;
  T* largest;  // of each sample, (batch, inner)
  T* log_sum;
};
// Labels have been checked. Writes the loss of every sample and returns the weights' sum.
template <class T>
T cpu_cross_entropy(const CrossEntropy<T>& c, T* loss);
template <class T>
void cpu_cross_entropy_backward(const CrossEntropy<T>& c, const T* grad, T* input_grad);

}  // namespace facula
