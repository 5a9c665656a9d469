// Batching rules of normalisation: a batch has more rows, more channels or more groups. Parameters
// that differ over the batch, and their gradients, which vmap keeps apart, are computed beside the
// kernels.
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/normalization.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

bool differs(const Tensor& t, uint32_t level) {
  return t.defined() && is_batched(t, level);
}

// Half precision is multiplied and summed in float32 as in the kernels.
Tensor computed(const Tensor& t) {
  return is_reduced_float(t.dtype()) ? op::_to_copy(t, DType::Float32) : t;
}
Tensor in_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_copy(t, dtype);
}

void expect_channels(const Tensor& input) {
  if (input.dim() < 2)
    runtime_error("expected an input with at least 2 dimensions, (N, C, ...), but got shape ",
                  input.sizes());
}

// What the rules of gradients give for one that nobody asks for.
Tensor nothing(const Tensor& like, uint32_t level) {
  return op::new_empty(like, Dims{batch_size(level), 0});
}

}  // namespace

// ---- the last dimensions

// native_layer_norm(input, shape, weight, bias, eps) and _fused_rms_norm(input, shape, weight,
// eps): a batch of inputs has more rows; parameters that differ over the batch are applied
// afterwards.
void layer_norm(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &weight = args[2].tensor();
  const Tensor bias = op.arg_count == 5 ? args[3].tensor() : Tensor();
  const bool apart = differs(weight, level) || differs(bias, level);
  Arguments values(op, args);
  values.set(values[0], in_front(input, level));
  if (apart) {
    values[2] = Value();
    if (op.arg_count == 5) values[3] = Value();
  }
  Rets results;
  call(op, values.data(), results);
  if (apart) {
    Tensor wide = computed(results.t[0]);
    if (weight.defined()) wide = wide * aligned(weight, level, input.dim());
    if (bias.defined()) wide = wide + aligned(bias, level, input.dim());
    results.t[0] = in_dtype(wide, input.dtype());
  }
  for (int i = 0; i < op.ret_count; ++i) deliver(rets, i, results.t[i], level);
}

// _layer_norm_grad(grad_output, input, rstd, weight, shape, eps, wanted, mean)
void layer_norm_grad(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[1].tensor(), &weight = args[3].tensor(), &mean = args[7].tensor();
  const IntSpan shape = args[4].ints();
  const int64_t wanted = args[6].to_int();
  Tensor g = in_front(args[0].tensor(), level);
  const Tensor x = in_front(input, level), rstd = in_front(args[2].tensor(), level),
               m = mean.defined() ? in_front(mean, level) : mean;
  const DType parameter = weight.defined() ? weight.dtype() : input.dtype();
  Tensor by_weight = nothing(x, level), by_bias = by_weight, by_input = by_weight;
  Dims rows;  // behind the batch
  for (int64_t d = 1; d < x.dim() - int64_t(shape.size()); ++d) rows.push_back(d);
  auto summed = [&](const Tensor& t) {
    return in_dtype(rows.empty() ? t : op::sum_dim(t, IntSpan(rows), false), parameter);
  };
  // The normalised rows are computed again, so that they can be differentiated.
  const double eps = args[5].to_double();
  auto normalized = [&](const Tensor& t) {
    return m.defined() ? std::get<0>(op::native_layer_norm(t, shape, Tensor(), Tensor(), eps))
                       : std::get<0>(op::_fused_rms_norm(t, shape, Tensor(), eps));
  };
  if (wanted & 2) by_weight = summed(computed(g) * normalized(computed(x)));
  if (wanted & 4) by_bias = summed(computed(g));
  if (wanted & 1) {
    const bool apart = differs(weight, level);
    if (apart) g = g * in_dtype(aligned(weight, level, input.dim()), g.dtype());
    by_input =
        std::get<0>(op::_layer_norm_grad(g, x, rstd, apart ? Tensor() : weight, shape, eps, 1, m));
  }
  deliver(rets, 0, by_input, level);
  deliver(rets, 1, by_weight, level);
  deliver(rets, 2, by_bias, level);
}

// ---- channels

// _batch_norm(input, weight, bias, eps) and _batch_norm_grad(grad_output, input, mean, rstd,
// weight, eps, wanted): the moments of each element are its own, as those of channels are, so the
// batch joins the channels: (N, batch * C, ...).
void batch_norm(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const int64_t batch = batch_size(level);
  expect_channels(args[0].tensor());
  const int64_t channels = args[0].tensor().size(1);
  Arguments values(op, args);
  values.map([&](const Tensor& t) {
    const Tensor v = in_front(t, level);
    return t.dim() == 1 ? join(v, 0) : join(op::movedim(v, Dims{0}, Dims{1}), 1);
  });
  Rets results;
  call(op, values.data(), results);
  for (int i = 0; i < op.ret_count; ++i) {
    const Tensor& t = results.t[i];
    if (t.dim() >= 2)
      deliver(rets, i, op::movedim(split(t, 1, batch, channels), Dims{1}, Dims{0}), level);
    else if (t.numel() == 0 && channels != 0) deliver(rets, i, nothing(t, level), level);
    else deliver(rets, i, split(t, 0, batch, channels), level);
  }
}

