// The primitives of normalisation: checks, results, and the loops of cpu/norm.h.
#include "op/kernels/normalization.h"
#include "cpu/norm.h"
#include "kernels/destination.h"
#include "kernels/host_only.h"
#include "kernels/normalized_shape.h"
#include "op/hooks/normalization.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

// Half precision is computed in float32, parameters in the type of the input.
Tensor as_computed(const Tensor& t, DType compute) {
  if (!t.defined()) return t;
  if (t.dtype() != compute) return op::_to_copy(t, compute, kNoDevice, MemoryFormat::Contiguous);
  return dense(t);
}
template <class T>
T* pointer(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}

void check_parameter(const Tensor& parameter, const char* name, const Tensor& input,
                     int64_t channels) {
  if (!parameter.defined()) return;
  const bool mixed = is_reduced_float(input.dtype()) && parameter.dtype() == DType::Float32;
  if (parameter.dtype() != input.dtype() && !mixed)
    runtime_error("expected ", name, " to have the dtype of the input, ", input.dtype(),
                  ", but it has ", parameter.dtype());
  if (channels >= 0 && (parameter.dim() != 1 || parameter.numel() != channels))
    runtime_error("Expected ", name,
                  " to be a vector of size equal to the number of channels in "
                  "input, but got ",
                  name, " of shape ", parameter.sizes(), " and input of shape ", input.sizes());
}

void check_floating(const Tensor& input) {
  if (!input.is_floating()) dtype_error(input.dtype(), "float16, bfloat16, float32, float64");
}

// The type that the host's loops read and write for an input: its own, but for eight bits.
DType stored_dtype(const Tensor& input) {
  return input.is_cpu() && input.item_size() == 1 ? DType::Float32 : input.dtype();
}

// Calls f(a number of the type that computes, one of the type that is stored).
template <class F>
void with_types(DType stored, F&& f) {
  switch (stored) {
    case DType::Float64: return f(double{}, double{});
    case DType::Float16: return f(float{}, Half{});
    case DType::BFloat16: return f(float{}, BFloat16{});
    default: return f(float{}, float{});
  }
}

Tensor finished(const Tensor& computed, DType dtype) {
  return computed.dtype() == dtype ? computed : op::_to_copy(computed, dtype);
}

// Devices read every dtype as it is, parameters and gradients of the input's type or float32.
Tensor on_device(const Tensor& t) {
  return t.defined() ? dense(t) : t;
}

// A gradient that nobody asks for.
Tensor nothing(const Tensor& like) {
  return empty_tensor(Dims{0}, like.dtype(), like.device());
}

// ---- the last dimensions

struct RowShape {
  int64_t rows = 1, n = 1;
  Dims moments;  // the input's shape with sizes 1 at the end

  RowShape(const Tensor& input, IntSpan normalized) {
    const int64_t first = first_normalized(input, normalized);
    moments = Dims(input.sizes());
    for (int64_t d = 0; d < input.dim(); ++d) {
      (d < first ? rows : n) *= input.size(d);
      if (d >= first) moments[size_t(d)] = 1;
    }
  }
};

void check_row_parameter(const Tensor& parameter, const char* name, const Tensor& input,
                         IntSpan normalized) {
  check_parameter(parameter, name, input, -1);
  if (parameter.defined() && !same(parameter.sizes(), normalized))
    runtime_error("Expected ", name, " to be of same shape as normalized_shape, but got ", name,
                  " of shape ", parameter.sizes(), " and normalized_shape = ", normalized);
}

Three normalized_rows(const Tensor& input, IntSpan normalized, const Tensor& weight,
                      const Tensor& bias, double eps, bool centred) {
  require_one_device({&input, &weight, &bias});
  check_floating(input);
  const RowShape shape(input, normalized);
  check_row_parameter(weight, "weight", input, normalized);
  check_row_parameter(bias, "bias", input, normalized);
  const DType compute = compute_dtype(input.dtype());
  Tensor mean = empty_tensor(shape.moments, compute, input.device());
  Tensor rstd = empty_tensor(shape.moments, compute, input.device());
  const DType stored = stored_dtype(input);
  Tensor out = empty_tensor(input.sizes(), stored, input.device());
  if (!input.is_meta() && out.numel() == 0) {
    op::zero_(mean);
    op::zero_(rstd);
  } else if (input.is_cuda()) {
    if (!centred) op::zero_(mean);
    device_normalization.rows({.rows = shape.rows, .n = shape.n, .centred = centred}, dense(input),
                              on_device(weight), on_device(bias), eps, mean, rstd, out);
  } else if (!input.is_meta()) {
    const Tensor x = as_computed(input, stored), w = as_computed(weight, compute),
                 b = as_computed(bias, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_normalize_rows<T, S>({shape.rows, shape.n, x.data_as<S>(), pointer<T>(w),
                                centred ? mean.data_as<T>() : nullptr, rstd.data_as<T>()},
                               pointer<T>(b), eps, out.data_as<S>());
    });
  }
  return {finished(out, input.dtype()), mean, rstd};
}

}  // namespace

