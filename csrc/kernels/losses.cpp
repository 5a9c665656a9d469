// Losses between pairs of elements, vectors and distributions, in terms of other operators.
#include "op/kernels/losses.h"
#include "kernels/loss_reduction.h"
#include "op/elementwise.h"
#include "op/ops/activations.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/losses.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

using Flag = std::optional<bool>;

const Dims kLast{-1};

Tensor sum_last(const Tensor& t) {
  return op::sum_dim(t, IntSpan(kLast), false);
}

Tensor weighted(const Tensor& loss, const Tensor& weight) {
  if (!same(weight.sizes(), loss.sizes()))
    value_error("Weights and input must have the same size, got ", weight.sizes(), " and ",
                loss.sizes());
  return loss * weight;
}
// PyTorch divides the sum by the sum of the weights here, not by the number of elements.
Tensor reduced_with(const Tensor& loss, const Tensor& weight, Reduction reduction) {
  if (!weight.defined()) return reduced(loss, reduction);
  if (reduction == Reduction::Mean) return op::sum(weighted(loss, weight)) / op::sum(weight);
  return reduced(weighted(loss, weight), reduction);
}

// A 0-d tensor counts as one of the other's shape, also for the dtype of the loss.
Tensor full(const Tensor& t, const Tensor& other) {
  return t.dim() == 0 && t.dtype() != other.dtype() ? op::expand(t, other.sizes()) : t;
}

}  // namespace

// ---- distances

Tensor mse_loss(const Tensor& input, const Tensor& target, Flag size_average, Flag reduce,
                std::string_view reduction, const Tensor& weight) {
  warn_of_broadcast(input, target);
  return reduced_with(op::_mse(full(input, target), full(target, input)), weight,
                      reduction_of(size_average, reduce, reduction));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Flag size_average, Flag reduce,
               std::string_view reduction, const Tensor& weight) {
  warn_of_broadcast(input, target);
  const DType common = promote_types(input.dtype(), target.dtype());
  return reduced_with(!is_floating(common) ? op::abs(input - target)
                                           : op::_l1(full(input, target), full(target, input)),
                      weight, reduction_of(size_average, reduce, reduction));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Flag size_average, Flag reduce,
                      std::string_view reduction, double beta) {
  warn_of_broadcast(input, target);
  if (!(beta >= 0))
    runtime_error("smooth_l1_loss does not support negative values for beta, got ", beta);
  return reduced(op::_smooth_l1(full(input, target), full(target, input), beta),
                 reduction_of(size_average, reduce, reduction));
}

Tensor huber_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
                  double delta, const Tensor& weight) {
  warn_of_broadcast(input, target);
  if (!(delta > 0))
    runtime_error("huber_loss does not support non-positive values for delta, got ", delta);
  const Reduction chosen = reduction_named(reduction);
  Tensor loss = op::_huber(full(input, target), full(target, input), delta);
  // Unlike the others, it has the dtype of the input.
  if (loss.dtype() != input.dtype()) {
    if (!can_cast(loss.dtype(), input.dtype()))
      runtime_error("result type ", legacy_dtype_name(loss.dtype()),
                    " can't be cast to the desired output type ", legacy_dtype_name(input.dtype()));
    loss = op::_to_copy(loss, input.dtype());
  }
  if (!weight.defined()) return reduced(loss, chosen);
  // Unlike the others, it divides by the number of elements.
  return reduced(weighted(loss, weight), chosen);
}

// ---- probabilities of two outcomes

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                            Flag size_average, Flag reduce, std::string_view reduction) {
  if (!same(input.sizes(), target.sizes()))
    value_error("Using a target size (facula.Size(", target.sizes(),
                ")) that is different to the input size (facula.Size(", input.sizes(),
                ")) is deprecated. Please ensure they have the same size.");
  if (target.dtype() != input.dtype())
    runtime_error("Found dtype ", legacy_dtype_name(target.dtype()), " but expected ",
                  legacy_dtype_name(input.dtype()),
                  ": target must have the dtype of the input; use target.to(input.dtype)");
  Tensor loss = op::_binary_cross_entropy(input, target);
  if (weight.defined()) loss = loss * weight;
  return reduced(loss, reduction_of(size_average, reduce, reduction));
}

