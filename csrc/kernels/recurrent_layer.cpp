// One layer and direction of a recurrent network: the input's share of all gates is one product,
// the steps are in cpu/recurrent, and the gradients of the weights are one product each.
#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/gemm.h"
#include "cpu/recurrent.h"
#include "kernels/destination.h"
#include "kernels/recurrent.h"
#include "op/hooks/products.h"
#include "op/hooks/recurrent.h"
#include "op/kernels/recurrent.h"
#include "op/layer_precision.h"
#include "op/ops/copying.h"
#include "op/ops/products.h"
#include "op/ops/recurrent.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

void expect_shape(const Tensor& t, const char* name, IntSpan shape) {
  if (t.defined() && !same(t.sizes(), shape))
    runtime_error(name, " must have shape ", shape, ", got ", t.sizes());
}

void check_layer(const RecurrentTensors& x, Cell cell, IntSpan batch_sizes) {
  if (x.input.dim() != 2) runtime_error("expected rows of inputs, got shape ", x.input.sizes());
  if (x.w_hh.dim() != 2 || x.w_ih.dim() != 2)
    runtime_error("weights must be matrices, got shapes ", x.w_ih.sizes(), " and ", x.w_hh.sizes());
  const int64_t gates = gates_of(cell), width = x.w_hh.size(0), hidden = width / gates;
  if (width % gates != 0)
    runtime_error("the weight of the state must have ", gates, " * hidden_size rows, got shape ",
                  x.w_hh.sizes());
  const int64_t state = x.w_hr.defined() ? x.w_hr.size(0) : hidden;
  if (x.input.size(1) != x.w_ih.size(1))
    runtime_error("input has ", x.input.size(1),
                  " features, but the weight of the input, of shape ", x.w_ih.sizes(), ", expects ",
                  x.w_ih.size(1));
  expect_shape(x.w_ih, "the weight of the input", Dims{width, x.input.size(1)});
  expect_shape(x.w_hh, "the weight of the state", Dims{width, state});
  expect_shape(x.w_hr, "the weight of the projection", Dims{state, hidden});
  expect_shape(x.b_ih, "the bias of the input", Dims{width});
  expect_shape(x.b_hh, "the bias of the state", Dims{width});
  if (x.b_ih.defined() != x.b_hh.defined()) runtime_error("expected both biases or none");
  if (batch_sizes.empty()) runtime_error("Expected sequence length to be larger than 0 in RNN");
  int64_t rows = 0;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    if (batch_sizes[t] < 0 || (t > 0 && batch_sizes[t] > batch_sizes[t - 1]))
      runtime_error("batch_sizes must not increase and not be negative, got ", batch_sizes);
    rows += batch_sizes[t];
  }
  if (rows != x.input.size(0))
    runtime_error("batch_sizes add up to ", rows, ", but the data has ", x.input.size(0), " rows");
  expect_shape(x.hx, "the hidden state of a layer", Dims{batch_sizes[0], state});
  if (cell == Cell::Lstm) {
    if (!x.cx.defined()) runtime_error("lstm needs a cell state");
    expect_shape(x.cx, "the cell state of a layer", Dims{batch_sizes[0], hidden});
  }
  const Tensor* all[] = {&x.hx, &x.cx, &x.w_ih, &x.w_hh, &x.b_ih, &x.b_hh, &x.w_hr};
  const char* names[] = {"hx", "cx", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"};
  for (int i = 0; i < 7; ++i) {
    const Tensor& t = *all[i];
    if (!t.defined()) continue;
    if (t.dtype() != x.input.dtype())
      runtime_error("Input and ", names[i], " must have the same dtype, got ", x.input.dtype(),
                    " and ", t.dtype());
    if (t.device() != x.input.device()) device_error(x.input.device(), t.device());
  }
  if (!is_floating(x.input.dtype())) dtype_error(x.input.dtype(), "floating-point dtypes");
}

