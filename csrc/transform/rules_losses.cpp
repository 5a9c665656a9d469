// Batching rules of losses over classes and sequences: the samples of all elements make one call.
// What a call sums over its samples, the total weight, is computed beside it, and so are weights
// that differ over the batch.
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/losses.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

// Arguments of a call on (N, C, ...) with targets (N, ...), or (C,) with one target.
struct Classes {
  uint32_t level;
  int64_t batch, samples;  // N, or -1 without one
  int64_t count;           // of classes
  Tensor target, labels;   // with the batch in front; labels that are ignored are 0
  Tensor ignored;
  Tensor weight;
  bool weights_differ;

  Classes(IntSpan input, const Tensor& target_, const Tensor& weight_, int64_t ignore_index,
          uint32_t level_)
      : level(level_),
        batch(batch_size(level_)),
        samples(input.size() > 1 ? input[0] : -1),
        weight(weight_),
        weights_differ(weight_.defined() && is_batched(weight_, level_)) {
    if (input.empty())
      value_error("Expected an input with 1 or more dimensions, (C,) or (N, C, ...)");
    count = input[samples < 0 ? 0 : 1];
    if (target_.dim() + 1 != int64_t(input.size()))
      runtime_error("Expected a target with one dimension less than the input of size ", input,
                    ", got ", target_.sizes());
    target = in_front(target_, level);
    const Tensor wide = op::_to_copy(target, DType::Int64);
    ignored = op::eq(wide, ignore_index);
    labels = op::where(ignored, 0, wide);
  }

  // Values with the batch in front <-> one call's samples.
  Tensor folded(const Tensor& value) const { return samples < 0 ? value : join(value, 0); }
  Tensor unfolded(const Tensor& t) const { return samples < 0 ? t : split(t, 0, batch, samples); }
  // (2, samples ...) <-> (batch, 2, N ...)
  Tensor folded_sums(const Tensor& t) const {
    const Tensor v = op::movedim(in_front(t, level), Dims{0}, Dims{1});
    return samples < 0 ? v : join(v, 1);
  }
  Tensor unfolded_sums(const Tensor& t) const {
    return op::movedim(samples < 0 ? t : split(t, 1, batch, samples), Dims{1}, Dims{0});
  }

  // The weight that every sample has, with the batch in front.
  Tensor own_weights(DType dtype) const {
    if (!weight.defined()) return op::_to_copy(op::logical_not(ignored), dtype);
    const Tensor table = op::_to_copy(in_front(weight, level), dtype);
    const Tensor own = op::reshape(op::gather(table, 1, flattened(labels)), labels.sizes());
    return op::masked_fill(own, ignored, 0);
  }
  Tensor total(DType dtype) const {
    const Dims one{1};
    return op::sum_dim(flattened(own_weights(dtype)), IntSpan(one), false);
  }
  int64_t class_dim() const { return samples < 0 ? 1 : 2; }  // with the batch in front
  // A number for each class, against values with the batch in front.
  Tensor by_class(const Tensor& table, int64_t rank) const {
    Dims shape(size_t(rank), 1);
    shape[0] = batch;
    shape[size_t(class_dim())] = count;
    return op::reshape(table, shape);
  }
};

DType computed(DType dtype) {
  return is_reduced_float(dtype) ? DType::Float32 : dtype;
}
Tensor in_dtype(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_copy(t, dtype);
}

}  // namespace

// _cross_entropy(self, target, weight, ignore_index, label_smoothing) -> (loss, sums, total_weight)
void cross_entropy(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  const int64_t ignore_index = args[3].to_int();
  const double smoothing = args[4].to_double();
  const Classes c(self.sizes(), args[1].tensor(), args[2].tensor(), ignore_index, level);
  const DType dtype = computed(self.dtype());
  const Tensor x = in_front(self, level);
  auto [loss, sums, total] =
      op::_cross_entropy(c.folded(x), c.folded(c.target), c.weights_differ ? Tensor() : c.weight,
                         ignore_index, c.weights_differ ? 0 : smoothing);
  loss = c.unfolded(loss);
  if (c.weights_differ) {
    loss = loss * (c.own_weights(dtype) * (1 - smoothing));
    if (smoothing > 0) {
      // The mean over classes of -w_c log p_c.
      const Dims classes{c.class_dim()};
      const Tensor table = in_dtype(in_front(c.weight, level), dtype);
      const Tensor terms =
          op::log_softmax(in_dtype(x, dtype), c.class_dim()) * c.by_class(table, x.dim());
      const Tensor spread =
          op::sum_dim(terms, IntSpan(classes), false) * (-smoothing / double(c.count));
      loss = loss + op::masked_fill(spread, c.ignored, 0);
    }
  }
  deliver(rets, 0, loss, level);
  deliver(rets, 1, c.unfolded_sums(sums), level);
  deliver(rets, 2, c.total(dtype), level);
}

