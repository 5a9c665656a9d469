// Losses over classes: cross entropy in one pass over the logits, negative log likelihood, margins
// of several labels.
#include "cpu/cross_entropy.h"

#include <vector>

#include "autograd/node_names.h"
#include "cpu/cast.h"
#include "kernels/destination.h"
#include "kernels/host_only.h"
#include "kernels/loss_reduction.h"
#include "op/hooks/losses.h"
#include "op/kernels/losses.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/losses.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

namespace {

using Flag = std::optional<bool>;

Tensor as_computed(const Tensor& t, DType compute) {
  if (!t.defined()) return t;
  return t.dtype() == compute ? dense(t)
                              : op::_to_copy(t, compute, kNoDevice, MemoryFormat::Contiguous);
}
template <class T>
T* pointer(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}
template <class F>
void with_type(DType compute, F&& f) {
  if (compute == DType::Float64) f(double{});
  else f(float{});
}

// (N, C, ...) with targets (N, ...), or (C,) with a single target.
struct ClassShape {
  int64_t batch = 1, classes, inner = 1;

  ClassShape(IntSpan input, const Tensor& target, const Tensor& weight) {
    const int64_t dims = int64_t(input.size()), at = dims == 1 ? 0 : 1;
    if (dims == 0) value_error("Expected an input with 1 or more dimensions, (C,) or (N, C, ...)");
    classes = input[size_t(at)];
    if (dims > 1) batch = input[0];
    for (size_t d = 2; d < input.size(); ++d) inner *= input[d];
    Dims wanted;
    for (int64_t d = 0; d < dims; ++d)
      if (d != at) wanted.push_back(input[size_t(d)]);
    if (dims > 1 && (target.dim() == 0 || target.size(0) != batch))
      value_error("Expected input batch_size (", batch, ") to match target batch_size (",
                  target.dim() == 0 ? 0 : target.size(0), ").");
    if (dims == 1 && target.dim() == 1 && target.dtype() == DType::Int64)
      value_error("For 1D input, 1D target must have size 1, but got target size: ",
                  target.size(0));
    if (dims <= 2 && target.dim() > 1)
      runtime_error(
          "0D or 1D target tensor expected, multi-target not supported: the target has "
          "shape ",
          target.sizes());
    if (!same(target.sizes(), wanted))
      runtime_error("Expected target size ", IntSpan(wanted), " for an input of size ", input,
                    ", got ", target.sizes());
    if (target.dtype() != DType::Int64 && target.dtype() != DType::UInt8)
      runtime_error("expected target dtype to be Long or Byte, but got ",
                    legacy_dtype_name(target.dtype()),
                    "; convert class indices with .long(), or pass probabilities of the input's "
                    "shape to cross_entropy()");
    if (weight.defined() && (weight.dim() != 1 || weight.numel() != classes))
      runtime_error("weight tensor should be defined either for all ", classes,
                    " classes or no classes but got weight tensor of shape: ", weight.sizes());
  }
};

// Refuses labels that are no class, by value and place.
Tensor checked_labels(const Tensor& target, int64_t classes, int64_t ignored) {
  const Tensor labels = dense_int64(target);
  const int64_t* p = labels.data_as<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i) {
    if ((p[i] >= 0 && p[i] < classes) || p[i] == ignored) continue;
    Dims place(size_t(labels.dim()));
    for (int64_t d = labels.dim() - 1, rest = i; d >= 0; --d) {
      place[size_t(d)] = rest % labels.size(d);
      rest /= labels.size(d);
    }
    index_error("Target ", p[i], " is out of bounds: the target at ", IntSpan(place), " is ", p[i],
                ", but the input has ", classes, " classes, 0 to ", classes - 1,
                "; targets of ignore_index=", ignored, " are left out");
  }
  return labels;
}

// As devices take them, which check labels themselves.
ClassLabels labels_on_device(const ClassShape& s, const Tensor& target, const Tensor& weight,
                             DType compute, int64_t ignored) {
  return {s.batch, s.classes, s.inner, dense_int64(target), as_computed(weight, compute), ignored};
}