static Tensor with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                          const Tensor& pos_weight, Reduction reduction) {
  if (is_integral(target.dtype(), true))
    runtime_error("target must be floating point, got dtype ", target.dtype(),
                  "; use target.to(input.dtype)");
  Tensor loss;
  if (pos_weight.defined())
    loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * op::logsigmoid(input);
  else loss = op::_logit_cross_entropy(input, target);
  if (weight.defined()) loss = loss * weight;
  return reduced(loss, reduction);
}
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        int64_t reduction) {
  return with_logits(self, target, weight, pos_weight, reduction_numbered(reduction));
}
Tensor binary_cross_entropy_with_logits_functional(const Tensor& input, const Tensor& target,
                                                   const Tensor& weight, Flag size_average,
                                                   Flag reduce, std::string_view reduction,
                                                   const Tensor& pos_weight) {
  if (!same(input.sizes(), target.sizes()))
    value_error("Target size (facula.Size(", target.sizes(),
                ")) must be the same as input size (facula.Size(", input.sizes(), "))");
  return with_logits(input, target, weight, pos_weight,
                     reduction_of(size_average, reduce, reduction));
}

// ---- classes, beside cross_entropy.cpp

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p, double margin,
                         const Tensor& weight, Flag size_average, Flag reduce,
                         std::string_view reduction) {
  const Reduction chosen = reduction_of(size_average, reduce, reduction);
  if (p != 1 && p != 2) value_error("only p == 1 and p == 2 supported, got p=", p);
  if (weight.defined() && weight.dim() != 1)
    value_error("weight must be one-dimensional, got shape ", weight.sizes());
  const bool one = input.dim() < 2;
  const Tensor x = one ? op::reshape(input, Dims{1, -1}) : input;
  if (input.dim() > 2 || x.size(1) == 0)
    runtime_error("Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
                  input.sizes());
  const Tensor y = one ? op::reshape(target, Dims{-1}) : target;
  if (y.dim() != 1 || y.size(0) != x.size(0))
    runtime_error("inconsistent target size, expected ", x.size(0), " classes but got shape ",
                  target.sizes());
  if (weight.defined() && weight.numel() != x.size(1))
    runtime_error("inconsistent weight size, expected ", x.size(1), " but got ", weight.sizes());
  const Tensor at = op::unsqueeze(y, 1);
  // A class exactly at the margin has no gradient, which it would have with clamp_min.
  Tensor z = op::relu(margin - op::gather(x, 1, at) + x);
  if (p == 2) z = z * z;
  if (weight.defined()) z = z * op::unsqueeze(op::index_select(weight, 0, y), 1);
  z = op::scatter_value(z, 1, at, Scalar(0.0));
  const Tensor loss = sum_last(z) / x.size(1);
  return reduced(one ? op::reshape(loss, target.dim() ? IntSpan(target.sizes()) : IntSpan()) : loss,
                 chosen);
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Flag size_average,
                              Flag reduce, std::string_view reduction) {
  const Reduction chosen = reduction_of(size_average, reduce, reduction);
  if (input.dim() > 2 || (input.dim() && input.size(-1) == 0))
    runtime_error("Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
                  input.sizes());
  if (!same(target.sizes(), input.sizes()) && !(input.dim() == 0 && target.numel() == 1))
    runtime_error("inconsistent target size: ", target.sizes(),
                  " for input of size: ", input.sizes());
  if (!is_integral(target.dtype()))
    runtime_error("expected scalar type Long but found ", target.dtype());
  const bool scalar = input.dim() == 0;
  const Tensor loss = op::_multilabel_margin(scalar ? op::reshape(input, Dims{1}) : input,
                                             scalar ? op::reshape(target, Dims{1}) : target);
  return reduced(loss, chosen);
}
Tensor _multilabel_margin_along(const Tensor& direction, const Tensor& grad_out, const Tensor& self,
                                const Tensor& target) {
  return sum_last(direction * op::_multilabel_margin_grad(op::ones_like(grad_out), self, target));
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Flag size_average, Flag reduce, std::string_view reduction) {
  Tensor loss = -(target * op::logsigmoid(input) + (1 - target) * op::logsigmoid(-input));
  if (weight.defined()) loss = loss * weight;
  const int64_t classes = input.dim() ? input.size(-1) : 1;
  if (input.dim()) loss = sum_last(loss) / classes;
  return reduced(loss, reduction_of(size_average, reduce, reduction));
}

