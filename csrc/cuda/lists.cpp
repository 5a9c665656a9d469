#include "cuda/lists.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "cuda/kernel_types.h"
#include "cuda/tensor_list.h"
#include "cuda/translate.h"
#include "op/hooks/lists.h"

namespace facula::cuda {
namespace {

constexpr int kOperands = 2 + kOptimSlots;
constexpr const char* kRules[] = {"SgdUpdate",   "AdamUpdate",    "AdamaxUpdate",   "NAdamUpdate",
                                  "RAdamUpdate", "AdagradUpdate", "AdadeltaUpdate", "RmsPropUpdate",
                                  "RpropUpdate", "AsgdUpdate"};
static_assert(std::size(kRules) == size_t(OptimRule::Count));

char* start(const TensorImpl* t) {
  return static_cast<char*>(t->storage->data) + t->offset * int64_t(item_size(t->dtype));
}

// Works that one kernel with one set of coefficients can do.
bool alike(const OptimWork& a, const OptimWork& b) {
  if (a.flags != b.flags || a.compute != b.compute || !std::equal(a.k, std::end(a.k), b.k))
    return false;
  for (int o = 0; o < kOperands; ++o)
    if (!a.operands[o] != !b.operands[o] ||
        (a.operands[o] && (a.operands[o]->dtype != b.operands[o]->dtype ||
                           a.operands[o]->device != b.operands[o]->device)))
      return false;
  return true;
}

// The flags that a step may have or not, as its number decides.
unsigned changing_flags(OptimRule rule) {
  return rule == OptimRule::RAdam ? kRectified : rule == OptimRule::Asgd ? kAveraged : 0u;
}

// With `counted`, the last pointer of each set leads to its coefficients.
void step_alike(OptimRule rule, const OptimWork& first, std::span<const ListSet> sets, int operands,
                bool counted) {
  static auto* kernels = new KernelTable;
  const int device = first.operands[0]->device.index;
  use_device(device);
  KernelKey key;
  uint64_t dtypes = 0;
  for (const TensorImpl* t : first.operands)
    dtypes = dtypes << 6 | (t ? uint64_t(t->dtype) + 1 : 0);
  key.bits[0] = dtypes;
  key.bits[1] = uint64_t(rule) | uint64_t(first.flags) << 8 | uint64_t(first.compute) << 16 |
                uint64_t(counted) << 24;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"optim.cuh", kernel_name(kRules[int(rule)]), {}};
    define_list(text, operands);
    text.define("FACULA_RULE", kRules[int(rule)]);
    text.define("FACULA_FLAGS", std::to_string(first.flags));
    text.define("FACULA_COMPUTE", device_type(first.compute));
    text.define("FACULA_COUNTED", counted ? "1" : "0");
    text.define("FACULA_EITHER", std::to_string(counted ? changing_flags(rule) : 0));
    constexpr const char* kNames[] = {"FACULA_PARAM", "FACULA_GRAD", "FACULA_STATE0",
                                      "FACULA_STATE1", "FACULA_STATE2"};
    size_t widest = 1;
    for (int o = 0; o < kOperands; ++o) {
      const TensorImpl* t = first.operands[o] ? first.operands[o] : first.operands[0];
      text.define(kNames[o], device_type(t->dtype));
      widest = std::max(widest, item_size(t->dtype));
    }
    text.define("FACULA_VECTOR", std::to_string(16 / widest));
    return text;
  });
  launch_list(
      function, sets, operands,
      [&](ArgumentWriter& out, int64_t) {
        if (counted) return;
        for (double k : first.k) {
          if (first.compute == DType::Float64) out.put<double>(k);
          else out.put<float>(float(k));
        }
      },
      current_stream(device));
}

void optimizer_step(OptimRule rule, unsigned, std::span<const OptimWork> works) {
  std::vector<bool> done(works.size());
  std::vector<ListSet> sets;
  for (size_t i = 0; i < works.size(); ++i) {
    if (done[i]) continue;
    sets.clear();
    int operands = 0;
    for (size_t j = i; j < works.size(); ++j) {
      if (done[j] || !alike(works[i], works[j])) continue;
      done[j] = true;
      ListSet& set = sets.emplace_back();
      set.count = works[j].operands[0]->numel;
      operands = 0;
      for (const TensorImpl* t : works[j].operands)
        if (t) set.pointers[operands++] = start(t);
    }
    step_alike(rule, works[i], sets, operands, false);
  }
}

constexpr int64_t kRow = 12;  // doubles: coefficients, flags, padding

