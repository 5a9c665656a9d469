// Attention: shapes, masks and the choice of a path here, the blocks in cpu/attention.
#include "cpu/attention.h"

#include <cmath>
#include <limits>

#include "kernels/destination.h"
#include "op/hooks/attention.h"
#include "op/kernels/attention.h"
#include "op/ops/arithmetic.h"
#include "op/ops/attention.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/joining.h"
#include "op/ops/products.h"
#include "op/ops/random.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

namespace {

void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                  double dropout_p) {
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype())
    runtime_error("Expected query, key, and value to have the same dtype, but got query.dtype: ",
                  q.dtype(), " key.dtype: ", k.dtype(), " and value.dtype: ", v.dtype());
  if (q.device() != k.device()) device_error(q.device(), k.device());
  if (q.device() != v.device()) device_error(q.device(), v.device());
  if (!is_floating(q.dtype())) dtype_error(q.dtype(), "floating-point dtypes");
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    runtime_error(
        "Expected query, key, and value to all be at least 2 dimensional, but got shapes ",
        q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  if (q.size(-1) != k.size(-1))
    runtime_error("query and key must have the same last dimension, but got shapes ", q.sizes(),
                  " and ", k.sizes());
  if (k.size(-2) != v.size(-2))
    runtime_error("key and value must have the same number of rows (dimension -2), but got shapes ",
                  k.sizes(), " and ", v.sizes());
  if (!(dropout_p >= 0 && dropout_p <= 1))
    runtime_error("dropout probability has to be between 0 and 1, but got ", dropout_p);
  if (!mask.defined()) return;
  if (mask.dtype() != DType::Bool && mask.dtype() != q.dtype() && mask.dtype() != DType::Float32)
    runtime_error(
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
        "attn_mask.dtype: ",
        mask.dtype(), " and query.dtype: ", q.dtype());
  if (mask.device() != q.device()) device_error(mask.device(), q.device());
}

Dims leading(const Tensor& t, int64_t but) {
  return Dims(t.sizes().first(size_t(t.dim() - but)));
}

Tensor expanded(const Tensor& t, Dims lead, int64_t kept) {
  for (int64_t d = t.dim() - kept; d < t.dim(); ++d) lead.push_back(t.size(d));
  return same(t.sizes(), lead) ? t : op::expand(t, lead);
}

// The three operands with equal leading dimensions; heads (dimension -3) may differ for gqa.
struct Operands {
  Tensor q, k, v;
};
Operands aligned(const Tensor& q, const Tensor& k, const Tensor& v, bool gqa) {
  if (!gqa) {
    const Dims lead =
        broadcast_shapes(broadcast_shapes(leading(q, 2), leading(k, 2)), leading(v, 2));
    return {expanded(q, lead, 2), expanded(k, lead, 2), expanded(v, lead, 2)};
  }
  if (q.dim() < 3 || k.dim() < 3 || v.dim() < 3)
    runtime_error("enable_gqa needs a dimension of heads in query, key and value, but got shapes ",
                  q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  if (k.size(-3) != v.size(-3) || k.size(-3) == 0 || q.size(-3) % k.size(-3) != 0)
    runtime_error(
        "Number of heads in key and value must divide the number of heads in query, but got ",
        q.size(-3), " heads of query, ", k.size(-3), " of key and ", v.size(-3), " of value");
  const Dims lead = broadcast_shapes(broadcast_shapes(leading(q, 3), leading(k, 3)), leading(v, 3));
  return {expanded(q, lead, 3), expanded(k, lead, 3), expanded(v, lead, 3)};
}

// ---- by plain operators

// Every head of keys as often as queries share it.
Tensor shared_out(const Tensor& t, int64_t heads) {
  if (t.dim() < 3 || t.size(-3) == heads) return t;
  return op::repeat_interleave(t, heads / t.size(-3), t.dim() - 3);
}
// The reverse: sums over the heads that share one.
Tensor gathered(const Tensor& t, int64_t heads) {
  if (t.dim() < 3 || t.size(-3) == heads) return t;
  Dims split(t.sizes());
  split[split.size() - 3] = heads;
  split.insert(split.size() - 2, t.size(-3) / heads);
  return op::sum_dim(op::reshape(t, split), Dims{-3});
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool is_causal,
                         double scale) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Tensor scores = op::matmul(q * scale, op::transpose(k, -2, -1));
  if (is_causal)
    scores = op::masked_fill(scores,
                             op::logical_not(op::tril(op::ones(Dims{q.size(-2), k.size(-2)},
                                                               DType::Bool, Value(), q.device()))),
                             -kInfinity);
  if (mask.defined() && mask.dtype() == DType::Bool)
    scores = op::masked_fill(scores, op::logical_not(mask), -kInfinity);
  else if (mask.defined()) scores = scores + mask;
  if (!mask.defined()) return op::softmax(scores, -1);
  // A query that sees no key: zeros instead of 0 / 0, also in derivatives.
  const Tensor blind = op::all_dim(op::eq(op::detach(scores), -kInfinity), Dims{-1}, true);
  return op::masked_fill(op::softmax(op::masked_fill(scores, blind, 0.0), -1), blind, 0.0);
}