// Dense, in the type that is computed in.
Tensor for_steps(const Tensor& t, DType dtype) {
  if (!t.defined()) return t;
  return dense(t.dtype() == dtype ? t : op::_to_copy(t, dtype));
}

RecurrentTensors for_steps(const RecurrentTensors& x, DType d) {
  return {for_steps(x.input, d), for_steps(x.hx, d),   for_steps(x.cx, d),   for_steps(x.w_ih, d),
          for_steps(x.w_hh, d),  for_steps(x.b_ih, d), for_steps(x.b_hh, d), for_steps(x.w_hr, d)};
}

// Whether the steps multiply elements of the input's type as they are.
bool computes_by_pairs(const RecurrentTensors& x) {
  return x.input.device().is_cpu() && recurrent_by_pairs(x.input.dtype()) && x.input.numel() > 0 &&
         x.w_hh.numel() > 0;
}

RecurrentTensors for_pairs(const RecurrentTensors& x) {
  RecurrentTensors y = for_steps(x, x.input.dtype());
  y.cx = for_steps(x.cx, DType::Float32);
  return y;
}

// How the memory that forward leaves for backward is cut: gates, cells, hidden states before they
// are projected.
struct Reserve {
  int64_t gates, cells, raw;  // elements
  int64_t gate_row;
  Reserve(int64_t rows, int64_t hidden, Cell cell, bool projected)
      : gate_row((gates_of(cell) * hidden + 15) / 16 * 16) {
    gates = rows * gate_row;
    cells = cell == Cell::Lstm || cell == Cell::Gru ? rows * hidden : 0;
    raw = projected ? rows * hidden : 0;
  }
  int64_t size() const { return gates + cells + raw; }
};

struct Problem {
  RecurrentLayer layer{};
  std::vector<int64_t> first_row;
};

Problem describe(const RecurrentTensors& x, Cell cell, IntSpan batch_sizes, bool reverse,
                 const Tensor& reserve, const Reserve& cut, const Tensor& output) {
  Problem p;
  for (int64_t at = 0; const int64_t n : batch_sizes) p.first_row.push_back(at), at += n;
  RecurrentLayer& l = p.layer;
  const int64_t item = int64_t(reserve.item_size());
  l.dtype = x.input.dtype(), l.cell = cell, l.reverse = reverse;
  l.hidden = x.w_hh.size(0) / gates_of(cell), l.state = x.w_hh.size(1);
  l.steps = int64_t(batch_sizes.size()), l.batch_sizes = batch_sizes.data();
  l.first_row = p.first_row.data();
  l.gate_row = cut.gate_row;
  l.w_hh = x.w_hh.data();
  if (x.w_hr.defined()) l.w_hr = x.w_hr.data();
  const bool device = x.input.is_cuda(), own_biases = device || reserve.dtype() != l.dtype;
  if ((cell == Cell::Gru || own_biases) && x.b_hh.defined()) l.b_hh = x.b_hh.data();
  if (own_biases && x.b_ih.defined()) l.b_ih = x.b_ih.data();
  l.in_step = device && batch_sizes.back() == batch_sizes[0] && !x.w_hr.defined();
  l.hx = x.hx.data();
  if (cell == Cell::Lstm) l.cx = x.cx.data();
  l.gates = reserve.data();
  l.cells = reserve.data() + cut.gates * item;
  if (cut.raw) l.raw = reserve.data() + (cut.gates + cut.cells) * item;
  l.output = output.data();
  return p;
}

// Where each sequence's last step is: rows of the output that are its final state.
template <class F>  // f(sequence, row)
void for_each_last_row(IntSpan batch_sizes, const std::vector<int64_t>& first_row, bool reverse,
                       F f) {
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    const int64_t next = !reverse && t + 1 < batch_sizes.size() ? batch_sizes[t + 1] : 0;
    if (reverse && t > 0) break;  // all end with the first step
    for (int64_t b = next; b < batch_sizes[t]; ++b) f(b, first_row[t] + b);
  }
}