// Advances the scalar state of parameters and returns their coefficients, a row for each.
Tensor prepare_rows(OptimRule rule, unsigned flags, const DeviceOptions& options, bool first,
                    DType scalar, int scalars, std::span<const ListSet> sets, Device where) {
  static auto* kernels = new KernelTable;
  KernelKey key;
  key.bits[0] = uint64_t(rule) | uint64_t(flags) << 8 | uint64_t(scalar) << 16;
  CuFunction function = kernels->find(key).on(where.index, [&] {
    KernelText text{"optim_prepare.cuh", "facula_optim_prepare", {}};
    define_list(text, std::max(scalars, 1));
    const std::string update = kRules[int(rule)];
    text.define("FACULA_RULE", update.substr(0, update.size() - std::string("Update").size()));
    text.define("FACULA_FLAGS", std::to_string(flags));
    text.define("FACULA_SCALAR", device_type(scalar));
    text.define("FACULA_SCALARS", std::to_string(scalars));
    return text;
  });
  Tensor rows = empty_tensor(Dims{int64_t(sets.size()), kRow}, DType::Float64, where);
  launch_list(
      function, sets, std::max(scalars, 1),
      [&](ArgumentWriter& out, int64_t earlier) {
        out.put<void*>(rows.data_as<double>() + earlier * kRow);
        out.put<int64_t>(first);
        for (double value : options.value) out.put(value);
        for (const Tensor& t : options.given)
          out.put<const void*>(t.defined() ? t.data() : nullptr);
      },
      current_stream(where.index));
  return rows;
}

void counted_step(OptimRule rule, const DeviceOptions& options,
                  std::span<const CountedWork> works) {
  std::vector<bool> done(works.size());
  std::vector<ListSet> sets, counts;
  for (size_t i = 0; i < works.size(); ++i) {
    if (done[i]) continue;
    sets.clear();
    counts.clear();
    const CountedWork& one = works[i];
    const Device where = one.work.operands[0]->device;
    use_device(where.index);
    int operands = 0, scalars = 0;
    while (scalars < 3 && one.scalars[scalars].defined()) ++scalars;
    const DType scalar = scalars ? one.scalars[0].dtype() : DType::Float32;
    for (size_t j = i; j < works.size(); ++j) {
      const CountedWork& other = works[j];
      if (done[j] || other.first != one.first || !alike(one.work, other.work) ||
          (scalars && other.scalars[0].dtype() != scalar))
        continue;
      done[j] = true;
      ListSet& count = counts.emplace_back();
      count.count = 1;
      for (int s = 0; s < scalars; ++s) count.pointers[s] = other.scalars[s].data();
      ListSet& set = sets.emplace_back();
      set.count = other.work.operands[0]->numel;
      operands = 0;
      for (const TensorImpl* t : other.work.operands)
        if (t) set.pointers[operands++] = start(t);
    }
    const Tensor rows =
        prepare_rows(rule, one.work.flags, options, one.first, scalar, scalars, counts, where);
    for (size_t j = 0; j < sets.size(); ++j)
      sets[j].pointers[operands] = rows.data_as<double>() + int64_t(j) * kRow;
    step_alike(rule, one.work, sets, operands + 1, true);
  }
}

// The tensors by dtype: `work` is called with those of each.
template <class F>
void for_each_dtype(TensorSpan tensors, F&& work) {
  std::vector<ListSet> sets;
  std::vector<bool> done(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (done[i] || tensors[i].numel() == 0) continue;
    sets.clear();
    for (size_t j = i; j < tensors.size(); ++j) {
      if (tensors[j].dtype() != tensors[i].dtype()) continue;
      done[j] = true;
      sets.push_back({tensors[j].numel(), {tensors[j].data()}});
    }
    work(tensors[i].dtype(), std::span<const ListSet>(sets));
  }
}

