// Recurrent layers step by step in plain operators: what transforms run, and what is differentiated
// again when gradients of gradients are asked for.
#include <algorithm>
#include <vector>

#include "autograd/engine.h"
#include "kernels/recurrent.h"
#include "op/kernels/recurrent.h"
#include "op/ops/copying.h"
#include "op/ops/joining.h"
#include "op/ops/linear.h"
#include "op/ops/mathematics.h"
#include "op/ops/recurrent.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

namespace {

struct State {
  Tensor h, c;
};

State next(const RecurrentTensors& x, Cell cell, const Tensor& share, const State& s) {
  const Tensor of_state = op::linear(s.h, x.w_hh, x.b_hh);
  const int64_t n = x.w_hh.size(0) / gates_of(cell);
  auto part = [n](const Tensor& t, int64_t i) { return op::narrow(t, 1, i * n, n); };
  switch (cell) {
    case Cell::Lstm: {
      const Tensor gates = share + of_state;
      const Tensor c = op::sigmoid(part(gates, 1)) * s.c +
                       op::sigmoid(part(gates, 0)) * op::tanh(part(gates, 2));
      const Tensor h = op::sigmoid(part(gates, 3)) * op::tanh(c);
      return {x.w_hr.defined() ? op::linear(h, x.w_hr) : h, c};
    }
    case Cell::Gru: {
      const Tensor reset = op::sigmoid(part(share, 0) + part(of_state, 0)),
                   keep = op::sigmoid(part(share, 1) + part(of_state, 1)),
                   candidate = op::tanh(part(share, 2) + reset * part(of_state, 2));
      return {candidate + keep * (s.h - candidate), Tensor()};
    }
    case Cell::Tanh: return {op::tanh(share + of_state), Tensor()};
    default: return {op::relu(share + of_state), Tensor()};
  }
}

Tensor first_rows(const Tensor& t, int64_t n) {
  return !t.defined() || t.size(0) == n ? t : op::narrow(t, 0, 0, n);
}

Tensor joined(const std::vector<Tensor>& parts) {
  return parts.size() == 1 ? parts[0] : op::cat(TensorSpan(parts), 0);
}

// `t` with the rows of `start` that it does not have yet.
Tensor grown(const Tensor& t, const Tensor& start, int64_t n) {
  if (!t.defined() || t.size(0) == n) return t;
  return joined({t, op::narrow(start, 0, t.size(0), n - t.size(0))});
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> plain_recurrent_layer(const RecurrentTensors& x, Cell cell,
                                                         IntSpan batch_sizes, bool reverse) {
  const Tensor shares = op::linear(x.input, x.w_ih, x.b_ih);
  const int64_t steps = int64_t(batch_sizes.size());
  std::vector<int64_t> first_row;
  for (int64_t at = 0; const int64_t n : batch_sizes) first_row.push_back(at), at += n;
  std::vector<Tensor> outputs(batch_sizes.size());
  std::vector<Tensor> ended_h, ended_c;  // of sequences that are over, the last ones first
  State s{x.hx, x.cx};
  if (reverse)
    s = {first_rows(x.hx, batch_sizes[size_t(steps - 1)]),
         first_rows(x.cx, batch_sizes[size_t(steps - 1)])};
  for (int64_t i = 0; i < steps; ++i) {
    const size_t t = size_t(reverse ? steps - 1 - i : i);
    const int64_t n = batch_sizes[t];
    if (reverse) {
      s = {grown(s.h, x.hx, n), grown(s.c, x.cx, n)};
    } else if (s.h.size(0) != n) {
      ended_h.push_back(op::narrow(s.h, 0, n, s.h.size(0) - n));
      if (s.c.defined()) ended_c.push_back(op::narrow(s.c, 0, n, s.c.size(0) - n));
      s = {first_rows(s.h, n), first_rows(s.c, n)};
    }
    s = next(x, cell, op::narrow(shares, 0, first_row[t], n), s);
    outputs[t] = s.h;
  }
  ended_h.push_back(s.h);
  std::reverse(ended_h.begin(), ended_h.end());
  Tensor cy;
  if (s.c.defined()) {
    ended_c.push_back(s.c);
    std::reverse(ended_c.begin(), ended_c.end());
    cy = joined(ended_c);
  }
  return {joined(outputs), joined(ended_h), cy};
}

std::vector<Tensor> _recurrent_gradients(const Tensor& grad_output, const Tensor& grad_hy,
                                         const Tensor& grad_cy, const Tensor& input,
                                         const Tensor& hx, const Tensor& cx, const Tensor& w_ih,
                                         const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh,
                                         const Tensor& w_hr, const Tensor& output,
                                         const Tensor& reserve, int64_t kind, IntSpan batch_sizes,
                                         bool reverse, int64_t wanted) {
  const Tensor* const inputs[] = {&input, &hx, &cx, &w_ih, &w_hh, &b_ih, &b_hh, &w_hr};
  const Tensor* const grads[] = {&grad_output, &grad_hy, &grad_cy};
  bool again = false;
  for (const Tensor* t : inputs) again |= is_followed(*t);
  for (const Tensor* t : grads) again |= is_followed(*t) || is_wrapped_by(*t, LevelKind::Vmap);
  if (!again)
    return op::_recurrent_backward(grad_output, grad_hy, grad_cy, input, hx, cx, w_ih, w_hh, b_ih,
                                   b_hh, w_hr, output, reserve, kind, batch_sizes, reverse, wanted);
  // Gradients by the tensors themselves, and not by what they were made from: views cut these off.
  const bool differentiate = grad_enabled();
  GradGuard on(true);
  Tensor views[8];
  for (int i = 0; i < 8; ++i) {
    if (!inputs[i]->defined()) continue;
    views[i] = op::alias(*inputs[i]);
    if (wanted >> i & 1 && !views[i].needs_grad()) {
      views[i] = op::detach(views[i]);
      set_requires_grad(views[i], true);
    }
  }
  const auto [out, hy, cy] = plain_recurrent_layer(
      {views[0], views[1], views[2], views[3], views[4], views[5], views[6], views[7]}, Cell(kind),
      batch_sizes, reverse);
  const Tensor results[] = {out, hy, cy};
  std::vector<NodeRef> held;
  std::vector<Edge> roots, targets;
  std::vector<Tensor> given;
  auto edge_of = [&](const Tensor& t) {
    const Edge e = gradient_edge(t);
    held.push_back(NodeRef(e.node));
    return e;
  };
  for (int i = 0; i < 3; ++i)
    if (grads[i]->defined() && results[i].defined() && results[i].needs_grad()) {
      roots.push_back(edge_of(results[i]));
      given.push_back(*grads[i]);
    }
  for (int i = 0; i < 8; ++i)
    if (wanted >> i & 1) targets.push_back(edge_of(views[i]));
  BackwardOptions options;
  options.accumulate = false;
  options.create_graph = options.keep_graph = differentiate;
  const std::vector<Tensor> found = run_backward(roots, given, targets, options);
  std::vector<Tensor> result(8);
  for (size_t i = 0, at = 0; i < 8; ++i)
    if (wanted >> i & 1) result[i] = found[at++];
  return result;
}

}  // namespace facula::kernels