// _cross_entropy_grad(grad_out, self, target, sums, weight, ignore_index, label_smoothing)
void cross_entropy_grad(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[1].tensor();
  const int64_t ignore_index = args[5].to_int();
  const double smoothing = args[6].to_double();
  const Classes c(self.sizes(), args[2].tensor(), args[4].tensor(), ignore_index, level);
  const DType dtype = computed(self.dtype());
  Tensor grad = in_front(args[0].tensor(), level);
  const Tensor x = in_front(self, level);
  const Tensor given = grad;
  if (c.weights_differ) grad = in_dtype(grad, dtype) * (c.own_weights(dtype) * (1 - smoothing));
  Tensor out = c.unfolded(op::_cross_entropy_grad(
      c.folded(grad), c.folded(x), c.folded(c.target), c.folded_sums(args[3].tensor()),
      c.weights_differ ? Tensor() : c.weight, ignore_index, c.weights_differ ? 0 : smoothing));
  if (c.weights_differ && smoothing > 0) {
    // Of the mean over classes: p sum(w) - w, times s / C.
    const Dims classes{c.class_dim()};
    const Tensor table = c.by_class(in_dtype(in_front(c.weight, level), dtype), x.dim());
    const Tensor p = op::softmax(in_dtype(x, dtype), c.class_dim());
    const Tensor each = op::masked_fill(in_dtype(given, dtype), c.ignored, 0);
    const Tensor slope = p * op::sum_dim(table, IntSpan(classes), true) - table;
    out = in_dtype(in_dtype(out, dtype) +
                       op::unsqueeze(each, c.class_dim()) * slope * (smoothing / double(c.count)),
                   self.dtype());
  }
  deliver(rets, out, level);
}

// _nll_loss(self, target, weight, ignore_index) -> (loss, total_weight)
void nll_loss(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  const int64_t ignore_index = args[3].to_int();
  const Classes c(self.sizes(), args[1].tensor(), args[2].tensor(), ignore_index, level);
  const DType dtype = computed(self.dtype());
  Tensor loss =
      c.unfolded(std::get<0>(op::_nll_loss(c.folded(in_front(self, level)), c.folded(c.target),
                                           c.weights_differ ? Tensor() : c.weight, ignore_index)));
  if (c.weights_differ) loss = loss * c.own_weights(dtype);
  deliver(rets, 0, loss, level);
  deliver(rets, 1, c.total(dtype), level);
}

// _nll_loss_grad(grad_out, sizes, target, weight, ignore_index)
void nll_loss_grad(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const int64_t ignore_index = args[4].to_int();
  Dims sizes(args[1].ints());
  const Classes c(sizes, args[2].tensor(), args[3].tensor(), ignore_index, level);
  Tensor grad = in_front(args[0].tensor(), level);
  if (c.weights_differ) grad = grad * c.own_weights(grad.dtype());
  if (c.samples < 0) sizes.insert(0, c.batch);
  else sizes[0] *= c.batch;
  deliver(rets,
          c.unfolded(op::_nll_loss_grad(c.folded(grad), sizes, c.folded(c.target),
                                        c.weights_differ ? Tensor() : c.weight, ignore_index)),
          level);
}

// ---- sequences

namespace {

// (batch, sum of lengths) with sequences one after the other -> (batch, N, longest possible).
Tensor padded_targets(const Tensor& targets, const Tensor& lengths) {
  const Tensor ends = op::cumsum(lengths, 1), starts = ends - lengths;
  const Tensor k = op::arange(Scalar(targets.size(1)), DType::Int64, Value(), targets.device());
  const Tensor at = op::where(k < op::unsqueeze(lengths, -1), op::unsqueeze(starts, -1) + k, 0);
  return op::reshape(op::gather(targets, 1, flattened(at)), at.sizes());
}

}  // namespace

// _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) and
// _ctc_loss_grad(grad_out, log_probs, targets, input_lengths, target_lengths, likelihood, alpha,
// blank, zero_infinity): the sequences of all elements make one batch, which is dimension 1 of
// log_probs and 0 of the others.
void ctc_loss(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const int first = std::string_view(op.args[0].name) == "log_probs" ? 0 : 1;
  const int64_t batch = batch_size(level);
  const Tensor &log_probs = args[first].tensor(), &targets = args[first + 1].tensor(),
               &lengths = args[first + 3].tensor();
  if (log_probs.dim() != 3)
    runtime_error("log_probs must have shape (T, N, C), or (T, C) for one sequence, got ",
                  log_probs.sizes());
  const int64_t sequences = log_probs.size(1);
  Arguments values(op, args);
  for (int i = 0; i < op.arg_count; ++i) {
    if (!args[i].is_tensor()) continue;
    Tensor v = in_front(args[i].tensor(), level);
    if (i == first) v = op::movedim(v, Dims{0}, Dims{1});
    if (i == first + 1 && targets.dim() == 1 && is_batched(lengths, level))
      v = padded_targets(op::_to_copy(v, DType::Int64),
                         op::_to_copy(in_front(lengths, level), DType::Int64));
    values.set(values[i], join(v, i == first ? 1 : 0));
  }
  Rets results;
  call(op, values.data(), results);
  if (first == 1)
    return deliver(rets, op::movedim(split(results.t[0], 1, batch, sequences), Dims{1}, Dims{0}),
                   level);
  for (int i = 0; i < op.ret_count; ++i)
    deliver(rets, i, split(results.t[i], 0, batch, sequences), level);
}

}  // namespace facula::batch
