// Sums, means and maxima of table rows over bags of lookups, without making the rows.
#include <algorithm>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/bags.h"
#include "kernels/destination.h"
#include "kernels/embedding.h"
#include "op/hooks/indexing.h"
#include "op/kernels/embedding.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/embedding.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// The largest element of each column over each bag, and the row that it is from.
template <class T>
void largest_of_bags(const Bags& b, const T* table, T* out, int64_t* sizes, int64_t* rows) {
  for (int64_t bag = b.begin; bag < b.end; ++bag) {
    T* __restrict most = out + bag * b.width;
    int64_t* __restrict chosen = rows + bag * b.width;
    int64_t count = 0;
    std::fill(most, most + b.width, T(0));
    std::fill(chosen, chosen + b.width, -1);
    for (int64_t i = b.offsets[bag]; i < b.offsets[bag + 1]; ++i) {
      const int64_t row = b.lookups[i];
      if (row == b.padding) continue;
      const T* __restrict from = table + row * b.apart;
      for (int64_t j = 0; j < b.width; ++j) {
        const T x = from[j];
        if (count == 0 || x > most[j] || x != x) most[j] = x, chosen[j] = row;
      }
      ++count;
    }
    sizes[bag] = count;
  }
}

void check_mode(int64_t mode) {
  if (mode < kSum || mode > kMax)
    fail(ErrorKind::Value, "mode must be 0 (sum), 1 (mean) or 2 (max), got ", mode);
}

void check_bag_arguments(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                         int64_t mode, const Tensor& per_sample_weights, bool include_last) {
  check_table(weight);
  check_lookups(indices, "indices");
  check_lookups(offsets, "offsets");
  check_mode(mode);
  if (indices.dim() != 1)
    runtime_error("input has to be a 1D Tensor of lookups, got shape ", indices.sizes());
  if (offsets.dim() != 1)
    fail(ErrorKind::Value, "offsets has to be a 1D Tensor, but got shape ", offsets.sizes());
  if (include_last && offsets.numel() == 0)
    runtime_error("include_last_offset: number of offsets should be at least 1");
  if (!is_floating(weight.dtype()) || weight.item_size() == 1)
    dtype_error(weight.dtype(), "float16, bfloat16, float32, float64");
  for (const Tensor* t : {&indices, &offsets, &per_sample_weights})
    if (t->defined() && t->device() != weight.device()) device_error(weight.device(), t->device());
  if (!per_sample_weights.defined()) return;
  if (mode != kSum)
    runtime_error(
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
        "supported for mode='sum'");
  if (per_sample_weights.dtype() != weight.dtype())
    runtime_error("expected per_sample_weights of dtype ", weight.dtype(), " as weight, got ",
                  per_sample_weights.dtype());
  if (!same(per_sample_weights.sizes(), indices.sizes()))
    runtime_error("expected per_sample_weights of shape ", indices.sizes(), " as indices, got ",
                  per_sample_weights.sizes());
}