void check_logits(const Tensor& self, const Tensor& weight) {
  if (!self.is_floating()) dtype_error(self.dtype(), "float16, bfloat16, float32, float64");
  if (weight.defined() && weight.dtype() != self.dtype() &&
      compute_dtype(self.dtype()) == self.dtype())
    runtime_error("expected weight to have the dtype of the input, ", self.dtype(), ", but it has ",
                  weight.dtype());
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _cross_entropy(const Tensor& self, const Tensor& target,
                                                  const Tensor& weight, int64_t ignore_index,
                                                  double label_smoothing) {
  require_one_device({&self, &target, &weight});
  check_logits(self, weight);
  const ClassShape s(self.sizes(), target, weight);
  const DType compute = compute_dtype(self.dtype());
  Dims two(target.sizes());
  two.insert(0, 2);
  Tensor loss = empty_tensor(target.sizes(), compute, self.device());
  Tensor sums = empty_tensor(two, compute, self.device());
  Tensor total = empty_tensor(Dims(), compute, self.device());
  if (self.is_cuda()) {
    const Tensor counted = empty_tensor(target.sizes(), compute, self.device());
    if (loss.numel() != 0)
      device_losses.cross_entropy(labels_on_device(s, target, weight, compute, ignore_index),
                                  dense(self), label_smoothing, loss, sums, counted);
    return {loss, sums, op::sum(counted)};
  }
  if (!self.is_meta()) {
    const Tensor labels = checked_labels(target, s.classes, ignore_index);
    const Tensor x = as_computed(self, compute), w = as_computed(weight, compute);
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      T* largest = sums.data_as<T>();
      *total.data_as<T>() = cpu_cross_entropy<T>(
          {{s.batch, s.classes, s.inner, labels.data_as<int64_t>(), pointer<T>(w), ignore_index},
           x.data_as<T>(),
           label_smoothing,
           largest,
           largest + target.numel()},
          loss.data_as<T>());
    });
  }
  return {loss, sums, total};  // in the type that computes, so that their sums are exact
}

Tensor _cross_entropy_grad(const Tensor& grad_out, const Tensor& self, const Tensor& target,
                           const Tensor& sums, const Tensor& weight, int64_t ignore_index,
                           double label_smoothing) {
  require_one_device({&grad_out, &self, &target, &sums, &weight});
  const ClassShape s(self.sizes(), target, weight);
  const DType compute = compute_dtype(self.dtype());
  if (self.is_cuda()) {
    Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
    if (out.numel() != 0)
      device_losses.cross_entropy_grad(labels_on_device(s, target, weight, compute, ignore_index),
                                       dense(self), label_smoothing, as_computed(grad_out, compute),
                                       as_computed(sums, compute), out);
    return out;
  }
  Tensor out = empty_tensor(self.sizes(), compute, self.device());
  if (!self.is_meta() && out.numel() != 0) {
    const Tensor labels = checked_labels(target, s.classes, ignore_index);
    const Tensor x = as_computed(self, compute), w = as_computed(weight, compute),
                 g = as_computed(grad_out, compute), kept = as_computed(sums, compute);
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      T* largest = kept.data_as<T>();
      cpu_cross_entropy_backward<T>(
          {{s.batch, s.classes, s.inner, labels.data_as<int64_t>(), pointer<T>(w), ignore_index},
           x.data_as<T>(),
           label_smoothing,
           largest,
           largest + target.numel()},
          g.data_as<T>(), out.data_as<T>());
    });
  }
  return compute == self.dtype() ? out : op::_to_copy(out, self.dtype());
}