// _scale_channels(input, scale, shift)
void scale_channels(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &scale = args[1].tensor(), &shift = args[2].tensor();
  expect_channels(input);
  const int64_t batch = batch_size(level);
  const Tensor x = in_front(input, level);
  if (!differs(scale, level) && !differs(shift, level))
    return deliver(
        rets, split(op::_scale_channels(join(x, 0), scale, shift), 0, batch, input.size(0)), level);
  auto by_channel = [&](const Tensor& t) {
    Dims shape(size_t(x.dim()), 1);
    shape[2] = t.numel();
    if (is_batched(t, level)) shape[0] = batch;
    return computed(op::reshape(value_of(t, level), shape));
  };
  Tensor out = computed(x) * by_channel(scale);
  if (shift.defined()) out = out + by_channel(shift);
  deliver(rets, in_dtype(out, input.dtype()), level);
}

// ---- groups

namespace {

// A parameter for each channel, against a value with batch and N in front.
Tensor of_channels(const Tensor& parameter, int64_t rank, uint32_t level) {
  Dims shape(size_t(rank) + 1, 1);
  shape[2] = parameter.numel();
  if (is_batched(parameter, level)) shape[0] = batch_size(level);
  return computed(op::reshape(value_of(parameter, level), shape));
}

}  // namespace

// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
void group_norm(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[0].tensor(), &weight = args[1].tensor(), &bias = args[2].tensor();
  expect_channels(input);
  const int64_t batch = batch_size(level), n = args[3].to_int();
  const bool apart = differs(weight, level) || differs(bias, level);
  auto [out, mean, rstd] = op::native_group_norm(
      join(in_front(input, level), 0), apart ? Tensor() : weight, apart ? Tensor() : bias,
      batch * n, args[4].to_int(), args[5].to_int(), args[6].to_int(), args[7].to_double());
  out = split(out, 0, batch, input.size(0));
  if (apart) {
    Tensor wide = computed(out);
    if (weight.defined()) wide = wide * of_channels(weight, input.dim(), level);
    if (bias.defined()) wide = wide + of_channels(bias, input.dim(), level);
    out = in_dtype(wide, input.dtype());
  }
  deliver(rets, 0, out, level);
  deliver(rets, 1, split(mean, 0, batch, n), level);
  deliver(rets, 2, split(rstd, 0, batch, n), level);
}

// _group_norm_grad(grad_output, input, mean, rstd, weight, group, eps, wanted)
void group_norm_grad(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &input = args[1].tensor(), &weight = args[4].tensor();
  const int64_t batch = batch_size(level), group = args[5].to_int(), wanted = args[7].to_int();
  const int64_t n = input.size(0), channels = input.size(1);
  Tensor g = in_front(args[0].tensor(), level);
  const Tensor x = in_front(input, level), mean = in_front(args[2].tensor(), level),
               rstd = in_front(args[3].tensor(), level);
  const DType parameter = weight.defined() ? weight.dtype() : input.dtype();
  Tensor by_weight = nothing(x, level), by_bias = by_weight, by_input = by_weight;
  const int64_t inner = n * channels > 0 ? input.numel() / (n * channels) : 0;
  const double eps = args[6].to_double();
  const Dims whole{batch, n, channels, inner};
  auto summed = [&](const Tensor& t) {
    const Dims over{1, 3};
    return in_dtype(op::sum_dim(op::reshape(t, whole), IntSpan(over), false), parameter);
  };
  if (wanted & 2) {
    const Tensor normalized = std::get<0>(op::native_group_norm(
        join(computed(x), 0), Tensor(), Tensor(), batch * n, channels, inner, group, eps));
    by_weight = summed(computed(g) * op::reshape(normalized, g.sizes()));
  }
  if (wanted & 4) by_bias = summed(computed(g));
  if (wanted & 1) {
    const bool apart = differs(weight, level);
    if (apart) g = in_dtype(computed(g) * of_channels(weight, input.dim(), level), g.dtype());
    by_input =
        std::get<0>(op::_group_norm_grad(join(g, 0), join(x, 0), join(mean, 0), join(rstd, 0),
                                         apart ? Tensor() : weight, group, eps, 1));
    by_input = split(by_input, 0, batch, n);
  }
  deliver(rets, 0, by_input, level);
  deliver(rets, 1, by_weight, level);
  deliver(rets, 2, by_bias, level);
}

}  // namespace facula::batch