// Where bags begin and end: offsets, with the end of the last bag behind them.
std::vector<int64_t> bag_limits(const Tensor& offsets, int64_t lookups, bool include_last) {
  const Tensor given = dense_int64(offsets);
  std::vector<int64_t> limits(given.data_as<int64_t>(), given.data_as<int64_t>() + given.numel());
  if (!include_last) limits.push_back(lookups);
  if (limits.size() > 1 && limits[0] != 0)
    runtime_error(
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
        "from position 0. However, got ",
        limits[0]);
  for (size_t i = 0; i + 1 < limits.size(); ++i)
    if (limits[i] > limits[i + 1])
      runtime_error(limits[i + 1] == lookups && i + 2 == limits.size()
                        ? "offsets[-1] can not be greater than input's length"
                        : "offsets must not decrease",
                    ": offsets[", i, "] is ", limits[i], ", the next limit ", limits[i + 1],
                    " (there are ", lookups, " indices)");
  if (!limits.empty() && limits.back() != lookups)
    runtime_error("include_last_offset: the last offset must be the number of indices, ", lookups,
                  ", got ", limits.back());
  return limits;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
    const Tensor& per_sample_weights, bool include_last_offset, int64_t padding_idx, bool, bool) {
  check_bag_arguments(weight, indices, offsets, mode, per_sample_weights, include_last_offset);
  const int64_t bags = offsets.numel() - include_last_offset, width = weight.size(1),
                count = indices.numel();
  const Device device = weight.device();
  auto integers = [&](Dims shape) { return empty_tensor(shape, DType::Int64, device); };
  Tensor offset2bag = integers(Dims{count}), sizes = integers(Dims{bags}),
         rows = integers(mode == kMax ? Dims{bags, width} : Dims{0});
  Tensor out = empty_tensor(Dims{bags, width}, weight.dtype(), device);
  if (weight.is_meta()) return {out, offset2bag, sizes, rows};
  const Tensor lookups = checked_lookups(indices, weight.size(0), ErrorKind::Runtime);
  if (weight.is_cuda()) {
    GradGuard off(false);
    Tensor limits = dense_int64(offsets);
    if (!include_last_offset) {
      const Tensor end = op::full(Dims{1}, Scalar(count), DType::Int64, std::nullopt, device);
      limits = op::cat(std::vector<Tensor>{limits, end}, 0);
    }
    if (bags && count)
      offset2bag =
          op::searchsorted(op::contiguous(op::narrow(limits, 0, 1, bags)),
                           op::arange(Scalar(count), DType::Int64, Value(), device), false, true);
    device_indexing.reduce_bags(dense_rows(weight), lookups, limits,
                                per_sample_weights.defined() ? dense(per_sample_weights) : Tensor(),
                                mode, padding_idx, out, sizes, rows);
    return {out, offset2bag, sizes, rows};
  }
  const std::vector<int64_t> limits = bag_limits(offsets, count, include_last_offset);
  int64_t* bag_of = offset2bag.data_as<int64_t>();
  for (int64_t bag = 0; bag < bags; ++bag)
    std::fill(bag_of + limits[size_t(bag)], bag_of + limits[size_t(bag) + 1], bag);
  const Tensor table = dense_rows(weight);
  const Tensor factors = per_sample_weights.defined() ? dense(per_sample_weights) : Tensor();
  const int64_t work = std::max<int64_t>(1, count / std::max<int64_t>(1, bags) * width);
  const auto bags_of = [&](int64_t b, int64_t e) {
    return Bags{lookups.data_as<int64_t>(),
                limits.data(),
                b,
                e,
                width,
                table.stride(0),
                padding_idx,
                mode == kMean};
  };
  parallel_for(0, bags, std::max<int64_t>(1, 32768 / work), [&](int64_t b, int64_t e) {
    if (mode != kMax)
      return sum_bags(weight.dtype(), bags_of(b, e), table.data(),
                      factors.defined() ? factors.data() : nullptr, out.data(),
                      sizes.data_as<int64_t>());
    dispatch_dtype(weight.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_integral_v<T> && !is_complex_v<T>)
        largest_of_bags(bags_of(b, e), table.data_as<T>(), out.data_as<T>(),
                        sizes.data_as<int64_t>(), rows.data_as<int64_t>());
    });
  });
  return {out, offset2bag, sizes, rows};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
    int64_t padding_idx) {
  return op::_embedding_bag(weight, indices, offsets, mode, per_sample_weights, include_last_offset,
                            padding_idx, scale_grad_by_freq, sparse);
}