// The gradient is g (a p - b) with p the softmax and a, b constants of the sample.
std::tuple<Tensor, Tensor> _cross_entropy_grad_grad(const Tensor& grad, const Tensor& grad_out,
                                                    const Tensor& self, const Tensor& target,
                                                    const Tensor& sums, const Tensor& weight,
                                                    int64_t ignore_index, double label_smoothing) {
  const int64_t at = self.dim() == 1 ? 0 : 1;
  const Dims classes{at};
  const Tensor unit = op::_cross_entropy_grad(op::ones_like(grad_out), self, target, sums, weight,
                                              ignore_index, label_smoothing);
  const Tensor by_grad = op::sum_dim(grad * unit, IntSpan(classes), false);
  const Tensor ignored = op::eq(target, ignore_index);
  Tensor factor = 1 - op::_to_copy(ignored, self.dtype());
  if (weight.defined()) {
    const Tensor labels = op::where(ignored, 0, op::_to_copy(target, DType::Int64));
    const Tensor own =
        op::reshape(op::index_select(weight, 0, op::reshape(labels, Dims{-1})), target.sizes());
    factor = factor * (own * (1 - label_smoothing) +
                       op::sum(weight) * (label_smoothing / double(self.size(at))));
  }
  const Tensor p = op::softmax(self, at);
  const Tensor along = op::sum_dim(p * grad, IntSpan(classes), true);
  const Tensor by_self = op::unsqueeze(grad_out * factor, at) * p * (grad - along);
  return {by_grad, by_self};
}

// The sum of the weights that were used is no part of the derivative either, so PyTorch refuses
// too.
static void expect_constant_weight(const Tensor& weight) {
  if (!weight.defined()) return;
  // Inside of a transform, weights that it does not differentiate by are wrapped as well.
  for (const Tensor* p = &weight;; p = &(*p)->wrapper->value) {
    if ((grad_enabled() && requires_grad(*p)) || (p->is_wrapped() && (*p)->wrapper->tangent))
      runtime_error(
          "not differentiable with respect to argument 'weight'. This input cannot have "
          "requires_grad True; pass weight.detach()");
    if (!p->is_wrapped()) return;
  }
}

// A single target may be a vector of one.
static Tensor as_targets(const Tensor& target, const Tensor& input) {
  const bool one = input.dim() == 1 && target.dim() == 1 && target.size(0) == 1;
  return one ? op::select(target, 0, 0) : target;
}

static Tensor finished(const Tensor& loss, const Tensor& total, Reduction reduction, DType dtype) {
  const Tensor out =
      reduction == Reduction::Mean ? op::sum(loss) / total : reduced(loss, reduction);
  return out.dtype() == dtype ? out : op::_to_copy(out, dtype);
}

// As PyTorch calls the node: of samples with positions, which it brings to images, in two ways.
static Tensor named(const Tensor& loss, uint64_t earlier, const Tensor& input,
                    Reduction reduction) {
  name_node(loss, earlier,
            input.dim() < 3                                    ? "NllLossBackward0"
            : reduction == Reduction::None && input.dim() != 4 ? "ViewBackward0"
                                                               : "NllLoss2DBackward0");
  return loss;
}

static Tensor of_probabilities(const Tensor& input, const Tensor& target, const Tensor& weight,
                               Reduction reduction, double label_smoothing) {
  const int64_t at = input.dim() == 1 ? 0 : 1, classes = input.size(at);
  if (!is_floating(target.dtype()))
    runtime_error("Expected floating point type for target with class probabilities, got ",
                  legacy_dtype_name(target.dtype()));
  Tensor t = target;
  if (label_smoothing > 0) t = t * (1 - label_smoothing) + label_smoothing / double(classes);
  Tensor terms = op::log_softmax(input, at) * t;
  if (weight.defined()) {
    if (weight.dim() != 1 || weight.numel() != classes)
      runtime_error("weight tensor should be defined either for all ", classes,
                    " classes or no classes but got weight tensor of shape: ", weight.sizes());
    Dims shape(size_t(input.dim()), 1);
    shape[size_t(at)] = classes;
    terms = terms * op::reshape(weight, shape);
  }
  const Dims over{at};
  if (reduction == Reduction::None) return -op::sum_dim(terms, IntSpan(over), false);
  const Tensor sum = -op::sum(terms);
  return reduction == Reduction::Sum ? sum : sum / (double(input.numel()) / double(classes));
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                     Flag size_average, int64_t ignore_index, Flag reduce,
                     std::string_view reduction, double label_smoothing) {
  const Reduction chosen = reduction_of(size_average, reduce, reduction);
  const uint64_t earlier = next_node();
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    runtime_error("label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  if (same(input.sizes(), target.sizes()) && input.dim() > 0) {
    if (ignore_index >= 0)
      runtime_error("ignore_index is not supported for floating point target, got ", ignore_index);
    const Tensor loss = of_probabilities(input, target, weight, chosen, label_smoothing);
    name_node(loss, earlier, chosen == Reduction::Mean ? "DivBackward1" : "NegBackward0");
    return loss;
  }
  expect_constant_weight(weight);
  auto [loss, sums, total] =
      op::_cross_entropy(input, as_targets(target, input), weight, ignore_index, label_smoothing);
  const Tensor out = named(finished(loss, total, chosen, input.dtype()), earlier, input, chosen);
  if (label_smoothing > 0) name_node(out, earlier, "AddBackward0");
  return out;
}

