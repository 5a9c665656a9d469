#include "cuda/softmax.h"

#include "cuda/kernel_types.h"
#include "cuda/line.h"
#include "cuda/translate.h"
#include "op/hooks/softmax.h"

namespace facula::cuda {
namespace {

struct Around {  // what lies before and after a dimension
  int64_t outer = 1, n = 1, inner = 1;
  Around(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d > dim ? inner : n) *= t.size(d);
  }
};

void run(const char* file, const char* name, const LinePlan& plan, DType dtype, bool logarithm,
         std::initializer_list<void*> pointers, int device) {
  static auto* kernels = new KernelTable;
  use_device(device);
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = plan.bits() | uint64_t(dtype) << 16 | uint64_t(logarithm) << 24;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{file, name, {}};
    plan.define(text, dtype);
    text.define("FACULA_ITEM", device_type(dtype));
    text.define("FACULA_KIND", logarithm ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  plan.write(arguments);
  for (void* pointer : pointers) arguments.put(pointer);
  launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
}

void forward(const Tensor& in, int64_t dim, bool logarithm, const Tensor& out) {
  const Around a(in, dim);
  run("softmax.cuh", "facula_softmax", LinePlan(a.outer, a.n, a.inner, 1, {&in, &out}), in.dtype(),
      logarithm, {in.data(), out.data()}, in.device().index);
}

void backward(const Tensor& grad, const Tensor& result, int64_t dim, bool logarithm,
              const Tensor& out) {
  const Around a(grad, dim);
  run("softmax_grad.cuh", "facula_softmax_grad",
      LinePlan(a.outer, a.n, a.inner, 2, {&grad, &result, &out}), grad.dtype(), logarithm,
      {grad.data(), result.data(), out.data()}, grad.device().index);
}

}  // namespace

void register_softmax() {
  device_softmax.forward.set(translate<forward>);
  device_softmax.backward.set(translate<backward>);
}

}  // namespace facula::cuda