Tensor last_rows(const Tensor& rows, IntSpan batch_sizes, const Problem& p, bool reverse) {
  Tensor out = empty_tensor(Dims{batch_sizes[0], rows.size(1)}, rows.dtype(), rows.device());
  const size_t bytes = size_t(rows.size(1)) * rows.item_size();
  for_each_last_row(batch_sizes, p.first_row, reverse, [&](int64_t b, int64_t row) {
    std::memcpy(out.data() + size_t(b) * bytes, rows.data() + size_t(row) * bytes, bytes);
  });
  return out;
}

Tensor matrix_in(const Tensor& reserve, int64_t from, int64_t rows, int64_t columns,
                 int64_t apart) {
  return alias_tensor(reserve, Dims{rows, columns}, Dims{apart, 1}, reserve.offset() + from);
}

Tensor as_given(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_copy(t, dtype);
}

// c = a @ b + beta c; `out` may be of float32 where pairs are multiplied, and beta is 0 then.
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, double beta) {
  if (out.is_cuda()) return device_products.multiply(a, b, out, Scalar(1), Scalar(beta));
  Gemm g;
  g.dtype = a.dtype(), g.batch = 1;
  g.m = out.size(0), g.n = out.size(1), g.k = a.size(1);
  g.a = a.data(), g.a_batch = 0, g.a_row = a.stride(0), g.a_col = a.stride(1);
  g.b = b.data(), g.b_batch = 0, g.b_row = b.stride(0), g.b_col = b.stride(1);
  g.c = out.data(), g.c_batch = 0, g.c_row = out.stride(0), g.c_col = out.stride(1);
  g.beta_re = beta;
  if (a.dtype() != out.dtype())
    return gemm_in_floats(g, reinterpret_cast<float*>(out.data()), out.stride(0));
  gemm(g);
}

// a^T @ b of two matrices with the same rows.
Tensor transposed_product(const Tensor& a, const Tensor& b) {
  Tensor out = empty_tensor(Dims{a.size(1), b.size(1)}, a.dtype(), a.device());
  multiply(op::t(a), b, out, 0);
  return out;
}