// ---- negative log likelihood

std::tuple<Tensor, Tensor> _nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                                     int64_t ignore_index) {
  require_one_device({&self, &target, &weight});
  check_logits(self, weight);
  const ClassShape s(self.sizes(), target, weight);
  const DType compute = compute_dtype(self.dtype());
  Tensor loss = empty_tensor(target.sizes(), compute, self.device());
  Tensor total = empty_tensor(Dims(), compute, self.device());
  if (self.is_cuda()) {
    const Tensor counted = empty_tensor(target.sizes(), compute, self.device());
    device_losses.nll_loss(labels_on_device(s, target, weight, compute, ignore_index), dense(self),
                           loss, counted);
    return {loss, op::sum(counted)};
  }
  if (!self.is_meta()) {
    const Tensor labels = checked_labels(target, s.classes, ignore_index);
    // Of half precision, only what the labels pick is converted.
    const Tensor x = dense(self), w = as_computed(weight, compute);
    const CastLoop load = cast_loop(self.dtype(), compute);
    const int64_t item = int64_t(x.item_size());
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      const T* weights = pointer<T>(w);
      auto in = [&](int64_t at) {
        if (x.dtype() == compute) return x.data_as<T>()[at];
        T value;
        load(reinterpret_cast<char*>(&value), 0, x.data() + at * item, 0, 1);
        return value;
      };
      const int64_t* label = labels.data_as<int64_t>();
      double sum = 0;
      for (int64_t i = 0; i < labels.numel(); ++i) {
        const bool counts = label[i] != ignore_index;
        const T own = !counts ? T(0) : weights ? weights[label[i]] : T(1);
        const int64_t image = i / s.inner, at = i % s.inner;
        loss.data_as<T>()[i] =
            counts ? -own * in((image * s.classes + label[i]) * s.inner + at) : T(0);
        sum += double(own);
      }
      *total.data_as<T>() = T(sum);
    });
  }
  return {loss, total};
}

Tensor _nll_loss_grad(const Tensor& grad_out, IntSpan sizes, const Tensor& target,
                      const Tensor& weight, int64_t ignore_index) {
  require_one_device({&grad_out, &target, &weight});
  const ClassShape s(sizes, target, weight);
  const DType compute = compute_dtype(grad_out.dtype());
  Tensor out = empty_tensor(sizes, compute, grad_out.device());
  if (grad_out.is_cuda()) {
    op::zero_(out);
    device_losses.nll_loss_grad(labels_on_device(s, target, weight, compute, ignore_index),
                                as_computed(grad_out, compute), out);
  } else if (!grad_out.is_meta()) {
    op::zero_(out);
    const Tensor labels = checked_labels(target, s.classes, ignore_index);
    const Tensor g = as_computed(grad_out, compute), w = as_computed(weight, compute);
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      const T *in = g.data_as<T>(), *weights = pointer<T>(w);
      const int64_t* label = labels.data_as<int64_t>();
      for (int64_t i = 0; i < labels.numel(); ++i) {
        if (label[i] == ignore_index) continue;
        const int64_t image = i / s.inner, at = i % s.inner;
        out.data_as<T>()[(image * s.classes + label[i]) * s.inner + at] =
            -in[i] * (weights ? weights[label[i]] : T(1));
      }
    });
  }
  return compute == grad_out.dtype() ? out : op::_to_copy(out, grad_out.dtype());
}
Tensor _nll_loss_only(const Tensor& self, const Tensor& target, const Tensor& weight,
                      int64_t ignore_index) {
  return std::get<0>(op::_nll_loss(self, target, weight, ignore_index));
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, Flag size_average,
                int64_t ignore_index, Flag reduce, std::string_view reduction) {
  const Reduction chosen = reduction_of(size_average, reduce, reduction);
  expect_constant_weight(weight);
  const uint64_t earlier = next_node();
  auto [loss, total] = op::_nll_loss(input, as_targets(target, input), weight, ignore_index);
  return named(finished(loss, total, chosen, input.dtype()), earlier, input, chosen);
}