Three native_layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor& weight,
                        const Tensor& bias, double eps) {
  return normalized_rows(input, normalized_shape, weight, bias, eps, true);
}

std::tuple<Tensor, Tensor> _fused_rms_norm(const Tensor& input, IntSpan normalized_shape,
                                           const Tensor& weight, double eps) {
  auto [out, mean, rstd] = normalized_rows(input, normalized_shape, weight, Tensor(), eps, false);
  return {out, rstd};
}

Three _layer_norm_grad(const Tensor& grad_output, const Tensor& input, const Tensor& rstd,
                       const Tensor& weight, IntSpan normalized_shape, double, int64_t wanted,
                       const Tensor& mean) {
  require_one_device({&grad_output, &input, &rstd, &weight, &mean});
  const RowShape shape(input, normalized_shape);
  const DType compute = compute_dtype(input.dtype()), stored = stored_dtype(input);
  auto make = [&](int bit, IntSpan sizes, DType dtype) {
    return wanted >> bit & 1 ? empty_tensor(sizes, dtype, input.device()) : Tensor();
  };
  Tensor dx = make(0, input.sizes(), stored), dw = make(1, normalized_shape, compute),
         db = make(2, normalized_shape, compute);
  if (input.is_cuda()) {
    const NormalizedRows rows{.rows = shape.rows, .n = shape.n, .centred = mean.defined()};
    if (input.numel() != 0) {
      device_normalization.rows_grad(rows, dense(grad_output), dense(input),
                                     as_computed(mean, compute), as_computed(rstd, compute),
                                     on_device(weight), dx, dw, db);
    } else {
      for (const Tensor* t : {&dw, &db})
        if (t->defined()) op::zero_(*t);
    }
  } else if (!input.is_meta()) {
    const Tensor x = as_computed(input, stored), w = as_computed(weight, compute),
                 g = as_computed(grad_output, stored), m = as_computed(mean, compute),
                 s = as_computed(rstd, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_normalize_rows_backward<T, S>(
          {shape.rows, shape.n, x.data_as<S>(), pointer<T>(w), pointer<T>(m), s.data_as<T>()},
          g.data_as<S>(), pointer<S>(dx), pointer<T>(dw), pointer<T>(db));
    });
  }
  const DType parameter = weight.defined() ? weight.dtype() : input.dtype();
  return {dx.defined() ? finished(dx, input.dtype()) : nothing(input),
          dw.defined() ? finished(dw, parameter) : nothing(input),
          db.defined() ? finished(db, parameter) : nothing(input)};
}

// ---- channels