Tensor embedding_bag_input(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                           std::optional<double> max_norm, double norm_type,
                           bool scale_grad_by_freq, std::string_view mode, bool sparse,
                           const Tensor& per_sample_weights, bool include_last_offset,
                           std::optional<int64_t> padding_idx) {
  if (weight.dtype() == DType::Int64 && is_floating(input.dtype())) {
    if (warn)
      warn(
          "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, "
          "input, ...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.");
    return embedding_bag_input(weight, input, offsets, max_norm, norm_type, scale_grad_by_freq,
                               mode, sparse, per_sample_weights, include_last_offset, padding_idx);
  }
  check_table(weight);
  check_lookups(input, "input");
  const int64_t kind = mode == "sum"    ? int64_t(kSum)
                       : mode == "mean" ? int64_t(kMean)
                       : mode == "max"  ? int64_t(kMax)
                                        : -1;
  if (kind < 0) fail(ErrorKind::Value, "mode has to be one of sum, mean or max, got '", mode, "'");
  if (kind == kMax && scale_grad_by_freq)
    fail(ErrorKind::Value, "max mode does not support scaling the gradient by the frequency");
  if (kind == kMax && sparse) fail(ErrorKind::Value, "max mode does not support sparse weights");
  if (per_sample_weights.defined() && !same(per_sample_weights.sizes(), input.sizes()))
    fail(ErrorKind::Value, "embedding_bag: If per_sample_weights (", per_sample_weights.sizes(),
         ") is not None, then it must have the same shape as the input (", input.sizes(), ")");
  if (per_sample_weights.defined() && kind != kSum)
    fail(ErrorKind::NotImplemented,
         "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
         "mode='sum' (got mode='",
         mode, "')");
  const int64_t padding = wrapped_padding(padding_idx, weight.size(0), ErrorKind::Runtime);
  Tensor lookups = input, starts = offsets, factors = per_sample_weights;
  if (input.dim() == 2) {
    if (offsets.defined())
      fail(ErrorKind::Value,
           "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
           "fixed length sequences. However, found offsets of shape ",
           offsets.sizes());
    const int64_t bags = input.size(0), size = input.size(1);
    starts = op::arange(Scalar(bags), DType::Int64, Value(), input.device()) * size;
    lookups = op::reshape(input, Dims{bags * size});
    if (factors.defined()) factors = op::reshape(factors, Dims{bags * size});
    include_last_offset = false;
  } else if (input.dim() != 1) {
    fail(ErrorKind::Value, "input has to be 1D or 2D Tensor, but got Tensor of dimension ",
         input.dim());
  } else if (!offsets.defined()) {
    fail(ErrorKind::Value, "offsets has to be a 1D Tensor but got None");
  }
  renorm_rows(weight, lookups, max_norm, norm_type);
  return std::get<0>(op::_embedding_bag(weight, lookups, starts, kind, factors, include_last_offset,
                                        padding, scale_grad_by_freq, sparse));
}

// ---- derivatives

Tensor _embedding_bag_gradient(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                               const Tensor& bag_size, const Tensor& max_indices,
                               const Tensor& per_sample_weights, IntSpan weight_size, int64_t mode,
                               int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
  if (mode == kMax) {
    const Tensor none = max_indices < 0;
    return op::scatter_add(op::new_zeros(grad, weight_size), 0,
                           op::masked_fill(max_indices, none, 0), op::masked_fill(grad, none, 0));
  }
  Tensor of_bags = grad;
  if (mode == kMean) of_bags = grad / op::unsqueeze(op::clamp_min(bag_size, 1), 1);
  Tensor of_rows = op::index_select(of_bags, 0, offset2bag);
  if (per_sample_weights.defined()) of_rows = of_rows * op::unsqueeze(per_sample_weights, 1);
  return op::_embedding_table_gradient(of_rows, indices, weight_size, padding_idx,
                                       scale_grad_by_freq, sparse);
}

Tensor _embedding_bag_sample_gradient(const Tensor& grad, const Tensor& weight,
                                      const Tensor& indices, const Tensor& offset2bag,
                                      int64_t padding_idx) {
  const Tensor products = op::index_select(grad, 0, offset2bag) * op::embedding(weight, indices);
  const Tensor sums = op::sum_dim(products, Dims{1});
  return padding_idx >= 0 ? op::masked_fill(sums, op::eq(indices, padding_idx), 0) : sums;
}

}  // namespace facula::kernels