// ---- several labels of one sample

namespace {

// Calls f(row, labels, which classes are among them) for every row; labels end with the first -1.
template <class F>
void for_each_row_of_labels(const Tensor& self, const Tensor& target, F&& f) {
  const Tensor labels = dense_int64(target);
  const int64_t classes = self.size(-1), rows = classes ? self.numel() / classes : 0;
  std::vector<int64_t> given;
  std::vector<char> is_label;
  const int64_t* p = labels.data_as<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (p[i] < -1 || p[i] >= classes)
      runtime_error("argument #2 'target' is out of range: ", p[i], " is no class of ", classes,
                    ", and not the -1 that ends a list");
  for (int64_t r = 0; r < rows; ++r, p += classes) {
    given.clear();
    is_label.assign(size_t(classes), 0);
    for (int64_t k = 0; k < classes && p[k] >= 0; ++k) {
      given.push_back(p[k]);
      is_label[size_t(p[k])] = 1;
    }
    f(r, given, is_label);
  }
}

IntSpan without_last(const Tensor& t) {
  return t.sizes().first(size_t(t.dim() - 1));
}

}  // namespace

Tensor _multilabel_margin(const Tensor& self, const Tensor& target) {
  require_one_device({&self, &target});
  check_logits(self, Tensor());
  const DType compute = compute_dtype(self.dtype());
  Tensor out = empty_tensor(without_last(self), compute, self.device());
  if (self.is_cuda() && out.numel() != 0) {
    if (self.size(-1) == 0) op::zero_(out);
    else device_losses.multilabel_margin(dense(self), dense_int64(target), out);
  } else if (!self.is_meta() && out.numel() != 0) {
    const Tensor x = as_computed(self, compute);
    const int64_t classes = self.size(-1);
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      for_each_row_of_labels(self, target, [&](int64_t r, const auto& given, const auto& is_label) {
        const T* row = x.data_as<T>() + r * classes;
        T sum = 0;
        for (int64_t label : given)
          for (int64_t c = 0; c < classes; ++c)
            if (!is_label[size_t(c)]) sum += std::max(T(0), T(1) - row[label] + row[c]);
        out.data_as<T>()[r] = sum / T(classes);
      });
    });
  }
  return compute == self.dtype() ? out : op::_to_copy(out, self.dtype());
}

Tensor _multilabel_margin_grad(const Tensor& grad_out, const Tensor& self, const Tensor& target) {
  require_one_device({&grad_out, &self, &target});
  const DType compute = compute_dtype(self.dtype());
  Tensor out = empty_tensor(self.sizes(), compute, self.device());
  if (self.is_cuda() && out.numel() != 0) {
    out = empty_tensor(self.sizes(), self.dtype(), self.device());
    device_losses.multilabel_margin_grad(dense(self), dense_int64(target),
                                         as_computed(grad_out, compute), out);
    return out;
  }
  if (!self.is_meta() && out.numel() != 0) {
    op::zero_(out);
    const Tensor x = as_computed(self, compute), g = as_computed(grad_out, compute);
    const int64_t classes = self.size(-1);
    with_type(compute, [&](auto tag) {
      using T = decltype(tag);
      for_each_row_of_labels(self, target, [&](int64_t r, const auto& given, const auto& is_label) {
        const T* row = x.data_as<T>() + r * classes;
        T* dx = out.data_as<T>() + r * classes;
        const T step = g.data_as<T>()[r] / T(classes);
        for (int64_t label : given)
          for (int64_t c = 0; c < classes; ++c)
            if (!is_label[size_t(c)] && T(1) - row[label] + row[c] > T(0)) {
              dx[c] += step;
              dx[label] -= step;
            }
      });
    });
  }
  return compute == self.dtype() ? out : op::_to_copy(out, self.dtype());
}

}  // namespace facula::kernels
