#include "cuda/losses.h"

#include "cuda/kernel_types.h"
#include "cuda/line.h"
#include "cuda/translate.h"
#include "op/hooks/losses.h"

namespace facula::cuda {
namespace {

const void* pointer(const Tensor& t) {
  return t.defined() ? t.data() : nullptr;
}

// What specialises these kernels beside the lines.
struct Variant {
  DType item, compute;
  bool weighted, smooth;
  uint64_t bits() const {
    return uint64_t(item) | uint64_t(compute) << 5 | uint64_t(weighted) << 10 |
           uint64_t(smooth) << 11;
  }
  void define(KernelText& text) const {
    text.define("FACULA_ITEM", device_type(item));
    text.define("FACULA_WEIGHTED", weighted ? "1" : "0");
    text.define("FACULA_SMOOTH", smooth ? "1" : "0");
  }
};

CuFunction line_kernel(const char* file, const char* name, const LinePlan& plan, const Variant& v,
                       int device) {
  static auto* kernels = new KernelTable;
  use_device(device);
  KernelKey key;
  key.text[0] = file;
  key.bits[0] = plan.bits() | v.bits() << 16;
  return kernels->find(key).on(device, [&] {
    KernelText text{file, name, {}};
    plan.define(text, v.compute);
    v.define(text);
    return text;
  });
}

void cross_entropy(const ClassLabels& t, const Tensor& in, double smoothing, const Tensor& loss,
                   const Tensor& sums, const Tensor& counted) {
  const int device = in.device().index;
  const LinePlan plan(t.batch, t.classes, t.inner, 1, {&in});
  const Variant variant{in.dtype(), loss.dtype(), t.weight.defined(), smoothing != 0};
  CuFunction function =
      line_kernel("cross_entropy.cuh", "facula_cross_entropy", plan, variant, device);
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "cross_entropy", t.classes, kLabels));
  plan.write(arguments);
  arguments.put(pointer(in));
  arguments.put(pointer(t.labels));
  arguments.put(pointer(t.weight));
  arguments.put(pointer(loss));
  arguments.put(pointer(sums));
  arguments.put<const void*>(sums.data() + size_t(loss.numel()) * sums.item_size());
  arguments.put(pointer(counted));
  arguments.put(t.ignored);
  arguments.put(smoothing);
  launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
}

void cross_entropy_grad(const ClassLabels& t, const Tensor& in, double smoothing,
                        const Tensor& grad, const Tensor& sums, const Tensor& out) {
  const int device = in.device().index;
  const LinePlan plan(t.batch, t.classes, t.inner, 1, {&in, &out});
  const Variant variant{in.dtype(), grad.dtype(), t.weight.defined(), smoothing != 0};
  CuFunction function =
      line_kernel("cross_entropy_grad.cuh", "facula_cross_entropy_grad", plan, variant, device);
  ArgumentWriter arguments;
  plan.write(arguments);
  arguments.put(pointer(in));
  arguments.put(pointer(t.labels));
  arguments.put(pointer(t.weight));
  arguments.put(pointer(grad));
  arguments.put(pointer(sums));
  arguments.put<const void*>(sums.data() + size_t(grad.numel()) * sums.item_size());
  arguments.put(pointer(out));
  arguments.put(t.ignored);
  arguments.put(smoothing);
  launch_kernel(function, plan.launch(), current_stream(device), arguments.data());
}

void run_nll(const ClassLabels& t, const Tensor& items, const Tensor& samples,
             const Tensor& counted, bool derivative) {
  static auto* kernels = new KernelTable;
  const int64_t count = t.batch * t.inner;
  if (count == 0) return;
  const int device = items.device().index;
  use_device(device);
  const Variant variant{items.dtype(), samples.dtype(), t.weight.defined(), false};
  KernelKey key;
  key.bits[0] = variant.bits() | uint64_t(derivative) << 12;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"nll_loss.cuh", "facula_nll_loss", {}};
    variant.define(text);
    text.define("FACULA_COMPUTE", device_type(variant.compute));
    text.define("FACULA_KIND", derivative ? "1" : "0");
    return text;
  });
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "nll_loss", t.classes, kLabels));
  arguments.put(count);
  arguments.put(t.inner);
  arguments.put(pointer(items));
  arguments.put(pointer(t.labels));
  arguments.put(pointer(t.weight));
  arguments.put(pointer(samples));
  arguments.put(pointer(counted));
  arguments.put(t.ignored);
  constexpr unsigned kThreads = 256;
  launch_kernel(function,
                {.grid_x = unsigned((count + kThreads - 1) / kThreads), .block_x = kThreads},
                current_stream(device), arguments.data());
}

void nll_loss(const ClassLabels& t, const Tensor& in, const Tensor& loss, const Tensor& counted) {
  run_nll(t, in, loss, counted, false);
}
void nll_loss_grad(const ClassLabels& t, const Tensor& grad, const Tensor& out) {
  run_nll(t, out, grad, Tensor(), true);
}

void run_margin(const Tensor& in, const Tensor& labels, const Tensor& loss, const Tensor& out) {
  static auto* kernels = new KernelTable;
  const int device = in.device().index;
  use_device(device);
  const bool derivative = out.defined();
  KernelKey key;
  key.bits[0] = uint64_t(in.dtype()) | uint64_t(derivative) << 5;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"multilabel_margin.cuh", "facula_multilabel_margin", {}};
    text.define("FACULA_ITEM", device_type(in.dtype()));
    text.define("FACULA_COMPUTE", device_type(loss.dtype()));
    text.define("FACULA_KIND", derivative ? "1" : "0");
    return text;
  });
  const int64_t classes = in.size(-1);
  ArgumentWriter arguments;
  arguments.put(fault_site(device, "multilabel_margin_loss", classes, kLabels));
  for (const Tensor* t : {&in, &labels, &loss, &out}) arguments.put(pointer(*t));
  arguments.put(classes);
  launch_kernel(function, {.grid_x = unsigned(in.numel() / classes), .block_x = 128},
                current_stream(device), arguments.data());
}

void multilabel_margin(const Tensor& in, const Tensor& labels, const Tensor& loss) {
  run_margin(in, labels, loss, Tensor());
}
void multilabel_margin_grad(const Tensor& in, const Tensor& labels, const Tensor& grad,
                            const Tensor& out) {
  run_margin(in, labels, grad, out);
}

}  // namespace

void register_losses() {
  device_losses.multilabel_margin.set(translate<multilabel_margin>);
  device_losses.multilabel_margin_grad.set(translate<multilabel_margin_grad>);
  device_losses.cross_entropy.set(translate<cross_entropy>);
  device_losses.cross_entropy_grad.set(translate<cross_entropy_grad>);
  device_losses.nll_loss.set(translate<nll_loss>);
  device_losses.nll_loss_grad.set(translate<nll_loss_grad>);
}

}  // namespace facula::cuda