namespace {

ChannelShape channel_shape(const Tensor& input) {
  if (input.dim() < 2)
    runtime_error("expected an input with at least 2 dimensions, (N, C, ...), but got shape ",
                  input.sizes());
  ChannelShape s{input.size(0), input.size(1), 1, false};
  for (int64_t d = 2; d < input.dim(); ++d) s.inner *= input.size(d);
  // Matrices have their channels last as they are.
  s.channels_last = input.dim() == 2 ||
                    (input.dim() == 4 && !input.is_contiguous() &&
                     input.is_contiguous(MemoryFormat::ChannelsLast)) ||
                    (input.dim() == 5 && !input.is_contiguous() &&
                     input.is_contiguous(MemoryFormat::ChannelsLast3d));
  return s;
}

NormalizedChannels on_device(const ChannelShape& s) {
  return {s.batch, s.channels, s.inner, s.channels_last};
}

MemoryFormat format_of(const Tensor& input, const ChannelShape& s) {
  if (!s.channels_last || input.dim() == 2) return MemoryFormat::Contiguous;
  return input.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Tensor in_format(const Tensor& t, DType compute, MemoryFormat format) {
  if (t.dtype() != compute) return op::_to_copy(t, compute, kNoDevice, format);
  return t.is_contiguous(format) ? t : op::clone(t, format);
}

Tensor empty_like_input(const Tensor& input, DType dtype, MemoryFormat format) {
  return empty_tensor(input.sizes(), strides_for(input.sizes(), format), dtype, input.device());
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm(const Tensor& input, const Tensor& weight,
                                                       const Tensor& bias, double eps) {
  require_one_device({&input, &weight, &bias});
  check_floating(input);
  const ChannelShape s = channel_shape(input);
  check_parameter(weight, "weight", input, s.channels);
  check_parameter(bias, "bias", input, s.channels);
  const DType compute = compute_dtype(input.dtype());
  const MemoryFormat format = format_of(input, s);
  auto moments = [&] { return empty_tensor(Dims{s.channels}, compute, input.device()); };
  Tensor mean = moments(), rstd = moments(), variance = moments();
  const DType stored = stored_dtype(input);
  Tensor out = empty_like_input(input, stored, format);
  if (input.is_cuda()) {
    if (input.numel() == 0) {
      for (const Tensor* t : {&mean, &rstd, &variance}) op::zero_(*t);
    } else {
      device_normalization.channels(on_device(s), in_format(input, input.dtype(), format),
                                    on_device(weight), on_device(bias), eps, mean, rstd, variance,
                                    out);
    }
  } else if (!input.is_meta()) {
    const Tensor x = in_format(input, stored, format), w = as_computed(weight, compute),
                 b = as_computed(bias, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_batch_norm<T, S>({s, x.data_as<S>(), pointer<T>(w), mean.data_as<T>(), rstd.data_as<T>()},
                           pointer<T>(b), eps, variance.data_as<T>(), out.data_as<S>());
    });
  }
  return {finished(out, input.dtype()), mean, rstd, variance};
}

Three _batch_norm_grad(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                       const Tensor& rstd, const Tensor& weight, double, int64_t wanted) {
  require_one_device({&grad_output, &input, &mean, &rstd, &weight});
  const ChannelShape s = channel_shape(input);
  const DType compute = compute_dtype(input.dtype());
  const MemoryFormat format = format_of(input, s);
  const Dims channels{s.channels};
  const DType stored = stored_dtype(input);
  Tensor dx = wanted & 1 ? empty_like_input(input, stored, format) : Tensor();
  Tensor dw = wanted & 2 ? empty_tensor(channels, compute, input.device()) : Tensor();
  Tensor db = wanted & 4 ? empty_tensor(channels, compute, input.device()) : Tensor();
  if (input.is_cuda()) {
    for (Tensor* t : {&dw, &db})
      if (!t->defined()) *t = empty_tensor(channels, compute, input.device());
    if (input.numel() == 0) {
      op::zero_(dw);
      op::zero_(db);
    } else {
      device_normalization.channels_grad(
          on_device(s), in_format(grad_output, input.dtype(), format),
          in_format(input, input.dtype(), format), as_computed(mean, compute),
          as_computed(rstd, compute), on_device(weight), dx, dw, db);
    }
    if (!(wanted & 2)) dw = Tensor();
    if (!(wanted & 4)) db = Tensor();
  } else if (!input.is_meta()) {
    const Tensor x = in_format(input, stored, format), g = in_format(grad_output, stored, format),
                 w = as_computed(weight, compute), m = as_computed(mean, compute),
                 r = as_computed(rstd, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_batch_norm_backward<T, S>(
          {s, x.data_as<S>(), pointer<T>(w), m.data_as<T>(), r.data_as<T>()}, g.data_as<S>(),
          pointer<S>(dx), pointer<T>(dw), pointer<T>(db));
    });
  }
  const DType parameter = weight.defined() ? weight.dtype() : input.dtype();
  return {dx.defined() ? finished(dx, input.dtype()) : nothing(input),
          dw.defined() ? finished(dw, parameter) : nothing(input),
          db.defined() ? finished(db, parameter) : nothing(input)};
}

Tensor _scale_channels(const Tensor& input, const Tensor& scale, const Tensor& shift) {
  require_one_device({&input, &scale, &shift});
  check_floating(input);
  const ChannelShape s = channel_shape(input);
  const DType compute = compute_dtype(input.dtype());
  const MemoryFormat format = format_of(input, s);
  const DType stored = stored_dtype(input);
  Tensor out = empty_like_input(input, stored, format);
  if (input.is_cuda()) {
    if (out.numel() != 0)
      device_normalization.scale_channels(on_device(s), in_format(input, input.dtype(), format),
                                          as_computed(scale, compute), as_computed(shift, compute),
                                          out);
  } else if (!input.is_meta() && out.numel() != 0) {
    const Tensor x = in_format(input, stored, format), a = as_computed(scale, compute),
                 b = as_computed(shift, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_scale_channels<T, S>(s, x.data_as<S>(), a.data_as<T>(), pointer<T>(b), out.data_as<S>());
    });
  }
  return finished(out, input.dtype());
}

// ---- groups

