// Binomial counts, by the two methods whose draws PyTorch makes.
#include <cmath>

#include "kernels/random_stream.h"
#include "kernels/samplers.h"
#include "op/elementwise.h"
#include "op/kernels/random.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

template <class T>
void fill_counts(const Tensor& out, const Tensor& count, const Tensor& prob, RandomStream& stream) {
  const Tensor trials = op::contiguous(op::_to_copy(count, DTypeOf<T>::value));
  const Tensor odds = op::contiguous(op::_to_copy(prob, DTypeOf<T>::value));
  const T *n = trials.data_as<T>(), *p = odds.data_as<T>();
  fill_in_memory_order<T>(out, [&](T* to, int64_t m) {
    for (int64_t i = 0; i < m; ++i) to[i] = samplers::binomial(*n++, *p++, stream);
  });
}

}  // namespace

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  const DType d = count.dtype();
  for (DType given : {d, prob.dtype()})
    if (!is_floating(given) || item_size(given) < 2)
      value_error("count and prob must be float16, bfloat16, float32 or float64, got ", given);
  if (prob.dtype() != d)
    runtime_error("count and prob must have the same dtype, got ", d, " and ", prob.dtype());
  const Tensor* both[] = {&count, &prob};
  const Device device = common_device(both, 2);
  const Dims shape = broadcast_shapes(count.sizes(), prob.sizes());
  Tensor out = empty_tensor(shape, d, device);
  if (!begins_writing(out)) return out;
  GradGuard off(false);
  const Tensor n = op::expand(count, shape), p = op::expand(prob, shape);
  if (out.is_cuda()) {
    device_random.sample(out, Sampled::Binomial, n, p, generator);
    return out;
  }
  for_each_value(n, [](double trials) {  // the gaps between successes would never end
    if (std::isinf(trials) && trials > 0) value_error("count must be finite, got ", trials);
  });
  RandomStream stream(generator, device);
  if (d == DType::Float64) fill_counts<double>(out, n, p, stream);
  else fill_counts<float>(out, n, p, stream);
  return out;
}

}  // namespace facula::kernels