// ---- distributions

static Tensor divergence(const Tensor& input, const Tensor& target, bool log_target,
                         Reduction reduction) {
  for (const Tensor* t : {&input, &target})
    if (is_integral(t->dtype(), true))
      runtime_error("Integral inputs not supported: ", t == &input ? "input" : "target",
                    " has dtype ", t->dtype());
  const Tensor loss =
      log_target ? op::exp(target) * (target - input) : op::xlogy(target, target) - target * input;
  if (reduction == Reduction::BatchMean) return op::sum(loss) / (input.dim() ? input.size(0) : 1);
  return reduced(loss, reduction);
}
Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  return divergence(self, target, log_target, reduction_numbered(reduction));
}
Tensor kl_div_functional(const Tensor& input, const Tensor& target, Flag size_average, Flag reduce,
                         std::string_view reduction, bool log_target) {
  if (!size_average && !reduce && reduction == "batchmean")
    return divergence(input, target, log_target, Reduction::BatchMean);
  const Reduction chosen = reduction_of(size_average, reduce, reduction);
  if (chosen == Reduction::Mean && !size_average && !reduce && warn)
    warn(
        "reduction: 'mean' divides the total loss by both the batch size and the support size."
        "'batchmean' divides only by the batch size, and aligns with the KL div math definition.");
  return divergence(input, target, log_target, chosen);
}

static Tensor poisson(const Tensor& input, const Tensor& target, bool log_input, bool full,
                      double eps, Reduction reduction) {
  Tensor loss = log_input ? op::exp(input) - target * input : input - target * op::log(input + eps);
  if (full) {
    constexpr double kTwoPi = 6.283185307179586;
    const Tensor stirling = target * op::log(target) - target + op::log(target * kTwoPi) * 0.5;
    loss = loss + op::masked_fill(stirling, op::le(target, 1), 0.0);
  }
  return reduced(loss, reduction);
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  return poisson(input, target, log_input, full, eps, reduction_numbered(reduction));
}
Tensor poisson_nll_loss_functional(const Tensor& input, const Tensor& target, bool log_input,
                                   bool full, Flag size_average, double eps, Flag reduce,
                                   std::string_view reduction) {
  return poisson(input, target, log_input, full, eps,
                 reduction_of(size_average, reduce, reduction));
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, Value var, bool full,
                         double eps, std::string_view reduction) {
  const Reduction chosen = reduction_named(reduction);
  Tensor variance = var.is_tensor() ? var.tensor() : op::full_like(input, var.scalar());
  if (var.is_tensor() && !same(variance.sizes(), input.sizes())) {
    // One variance for a row, with the last dimension left out, or for all along one dimension.
    const IntSpan outer = input.sizes().first(size_t(std::max<int64_t>(input.dim() - 1, 0)));
    int64_t differ = 0;
    if (input.dim() == variance.dim())
      for (int64_t d = 0; d < input.dim(); ++d)
        if (variance.size(d) != input.size(d)) differ += variance.size(d) == 1 ? 1 : 2;
    if (input.dim() > 0 && same(outer, variance.sizes())) {
      variance = op::unsqueeze(variance, -1);
    } else if (differ != 1) {
      value_error("var is of incorrect size: ", variance.sizes(), " for an input of size ",
                  input.sizes(),
                  "; it has the input's size, with 1 for one dimension, or without the last one");
    }
  }
  variance = op::_variances(variance, eps);
  const Tensor difference = input - target;
  Tensor loss = (op::log(variance) + difference * difference / variance) * 0.5;
  if (full) loss = loss + 0.9189385332046727;  // log(2 pi) / 2
  return reduced(loss, chosen);
}

// ---- pairs and triplets