Tensor in_compute_type(const Tensor& t) {
  return t.defined() && is_reduced_float(t.dtype()) ? op::_to_copy(t, DType::Float32) : t;
}

Tensor plain_attention(const Operands& given, const Tensor& mask, double dropout_p, bool is_causal,
                       double scale) {
  const Tensor q = in_compute_type(given.q);
  const int64_t heads = q.dim() < 3 ? 1 : q.size(-3);
  const Tensor k = shared_out(in_compute_type(given.k), heads),
               v = shared_out(in_compute_type(given.v), heads);
  Tensor weights = attention_weights(q, k, in_compute_type(mask), is_causal, scale);
  if (dropout_p == 1) weights = weights * 0.0;
  else if (dropout_p > 0)
    weights = weights * (op::bernoulli_p(op::detach(weights), 1 - dropout_p) / (1 - dropout_p));
  const Tensor out = op::matmul(weights, v);
  return out.dtype() == given.q.dtype() ? out : op::_to_copy(out, given.q.dtype());
}

std::vector<Tensor> plain_gradients(const Tensor& grad, const Tensor& q, const Tensor& key,
                                    const Tensor& value, const Tensor& mask, bool is_causal,
                                    double scale) {
  const int64_t heads = q.size(1), key_heads = key.size(1);
  const Tensor k = shared_out(key, heads), v = shared_out(value, heads);
  const Tensor p = attention_weights(q, k, mask, is_causal, scale);
  const Tensor by_weights = op::matmul(grad, op::transpose(v, -2, -1));
  const Tensor slopes = p * (by_weights - op::sum_dim(by_weights * p, Dims{-1}, true)) * scale;
  return {op::matmul(slopes, k), gathered(op::matmul(op::transpose(slopes, -2, -1), q), key_heads),
          gathered(op::matmul(op::transpose(p, -2, -1), grad), key_heads)};
}

// ---- in blocks

// (batch, heads, rows, width), with the heads of a row beside each other where `like` has them so.
Tensor laid_out_like(const Tensor& like, int64_t width) {
  const int64_t batch = like.size(0), heads = like.size(1), rows = like.size(2);
  Dims strides{heads * rows * width, rows * width, width, 1};
  if (like.stride(1) < like.stride(2)) strides[1] = width, strides[2] = heads * width;
  return empty_tensor(Dims{batch, heads, rows, width}, strides, like.dtype(), like.device());
}

Tensor with_dense_rows(const Tensor& t) {
  return t.size(-1) <= 1 || t.stride(-1) == 1 ? t : dense(t);
}

HeadMatrix matrix_of(const Tensor& t) {
  return {t.data(), t.stride(0), t.stride(1), t.stride(2)};
}

Attention describe(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                   bool is_causal, double scale) {
  Attention a;
  a.dtype = q.dtype();
  a.batch = q.size(0), a.heads = q.size(1), a.key_heads = k.size(1);
  a.queries = q.size(2), a.keys = k.size(2), a.width = q.size(3), a.value_width = v.size(3);
  a.scale = scale, a.causal = is_causal;
  a.q = matrix_of(q), a.k = matrix_of(k), a.v = matrix_of(v);
  if (mask.defined()) {
    a.mask = mask.data(), a.mask_is_bool = mask.dtype() == DType::Bool;
    a.mask_batch = mask.stride(0), a.mask_head = mask.stride(1);
    a.mask_row = mask.stride(2), a.mask_column = mask.stride(3);
  }
  return a;
}

bool has_blocks(const Tensor& query, int64_t value_width) {
  if (query.is_cuda()) return device_attention.supports(query, value_width);
  const DType d = query.dtype();
  return d == DType::Float32 || d == DType::Float64 || d == DType::Float16 || d == DType::BFloat16;
}

// (batch, heads, rows, width)
Tensor four_dimensional(const Tensor& t) {
  if (t.dim() == 4) return t;
  if (t.dim() == 2) return op::unsqueeze(op::unsqueeze(t, 0), 0);
  if (t.dim() == 3) return op::unsqueeze(t, 0);
  return op::reshape(t, Dims{checked_numel(leading(t, 3)), t.size(-3), t.size(-2), t.size(-1)});
}

