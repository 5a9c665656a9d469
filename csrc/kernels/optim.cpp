#include "kernels/optim.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/per_thread.h"
#include "cpu/optim.h"
#include "op/def.h"
#include "op/hooks/lists.h"
#include "op/ops/copying.h"
#include "op/ops/lazy.h"
#include "op/ops/mathematics.h"

namespace facula {
namespace {

bool on_plain_host(const Tensor& t) {
  return !t.defined() || !(t->keys & (kKeyCuda | kKeyMeta | kKeyWrapped | kLazyKeys));
}

bool on_one_device(const Tensor& t, Device device) {
  return !t.defined() || (t.device() == device && !(t->keys & (kKeyWrapped | kLazyKeys)));
}

void check(const OptimStep& step, const OptimParameter& item, unsigned slots) {
  const Tensor& p = item.param;
  if (!p.is_floating() && !p.is_complex())
    runtime_error(step.writer, "(): parameters must be floating point or complex, got ", p.dtype());
  if (p->flags & kInference && !thread_state.inference)
    runtime_error(
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can "
        "make a clone to get a normal tensor before doing inplace update.");
  if (!p.is_contiguous() && has_internal_overlap(p.sizes(), p.strides())) overlap_error();
  if (!same(item.grad.sizes(), p.sizes()))
    runtime_error(step.writer, "(): a gradient has shape ", item.grad.sizes(),
                  " but its parameter has ", p.sizes());
  for (int i = 0; i < kOptimSlots; ++i) {
    if (!(slots & (1u << i))) continue;
    const Tensor& s = item.state[i];
    if (!s.defined())
      runtime_error(step.writer, "(): the state of a parameter of shape ", p.sizes(),
                    " is incomplete; was the option that needs it switched on after a step?");
    if (!same(s.sizes(), p.sizes()))
      runtime_error(step.writer, "(): the state of a parameter has shape ", s.sizes(),
                    " but the parameter has ", p.sizes(),
                    "; was the parameter replaced after the first step?");
    if (!s.is_contiguous() && has_internal_overlap(s.sizes(), s.strides())) overlap_error();
    if (s.is_complex() != p.is_complex())
      runtime_error(step.writer, "(): the state of a parameter is ", s.dtype(),
                    " but the parameter is ", p.dtype());
  }
  for (const Tensor& s : item.scalars)
    if (s.defined() && s.numel() != 1)
      runtime_error(step.writer, "(): the step must have one element, got shape ", s.sizes());
}

double read_scalar(const Tensor& t) {
  if (!t.defined()) return 0;
  if (on_plain_host(t) && t.dtype() == DType::Float32) return *t.data_as<float>();
  return item_of(t.is_cpu() ? t : op::_to_copy(t, DType::None, Device{})).to_double();
}

void write_scalar(const Tensor& t, double value) {
  if (!t.defined()) return;
  if (on_plain_host(t) && t.dtype() == DType::Float32) {
    *t.data_as<float>() = float(value);
    t.bump_version();
  } else {
    op::fill_(t, Value(value));
  }
}

OptimScalars read_scalars(const OptimParameter& item) {
  OptimScalars s{};
  for (int i = 0; i < 3; ++i) s.value[i] = read_scalar(item.scalars[i]);
  s.first = item.first;
  s.single = item.scalars[0].defined() && item.scalars[0].dtype() == DType::Float32;
  return s;
}

void write_scalars(const OptimParameter& item, const OptimScalars& s) {
  for (int i = 0; i < 3; ++i) write_scalar(item.scalars[i], s.value[i]);
}

bool same_scalars(const OptimScalars& a, const OptimScalars& b) {
  return std::equal(a.value, a.value + 3, b.value) && a.first == b.first && a.single == b.single;
}

// Options that lie on a device are read where the host computes with them.
void read_options(const OptimStep& step) {
  for (OptimOption& o : step.options) {
    if (!o.on_device.defined()) continue;
    o.value = read_scalar(o.on_device);
    o.on_device = Tensor();
  }
}

// Whether a step can be made without reading anything back: what it counts lies beside the
// parameter. Rules that count nothing need that only for options on the device.
bool counts_on_device(const OptimStep& step, const OptimParameter& item) {
  const Tensor& count = item.scalars[0];
  bool options = false;
  for (const OptimOption& o : step.options) {
    if (!o.on_device.defined()) continue;
    if (o.on_device.device() != item.param.device()) return false;
    options = true;
  }
  if (!count.defined()) return options;
  for (const Tensor& s : item.scalars)
    if (s.defined() && (!on_one_device(s, item.param.device()) || s.dtype() != count.dtype()))
      return false;
  return count.dtype() == DType::Float32 || count.dtype() == DType::Float64;
}

DeviceOptions device_options(const OptimStep& step) {
  DeviceOptions options{};
  for (size_t i = 0; i < step.options.size(); ++i) {
    const OptimOption& o = step.options[i];
    options.value[i] = o.value;
    if (o.on_device.defined()) options.given[i] = op::_to_copy(o.on_device, DType::Float64);
  }
  return options;
}

void note_writes(const OptimStep& step, const OptimParameter& item, unsigned slots) {
  item.param.bump_version(step.writer);
  for (int i = 0; i < kOptimSlots; ++i)
    if (slots & (1u << i)) item.state[i].bump_version(step.writer);
}

struct WorkLists {  // kept from step to step for their memory
  std::vector<OptimWork> host, device;
  std::vector<CountedWork> counted;
};

}  // namespace

void optimizer_step(const OptimStep& step, std::span<OptimParameter> parameters) {
  const OptimLoops& loops = optim_loops(step.rule);
  if (!loops.f32[step.flags]) value_error(step.writer, "(): these options exclude each other");
  const unsigned slots = loops.slots(step.flags);
  for (const OptimParameter& item : parameters) check(step, item, slots);

  GradGuard mode(step.differentiable);
  auto& [works, device_works, counted_works] = per_thread<WorkLists>();
  works.clear();
  device_works.clear();
  counted_works.clear();
  auto step_on_tensors = [&](OptimParameter& item) {
    OptimScalars scalars = read_scalars(item);
    read_options(step);
    optimizer_step_on_tensors(step, item, scalars);
    write_scalars(item, scalars);
  };
  std::vector<Tensor> views;  // complex tensors as pairs of numbers
  // Parameters mostly agree in their steps: coefficients are computed once.
  OptimScalars given{}, result{};
  double coefficients[kOptimCoefficients] = {};
  bool prepared = false;
  unsigned flags = 0;
  for (OptimParameter& item : parameters) {
    if (item.grad.is_lazy()) item.grad = op::resolve_neg(op::resolve_conj(item.grad));
    bool host = on_plain_host(item.param) && on_plain_host(item.grad);
    bool device = item.param.is_cuda() && on_one_device(item.param, item.param.device()) &&
                  on_one_device(item.grad, item.param.device());
    for (const Tensor& s : item.state) {
      host = host && on_plain_host(s);
      device = device && on_one_device(s, item.param.device());
    }
    for (const Tensor& s : item.scalars) host = host && on_plain_host(s);
    if (step.differentiable || (!host && !device)) {
      step_on_tensors(item);
      continue;
    }
    const Tensor* tensors[] = {&item.param, &item.grad, &item.state[0], &item.state[1],
                               &item.state[2]};
    OptimWork w{};
    w.compute = DType::Float32;
    for (int o = 0; o < 5; ++o) {
      const bool used = o < 2 || slots & (1u << (o - 2));
      w.operands[o] = used ? tensors[o]->impl() : nullptr;
      if (!used) continue;
      if (item.param.is_complex()) {
        views.push_back(op::view_as_real(*tensors[o]));
        w.operands[o] = views.back().impl();
      }
      if (w.operands[o]->dtype == DType::Float64) w.compute = DType::Float64;
    }
    if (device && !is_flat(w)) {
      step_on_tensors(item);
      continue;
    }
    if (device && counts_on_device(step, item)) {
      w.flags = step.flags;
      for (const Tensor& s : item.scalars)
        if (s.defined()) s.bump_version(step.writer);
      note_writes(step, item, slots);
      counted_works.push_back({w, item.scalars, item.first});
      continue;
    }
    OptimScalars scalars = read_scalars(item);
    if (prepared && same_scalars(scalars, given)) {
      scalars = result;
    } else {
      given = scalars;
      read_options(step);
      double options[16] = {};
      for (size_t i = 0; i < step.options.size(); ++i) options[i] = step.options[i].value;
      flags = loops.prepare(step.flags, options, scalars, coefficients);
      result = scalars;
      prepared = true;
    }
    std::copy_n(coefficients, kOptimCoefficients, w.k);
    w.flags = flags;
    w.loop = (w.compute == DType::Float64 ? loops.f64 : loops.f32)[flags];
    write_scalars(item, scalars);
    note_writes(step, item, slots);
    (device ? device_works : works).push_back(w);
  }
  if (!works.empty()) cpu_optimizer_step(works);
  if (!device_works.empty()) device_lists.optimizer_step(step.rule, slots, device_works);
  if (!counted_works.empty())
    device_lists.counted_step(step.rule, device_options(step), counted_works);
}

}  // namespace facula