static Tensor hinge(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  const Tensor below = op::clamp_min(margin - input, 0.0);
  return reduced(
      op::where(op::ne(target, 1), below, 0.0) + op::where(op::ne(target, -1), input, 0.0),
      reduction);
}
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  return hinge(self, target, margin, reduction_numbered(reduction));
}
Tensor hinge_embedding_loss_functional(const Tensor& input, const Tensor& target, double margin,
                                       Flag size_average, Flag reduce, std::string_view reduction) {
  return hinge(input, target, margin, reduction_of(size_average, reduce, reduction));
}

static Tensor cosine(const Tensor& input1, const Tensor& input2, const Tensor& target,
                     double margin, Reduction reduction) {
  const int64_t batch = target.dim();
  if (batch > 1 || input1.dim() != batch + 1 || input2.dim() != batch + 1)
    runtime_error(batch > 1 ? "0D or 1D target tensor expected, multi-target not supported"
                  : batch
                      ? "1D target tensor expects 2D input tensors, but found inputs with sizes "
                      : "0D target tensor expects 1D input tensors, but found inputs with sizes ",
                  input1.sizes(), " and ", input2.sizes(), ".");
  constexpr double kLeast = 1e-12;
  const Tensor product = sum_last(input1 * input2);
  const Tensor magnitude =
      (sum_last(input1 * input1) + kLeast) * (sum_last(input2 * input2) + kLeast);
  const Tensor cos = product / op::sqrt(magnitude);
  return reduced(op::where(op::eq(target, 1), 1 - cos, 0.0) +
                     op::where(op::eq(target, -1), op::clamp_min(cos - margin, 0.0), 0.0),
                 reduction);
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  return cosine(input1, input2, target, margin, reduction_numbered(reduction));
}
Tensor cosine_embedding_loss_functional(const Tensor& input1, const Tensor& input2,
                                        const Tensor& target, double margin, Flag size_average,
                                        Flag reduce, std::string_view reduction) {
  return cosine(input1, input2, target, margin, reduction_of(size_average, reduce, reduction));
}

static Tensor ranking(const Tensor& input1, const Tensor& input2, const Tensor& target,
                      double margin, Reduction reduction) {
  return reduced(op::clamp_min(-target * (input1 - input2) + margin, 0.0), reduction);
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  return ranking(input1, input2, target, margin, reduction_numbered(reduction));
}
Tensor margin_ranking_loss_functional(const Tensor& input1, const Tensor& input2,
                                      const Tensor& target, double margin, Flag size_average,
                                      Flag reduce, std::string_view reduction) {
  if (input1.dim() != input2.dim() || input1.dim() != target.dim())
    runtime_error("All input tensors should have same dimension but got sizes: input1: ",
                  input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes());
  return ranking(input1, input2, target, margin, reduction_of(size_average, reduce, reduction));
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Flag size_average, Flag reduce,
                        std::string_view reduction) {
  // logsigmoid would not keep the layout of the input.
  const Tensor loss = op::logaddexp(-(input * target), weak_number_tensor(Scalar(0.0)));
  return reduced(loss, reduction_of(size_average, reduce, reduction));
}

static Tensor triplet(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                      double margin, double p, double eps, bool swap, Reduction reduction) {
  if (anchor.dim() != positive.dim() || anchor.dim() != negative.dim())
    runtime_error(
        "The anchor, positive, and negative tensors are expected to have the same number ",
        "of dimensions, but got: anchor ", anchor.dim(), "D, positive ", positive.dim(),
        "D, and negative ", negative.dim(), "D inputs");
  if (!(margin > 0)) value_error("margin must be greater than 0, got ", margin);
  auto distance = [&](const Tensor& a, const Tensor& b) {
    return op::linalg_vector_norm(a - b + eps, Scalar(p), IntSpan(kLast));
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (swap) far = op::minimum(far, distance(positive, negative));
  return reduced(op::clamp_min(near - far + margin, 0.0), reduction);
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  return triplet(anchor, positive, negative, margin, p, eps, swap, reduction_numbered(reduction));
}
Tensor triplet_margin_loss_functional(const Tensor& anchor, const Tensor& positive,
                                      const Tensor& negative, double margin, double p, double eps,
                                      bool swap, Flag size_average, Flag reduce,
                                      std::string_view reduction) {
  return triplet(anchor, positive, negative, margin, p, eps, swap,
                 reduction_of(size_average, reduce, reduction));
}

}  // namespace facula::kernels