// The state that each row started from.
Tensor states_before(const RecurrentTensors& x, const Tensor& output, IntSpan batch_sizes,
                     const Problem& p, bool reverse) {
  if (batch_sizes.size() == 1) return x.hx;
  Tensor out = empty_tensor(output.sizes(), output.dtype(), output.device());
  const int64_t bytes = output.size(1) * int64_t(output.item_size());
  const int64_t steps = int64_t(batch_sizes.size()), batch = batch_sizes[0], rows = out.size(0);
  if (out.is_cuda() && batch_sizes.back() == batch) {  // all steps have the same rows
    op::copy_(op::narrow(out, 0, reverse ? rows - batch : 0, batch), x.hx);
    if (rows > batch)
      op::copy_(op::narrow(out, 0, reverse ? 0 : batch, rows - batch),
                op::narrow(output, 0, reverse ? batch : 0, rows - batch));
    return out;
  }
  for (int64_t t = 0; t < steps; ++t) {
    const int64_t previous = reverse ? t + 1 : t - 1, n = batch_sizes[size_t(t)];
    const bool any = previous >= 0 && previous < steps;
    const int64_t continued = any ? std::min(n, batch_sizes[size_t(previous)]) : 0;
    if (out.is_cuda()) {
      const int64_t at = p.first_row[size_t(t)];
      if (continued)
        op::copy_(op::narrow(out, 0, at, continued),
                  op::narrow(output, 0, p.first_row[size_t(previous)], continued));
      if (n > continued)
        op::copy_(op::narrow(out, 0, at + continued, n - continued),
                  op::narrow(x.hx, 0, continued, n - continued));
      continue;
    }
    char* to = out.data() + p.first_row[size_t(t)] * bytes;
    if (continued)
      std::memcpy(to, output.data() + p.first_row[size_t(previous)] * bytes,
                  size_t(continued * bytes));
    if (n > continued)
      std::memcpy(to + continued * bytes, x.hx.data() + continued * bytes,
                  size_t((n - continued) * bytes));
  }
  return out;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> _recurrent_layer(const Tensor& input, const Tensor& hx,
                                                            const Tensor& cx, const Tensor& w_ih,
                                                            const Tensor& w_hh, const Tensor& b_ih,
                                                            const Tensor& b_hh, const Tensor& w_hr,
                                                            int64_t kind, IntSpan batch_sizes,
                                                            bool reverse) {
  const Cell cell = Cell(kind);
  const RecurrentTensors given{input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr};
  check_layer(given, cell, batch_sizes);
  const DType dtype = compute_dtype(input.dtype());
  const int64_t width = w_hh.size(0), hidden = width / gates_of(cell), state = w_hh.size(1),
                rows = input.size(0);
  const Reserve cut(rows, hidden, cell, w_hr.defined());
  Tensor reserve = empty_tensor(Dims{cut.size()}, dtype, input.device());
  const int64_t cell_size = cell == Cell::Lstm ? hidden : 0;
  if (input.is_meta()) {
    auto like = [&](int64_t n) {
      return empty_tensor(Dims{batch_sizes[0], n}, input.dtype(), input.device());
    };
    return {empty_tensor(Dims{rows, state}, input.dtype(), input.device()), like(state),
            like(cell_size), reserve};
  }
  const LayerPrecision precision;
  const bool pairs = computes_by_pairs(given);
  const RecurrentTensors x = pairs ? for_pairs(given) : for_steps(given, dtype);
  Tensor output = empty_tensor(Dims{rows, state}, x.input.dtype(), input.device());
  const Tensor gates = matrix_in(reserve, 0, rows, width, cut.gate_row);
  const bool starts_with_bias = x.b_ih.defined() && !input.is_cuda() && !pairs;
  if (starts_with_bias) op::copy_(gates, cell == Cell::Gru ? x.b_ih : x.b_ih + x.b_hh);
  multiply(x.input, op::t(x.w_ih), gates, starts_with_bias ? 1 : 0);
  const Problem p = describe(x, cell, batch_sizes, reverse, reserve, cut, output);
  if (input.is_cuda()) {
    auto starting_from = [&](const Tensor& t) {
      return p.layer.in_step ? empty_tensor(t.sizes(), dtype, t.device())
                             : op::clone(t, MemoryFormat::Contiguous);
    };
    const Tensor h = starting_from(x.hx), c = cell == Cell::Lstm ? starting_from(x.cx) : Tensor();
    device_recurrent.forward(p.layer, h, c);
    return {as_given(output, input.dtype()), as_given(h, input.dtype()),
            c.defined() ? as_given(c, input.dtype())
                        : empty_tensor(Dims{batch_sizes[0], 0}, input.dtype(), input.device()),
            reserve};
  }
  recurrent_forward(p.layer);
  Tensor cy = empty_tensor(Dims{batch_sizes[0], 0}, dtype, input.device());
  if (cell == Cell::Lstm)
    cy = last_rows(matrix_in(reserve, cut.gates, rows, hidden, hidden), batch_sizes, p, reverse);
  const Tensor hy = last_rows(output, batch_sizes, p, reverse);
  return {as_given(output, input.dtype()), as_given(hy, input.dtype()), as_given(cy, input.dtype()),
          reserve};
}

std::vector<Tensor> _recurrent_backward(const Tensor& grad_output, const Tensor& grad_hy,
                                        const Tensor& grad_cy, const Tensor& input,
                                        const Tensor& hx, const Tensor& cx, const Tensor& w_ih,
                                        const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh,
                                        const Tensor& w_hr, const Tensor& given_output,
                                        const Tensor& reserve, int64_t kind, IntSpan batch_sizes,
                                        bool reverse, int64_t wanted) {
  const Cell cell = Cell(kind);
  const DType dtype = compute_dtype(input.dtype());
  const RecurrentTensors x = for_steps({input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr}, dtype);
  const Tensor output = for_steps(given_output, dtype);
  const int64_t rows = input.size(0), width = w_hh.size(0), hidden = width / gates_of(cell),
                state = w_hh.size(1), batch = batch_sizes[0];
  const Reserve cut(rows, hidden, cell, w_hr.defined());
  auto made = [&](Dims shape) { return empty_tensor(shape, dtype, input.device()); };
  const bool in_step = input.is_cuda() && batch_sizes.back() == batch && !w_hr.defined();
  auto starting_from = [&](const Tensor& grad, int64_t size) {
    Tensor t = made(Dims{batch, size});
    if (in_step) return t;
    return grad.defined() ? op::copy_(t, grad) : op::zero_(t);
  };
  if (input.is_meta()) {
    std::vector<Tensor> shapes;
    for (const Tensor* t : {&input, &hx, &cx, &w_ih, &w_hh, &b_ih, &b_hh, &w_hr})
      shapes.push_back(t->defined() ? empty_tensor(t->sizes(), t->dtype(), t->device()) : *t);
    return shapes;
  }
  const LayerPrecision precision;
  const Tensor grad_rows = for_steps(grad_output, dtype);
  Tensor grad_h = starting_from(grad_hy, state);
  Tensor grad_c = cell == Cell::Lstm ? starting_from(grad_cy, hidden) : Tensor();
  Tensor by_gates = made(Dims{rows * cut.gate_row});
  Tensor by_state_gates = cell == Cell::Gru ? made(Dims{rows * cut.gate_row}) : by_gates;
  Tensor projected = w_hr.defined() ? made(Dims{rows, state}) : Tensor();
  Problem p = describe(x, cell, batch_sizes, reverse, reserve, cut, output);
  RecurrentLayer& l = p.layer;
  if (grad_rows.defined()) l.grad_output = grad_rows.data();
  l.grad_h = grad_h.data();
  if (grad_c.defined()) l.grad_c = grad_c.data();
  l.grad_gates = by_gates.data(), l.grad_state_gates = by_state_gates.data();
  if (projected.defined()) l.grad_projected = projected.data();
  const Tensor by_h = in_step ? for_steps(grad_hy, dtype) : Tensor(),
               by_c = in_step ? for_steps(grad_cy, dtype) : Tensor();
  if (by_h.defined()) l.grad_hy = by_h.data();
  if (by_c.defined()) l.grad_cy = by_c.data();
  if (input.is_cuda()) device_recurrent.backward(l, input.device());
  else recurrent_backward(l);

  const Tensor gates = matrix_in(by_gates, 0, rows, width, cut.gate_row),
               state_gates = matrix_in(by_state_gates, 0, rows, width, cut.gate_row);
  enum { kInput, kHx, kCx, kWih, kWhh, kBih, kBhh, kWhr };
  std::vector<Tensor> grads(8);
  auto wants = [&](int i) { return wanted >> i & 1; };
  if (wants(kInput)) {
    grads[kInput] = made(input.sizes());
    multiply(gates, x.w_ih, grads[kInput], 0);
  }
  grads[kHx] = grad_h;
  grads[kCx] = grad_c;
  if (wants(kWih)) grads[kWih] = transposed_product(gates, x.input);
  if (wants(kWhh))
    grads[kWhh] =
        transposed_product(state_gates, states_before(x, output, batch_sizes, p, reverse));
  if (b_ih.defined() && (wants(kBih) || wants(kBhh))) {
    grads[kBih] = op::sum_dim(gates, Dims{0});
    grads[kBhh] = cell == Cell::Gru ? op::sum_dim(state_gates, Dims{0}) : op::clone(grads[kBih]);
  }
  if (w_hr.defined() && wants(kWhr))
    grads[kWhr] = transposed_product(
        projected, matrix_in(reserve, cut.gates + cut.cells, rows, hidden, hidden));
  for (Tensor& g : grads)
    if (g.defined()) g = as_given(g, input.dtype());
  return grads;
}

}  // namespace facula::kernels