// Numbers that programs hide keys by, such as the least float32, stay finite: queries that see only
// hidden keys have weights all the same.
Tensor rounded_mask(const Tensor& mask, DType dtype) {
  const double most = largest_finite(dtype);
  const Tensor finite = op::clamp(mask, -most, most);
  return op::_to_copy(op::where(op::isinf(mask), mask, finite), dtype);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  check_inputs(query, key, value, attn_mask, dropout_p);
  // PyTorch takes both where its fused kernels do, which know neither dropout nor other ranks.
  if (is_causal && attn_mask.defined() && (dropout_p > 0 || query.dim() != 4))
    runtime_error("Explicit attn_mask should not be set when is_causal=True");
  const double factor = scale.value_or(1 / std::sqrt(double(std::max<int64_t>(1, query.size(-1)))));
  const Operands o = aligned(query, key, value, enable_gqa);
  Dims scores = leading(o.q, 1);
  scores.push_back(key.size(-2));
  if (attn_mask.defined() && !is_expandable(attn_mask.sizes(), scores))
    runtime_error("attn_mask of shape ", attn_mask.sizes(),
                  " cannot be broadcast to the shape of the scores, ", IntSpan(scores));
  bool plain = dropout_p > 0 || !has_blocks(query, value.size(-1)) || is_followed(attn_mask);
  for (const Tensor* t : {&query, &key, &value, &attn_mask})
    plain |= is_wrapped_by(*t, LevelKind::Jvp);  // tangents are cheaper step by step
  if (plain) return plain_attention(o, attn_mask, dropout_p, is_causal, factor);
  Tensor mask = attn_mask;
  if (mask.defined()) {
    if (mask.dtype() != DType::Bool && mask.dtype() != query.dtype())
      mask = rounded_mask(mask, query.dtype());
    mask = four_dimensional(op::expand(mask, scores));
  }
  const Tensor out = std::get<0>(op::_attention(four_dimensional(o.q), four_dimensional(o.k),
                                                four_dimensional(o.v), mask, is_causal, factor));
  if (o.q.dim() == 4) return out;
  Dims shape = leading(o.q, 1);
  shape.push_back(value.size(-1));
  return op::reshape(out, shape);
}

std::tuple<Tensor, Tensor> _attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const Tensor& mask, bool is_causal, double scale) {
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value);
  Tensor out = laid_out_like(q, v.size(3));
  Tensor logsumexp =
      empty_tensor(Dims{q.size(0), q.size(1), q.size(2)}, compute_dtype(q.dtype()), q.device());
  if (out.is_meta()) return {out, logsumexp};
  if (out.numel() == 0 || k.size(2) == 0) {
    op::zero_(out);
    op::fill_(logsumexp, std::numeric_limits<double>::infinity());
    return {out, logsumexp};
  }
  Attention a = describe(q, k, v, mask, is_causal, scale);
  a.out = matrix_of(out), a.logsumexp = logsumexp.data();
  a.differentiated = query.needs_grad() || key.needs_grad() || value.needs_grad();
  if (q.is_cuda()) device_attention.forward(a, q.device());
  else attention_forward(a);
  return {out, logsumexp};
}

std::vector<Tensor> _attention_gradients(const Tensor& grad, const Tensor& query, const Tensor& key,
                                         const Tensor& value, const Tensor& mask,
                                         const Tensor& output, const Tensor& logsumexp,
                                         bool is_causal, double scale) {
  bool again = false;
  for (const Tensor* t : {&grad, &query, &key, &value}) again |= is_followed(*t);
  if (again) return plain_gradients(grad, query, key, value, mask, is_causal, scale);
  return op::_attention_backward(grad, query, key, value, mask, output, logsumexp, is_causal,
                                 scale);
}

std::vector<Tensor> _attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                        const Tensor& value, const Tensor& mask,
                                        const Tensor& output, const Tensor& logsumexp,
                                        bool is_causal, double scale) {
  const Tensor q = with_dense_rows(query), k = with_dense_rows(key), v = with_dense_rows(value),
               g = with_dense_rows(grad);
  Tensor grad_q = laid_out_like(q, q.size(3)), grad_k = laid_out_like(k, k.size(3)),
         grad_v = laid_out_like(v, v.size(3));
  if (grad_q.is_meta()) return {grad_q, grad_k, grad_v};
  if (g.numel() == 0 || k.size(2) == 0 || q.size(3) == 0)
    return {op::zero_(grad_q), op::zero_(grad_k), op::zero_(grad_v)};
  Attention a = describe(q, k, v, mask, is_causal, scale);
  a.out = matrix_of(output), a.logsumexp = logsumexp.data(), a.grad_out = matrix_of(g);
  a.grad_q = matrix_of(grad_q), a.grad_k = matrix_of(grad_k), a.grad_v = matrix_of(grad_v);
  if (q.is_cuda()) device_attention.backward(a, q.device());
  else attention_backward(a);
  return {grad_q, grad_k, grad_v};
}

}  // namespace facula::kernels