void scale(TensorSpan tensors, const Tensor& factor, const Tensor& found) {
  static auto* kernels = new KernelTable;
  const int device = factor.device().index;
  use_device(device);
  for_each_dtype(tensors, [&](DType dtype, std::span<const ListSet> sets) {
    KernelKey key;
    key.bits[0] = uint64_t(dtype) | uint64_t(factor.dtype()) << 8 | uint64_t(found.defined()) << 16;
    CuFunction function = kernels->find(key).on(device, [&] {
      KernelText text{"scale_list.cuh", "facula_scale_list", {}};
      define_list(text, 1);
      text.define("FACULA_DTYPE", device_type(dtype));
      text.define("FACULA_COMPUTE", device_type(is_reduced_float(dtype) ? DType::Float32 : dtype));
      text.define("FACULA_FACTOR", device_type(factor.dtype()));
      text.define("FACULA_CHECK", found.defined() ? "1" : "0");
      text.define("FACULA_VECTOR", std::to_string(std::max<size_t>(16 / item_size(dtype), 1)));
      return text;
    });
    launch_list(
        function, sets, 1,
        [&](ArgumentWriter& out, int64_t) {
          out.put<const void*>(factor.data());
          out.put<void*>(found.defined() ? found.data() : nullptr);
        },
        current_stream(device));
  });
}

void formula(const char* body, TensorSpan results, std::span<const TensorSpan> inputs,
             std::span<const double> numbers) {
  static auto* kernels = new KernelTable;
  const int device = results[0].device().index;
  const DType dtype = results[0].dtype();
  const int operands = 1 + int(inputs.size()) + !numbers.empty();
  use_device(device);
  KernelKey key;
  key.text[0] = body;
  key.bits[0] = uint64_t(dtype) | uint64_t(operands) << 8 | uint64_t(!numbers.empty()) << 16;
  CuFunction function = kernels->find(key).on(device, [&] {
    KernelText text{"formula_list.cuh", "facula_formula_list", {}};
    define_list(text, operands);
    text.define("FACULA_DTYPE", device_type(dtype));
    text.define("FACULA_COMPUTE", device_type(is_reduced_float(dtype) ? DType::Float32 : dtype));
    text.define("FACULA_INPUTS", std::to_string(inputs.size()));
    text.define("FACULA_NUMBER", numbers.empty() ? "0" : "1");
    text.define("FACULA_BODY", body);
    text.define("FACULA_VECTOR", std::to_string(16 / item_size(dtype)));
    return text;
  });
  std::vector<ListSet> sets(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    sets[i].count = results[i].numel();
    int next = 0;
    sets[i].pointers[next++] = results[i].data();
    for (const TensorSpan& list : inputs) sets[i].pointers[next++] = list[i].data();
    if (!numbers.empty()) sets[i].pointers[next] = std::bit_cast<void*>(numbers[i]);
  }
  launch_list(function, sets, operands, [](ArgumentWriter&, int64_t) {}, current_stream(device));
}

Tensor norm_parts(TensorSpan tensors, double order) {
  static auto* kernels = new KernelTable;
  const Device where = tensors[0].device();
  use_device(where.index);
  DType compute = DType::Float32;
  std::vector<ListSet> all;
  for (const Tensor& t : tensors) {
    if (to_real(t.dtype()) == DType::Float64) compute = DType::Float64;
    all.push_back({t.numel(), {t.data()}});
  }
  const int kind = std::isinf(order) ? 0 : order == 1 ? 1 : order == 2 ? 2 : 3;
  Tensor parts = empty_tensor(Dims{list_blocks(all)}, compute, where);
  int64_t used = 0;
  for_each_dtype(tensors, [&](DType dtype, std::span<const ListSet> sets) {
    KernelKey key;
    key.bits[0] = uint64_t(dtype) | uint64_t(compute) << 8 | uint64_t(kind) << 16;
    CuFunction function = kernels->find(key).on(where.index, [&] {
      KernelText text{"norm_list.cuh", "facula_norm_list", {}};
      define_list(text, 1);
      text.define("FACULA_DTYPE", device_type(dtype));
      text.define("FACULA_COMPUTE", device_type(compute));
      text.define("FACULA_ORDER", std::to_string(kind));
      text.define("FACULA_VECTOR", std::to_string(std::max<size_t>(16 / item_size(dtype), 1)));
      return text;
    });
    launch_list(
        function, sets, 1,
        [&](ArgumentWriter& out, int64_t earlier) {
          out.put<void*>(parts.data() + (used + earlier) * int64_t(item_size(compute)));
          if (compute == DType::Float64) out.put<double>(order);
          else out.put<float>(float(order));
        },
        current_stream(where.index));
    used += list_blocks(sets);
  });
  return parts;
}

}  // namespace

void register_lists() {
  device_lists.optimizer_step.set(translate<optimizer_step>);
  device_lists.counted_step.set(translate<counted_step>);
  device_lists.scale.set(translate<scale>);
  device_lists.formula.set(translate<formula>);
  device_lists.norm_parts.set(translate<norm_parts>);
}

}  // namespace facula::cuda