namespace {

NormalizedRows rows_of_groups(int64_t batch, int64_t channels, int64_t inner, int64_t groups) {
  return {.rows = batch * groups,
          .n = channels / groups * inner,
          .groups = groups,
          .channels = channels / groups,
          .centred = true};
}

Tensor in_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_copy(t, dtype);
}

}  // namespace

Three native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t N,
                        int64_t C, int64_t HxW, int64_t group, double eps) {
  require_one_device({&input, &weight, &bias});
  check_floating(input);
  if (input.numel() != N * C * HxW)
    runtime_error("expected an input of N * C * HxW = ", N * C * HxW, " elements, but got shape ",
                  input.sizes());
  if (group <= 0 || C % group != 0)
    runtime_error("Expected number of channels in input to be divisible by num_groups, but got ",
                  "input of shape ", input.sizes(), " and num_groups=", group);
  check_parameter(weight, "weight", input, C);
  check_parameter(bias, "bias", input, C);
  const DType compute = compute_dtype(input.dtype());
  Tensor mean = empty_tensor(Dims{N, group}, compute, input.device());
  Tensor rstd = empty_tensor(Dims{N, group}, compute, input.device());
  const DType stored = stored_dtype(input);
  const MemoryFormat format =
      input.dim() > 2 ? format_of(input, channel_shape(input)) : MemoryFormat::Contiguous;
  const bool columns = input.is_cpu() && format != MemoryFormat::Contiguous && input.size(0) == N &&
                       input.size(1) == C;
  Tensor out = columns ? empty_like_input(input, stored, format)
                       : empty_tensor(input.sizes(), stored, input.device());
  if (!input.is_meta() && out.numel() == 0) {
    op::zero_(mean);
    op::zero_(rstd);
  } else if (input.is_cuda()) {
    device_normalization.rows(rows_of_groups(N, C, HxW, group), dense(input), on_device(weight),
                              on_device(bias), eps, mean, rstd, out);
  } else if (!input.is_meta()) {
    const Tensor x = columns ? in_format(input, stored, format) : as_computed(input, stored),
                 w = as_computed(weight, compute), b = as_computed(bias, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_group_norm<T, S>({{N, C, HxW, columns},
                            x.data_as<S>(),
                            pointer<T>(w),
                            mean.data_as<T>(),
                            rstd.data_as<T>()},
                           group, pointer<T>(b), eps, out.data_as<S>());
    });
  }
  // What was computed as runs is returned as it came.
  if (!columns && format != MemoryFormat::Contiguous) out = op::clone(out, format);
  return {finished(out, input.dtype()), mean, rstd};
}

Three _group_norm_grad(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                       const Tensor& rstd, const Tensor& weight, int64_t group, double,
                       int64_t wanted) {
  require_one_device({&grad_output, &input, &mean, &rstd, &weight});
  const ChannelShape s = channel_shape(input);
  const DType compute = compute_dtype(input.dtype());
  const Dims channels{s.channels};
  const DType stored = stored_dtype(input);
  Tensor dx = wanted & 1 ? empty_tensor(input.sizes(), stored, input.device()) : Tensor();
  Tensor dw = wanted & 2 ? empty_tensor(channels, compute, input.device()) : Tensor();
  Tensor db = wanted & 4 ? empty_tensor(channels, compute, input.device()) : Tensor();
  if (input.is_cuda()) {
    if (input.numel() != 0) {
      device_normalization.rows_grad(rows_of_groups(s.batch, s.channels, s.inner, group),
                                     in_dtype(dense(grad_output), input.dtype()), dense(input),
                                     as_computed(mean, compute), as_computed(rstd, compute),
                                     on_device(weight), dx, dw, db);
    } else {
      for (const Tensor* t : {&dw, &db})
        if (t->defined()) op::zero_(*t);
    }
  } else if (!input.is_meta()) {
    const Tensor x = as_computed(input, stored), g = as_computed(grad_output, stored),
                 w = as_computed(weight, compute), m = as_computed(mean, compute),
                 r = as_computed(rstd, compute);
    with_types(stored, [&]<class T, class S>(T, S) {
      cpu_group_norm_backward<T, S>({{s.batch, s.channels, s.inner, false},
                                     x.data_as<S>(),
                                     pointer<T>(w),
                                     m.data_as<T>(),
                                     r.data_as<T>()},
                                    group, g.data_as<S>(), pointer<S>(dx), pointer<T>(dw),
                                    pointer<T>(db));
    });
  }
  const DType parameter = weight.defined() ? weight.dtype() : input.dtype();
  return {dx.defined() ? finished(dx, input.dtype()) : nothing(input),
          dw.defined() ? finished(dw, parameter) : nothing(input),
          db.defined() ? finished(db, parameter) : nothing(input)};
}

}  // namespace facula::kernels
