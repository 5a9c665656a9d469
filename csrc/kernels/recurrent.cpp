// Recurrent networks: layers, directions and packed sequences, each layer one operator.
#include "kernels/recurrent.h"

#include <vector>

#include "kernels/destination.h"
#include "op/kernels/recurrent.h"
#include "op/ops/copying.h"
#include "op/ops/joining.h"
#include "op/ops/random.h"
#include "op/ops/recurrent.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/wrapper.h"

namespace facula::kernels {

namespace {

struct Network {
  Cell cell;
  TensorSpan params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
};

struct States {
  Tensor h, c;
};

std::tuple<Tensor, Tensor, Tensor> run_layer(const RecurrentTensors& x, Cell cell,
                                             IntSpan batch_sizes, bool reverse) {
  bool plain = is_complex(x.input.dtype());  // the kernels are for real numbers
  for (const Tensor* t : {&x.input, &x.hx, &x.cx, &x.w_ih, &x.w_hh, &x.b_ih, &x.b_hh, &x.w_hr})
    plain |= is_wrapped_by(*t, LevelKind::Vmap) || is_wrapped_by(*t, LevelKind::Jvp);
  if (plain) return plain_recurrent_layer(x, cell, batch_sizes, reverse);
  auto [output, hy, cy, reserve] =
      op::_recurrent_layer(x.input, x.hx, x.cx, x.w_ih, x.w_hh, x.b_ih, x.b_hh, x.w_hr,
                           int64_t(cell), batch_sizes, reverse);
  return {output, hy, cy};
}

Tensor with_dropout(const Tensor& t, const Network& net) {
  if (!net.train || net.dropout == 0) return t;
  if (net.dropout == 1) return t * 0.0;
  return t * (op::bernoulli_p(op::detach(t), 1 - net.dropout) / (1 - net.dropout));
}

// All layers on the rows of all steps: (output, states of all layers).
std::tuple<Tensor, States> run_network(const Network& net, Tensor rows, const States& start,
                                       IntSpan batch_sizes) {
  const int64_t directions = net.bidirectional ? 2 : 1, count = net.layers * directions;
  if (net.layers <= 0) runtime_error("num_layers must be greater than zero, got ", net.layers);
  if (!(net.dropout >= 0 && net.dropout <= 1))
    fail(ErrorKind::Value, "dropout must be a probability between 0 and 1, got ", net.dropout);
  const int64_t given = int64_t(net.params.size()), plain = net.has_biases ? 4 : 2;
  const bool projected = net.cell == Cell::Lstm && given == count * (plain + 1);
  const int64_t each = plain + projected;
  if (given != count * each)
    runtime_error("expected ", count * plain, " weights for ", net.layers, " layers with ",
                  directions, directions == 2 ? " directions" : " direction",
                  net.has_biases ? " and biases" : " and no biases", ", got ", given);
  auto check_states = [&](const Tensor& t, const char* name) {
    if (t.defined() && (t.dim() != 3 || t.size(0) != count))
      runtime_error(name, " must be (layers * directions, batch, size) with ", count,
                    " layers and directions, got shape ", t.sizes());
  };
  check_states(start.h, "the hidden state");
  check_states(start.c, "the cell state");
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = layer * directions + d;
      const Tensor* w = net.params.data() + at * each;
      RecurrentTensors x{
          rows, op::select(start.h, 0, at), Tensor(), w[0], w[1], Tensor(), Tensor(), Tensor()};
      if (net.has_biases) x.b_ih = w[2], x.b_hh = w[3];
      if (projected) x.w_hr = w[plain];
      if (net.cell == Cell::Lstm) x.cx = op::select(start.c, 0, at);
      auto [output, hy, cy] = run_layer(x, net.cell, batch_sizes, d == 1);
      outputs.push_back(output);
      last_h.push_back(hy);
      if (net.cell == Cell::Lstm) last_c.push_back(cy);
    }
    rows = directions == 1 ? outputs[0] : op::cat(TensorSpan(outputs), 1);
    if (layer + 1 < net.layers) rows = with_dropout(rows, net);
  }
  States last{op::stack(TensorSpan(last_h), 0), Tensor()};
  if (net.cell == Cell::Lstm) last.c = op::stack(TensorSpan(last_c), 0);
  return {rows, last};
}

std::tuple<Tensor, States> run_padded(const Network& net, const Tensor& input, const States& start,
                                      bool batch_first) {
  if (input.dim() != 3)
    runtime_error("input must have 3 dimensions, ",
                  batch_first ? "(batch, steps, features)" : "(steps, batch, features)",
                  ", got shape ", input.sizes());
  const Tensor x = batch_first ? op::transpose(input, 0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  if (steps == 0) runtime_error("Expected sequence length to be larger than 0 in RNN");
  auto [rows, last] = run_network(net, op::reshape(x, Dims{steps * batch, x.size(2)}), start,
                                  Dims(size_t(steps), batch));
  const Tensor out = op::reshape(rows, Dims{steps, batch, rows.size(1)});
  return {batch_first ? op::transpose(out, 0, 1) : out, last};
}

std::tuple<Tensor, States> run_packed(const Network& net, const Tensor& data,
                                      const Tensor& batch_sizes, const States& start) {
  if (batch_sizes.dim() != 1 || batch_sizes.dtype() != DType::Int64 || !batch_sizes.is_cpu())
    runtime_error("batch_sizes must be a vector of int64 on the CPU, got shape ",
                  batch_sizes.sizes(), " and dtype ", batch_sizes.dtype());
  const Tensor sizes = dense(batch_sizes);
  return run_network(net, data, start, IntSpan(sizes.data_as<int64_t>(), size_t(sizes.numel())));
}

States pair_of(TensorSpan hx) {
  if (hx.size() != 2)
    runtime_error("lstm expects two hidden states, (hidden, cell), got ", hx.size());
  return {hx[0], hx[1]};
}

// ---- one step

States step(Cell cell, const Tensor& input, const States& s, const Tensor& w_ih, const Tensor& w_hh,
            const Tensor& b_ih, const Tensor& b_hh) {
  if (input.dim() != 2 || s.h.dim() != 2)
    runtime_error("input and hidden state must be (batch, size), got shapes ", input.sizes(),
                  " and ", s.h.sizes());
  if (input.size(0) != s.h.size(0))
    runtime_error("Input batch size ", input.size(0), " doesn't match hidden batch size ",
                  s.h.size(0));
  const auto [output, hy, cy] = run_layer({input, s.h, s.c, w_ih, w_hh, b_ih, b_hh, Tensor()}, cell,
                                          Dims{input.size(0)}, false);
  return {output, cy};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, TensorSpan hx, TensorSpan params,
                                              bool has_biases, int64_t num_layers, double dropout,
                                              bool train, bool bidirectional, bool batch_first) {
  const Network net{Cell::Lstm, params, has_biases, num_layers, dropout, train, bidirectional};
  const auto [out, last] = run_padded(net, input, pair_of(hx), batch_first);
  return {out, last.h, last.c};
}

std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes,
                                             TensorSpan hx, TensorSpan params, bool has_biases,
                                             int64_t num_layers, double dropout, bool train,
                                             bool bidirectional) {
  const Network net{Cell::Lstm, params, has_biases, num_layers, dropout, train, bidirectional};
  const auto [out, last] = run_packed(net, data, batch_sizes, pair_of(hx));
  return {out, last.h, last.c};
}

#define FACULA_NETWORK(name, cell)                                                               \
  std::tuple<Tensor, Tensor> name##_input(                                                       \
      const Tensor& input, const Tensor& hx, TensorSpan params, bool has_biases, int64_t layers, \
      double dropout, bool train, bool bidirectional, bool batch_first) {                        \
    const Network net{cell, params, has_biases, layers, dropout, train, bidirectional};          \
    const auto [out, last] = run_padded(net, input, {hx, Tensor()}, batch_first);                \
    return {out, last.h};                                                                        \
  }                                                                                              \
  std::tuple<Tensor, Tensor> name##_data(                                                        \
      const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorSpan params,        \
      bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {         \
    const Network net{cell, params, has_biases, layers, dropout, train, bidirectional};          \
    const auto [out, last] = run_packed(net, data, batch_sizes, {hx, Tensor()});                 \
    return {out, last.h};                                                                        \
  }                                                                                              \
  Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,                  \
                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {               \
    return step(cell, input, {hx, Tensor()}, w_ih, w_hh, b_ih, b_hh).h;                          \
  }
FACULA_NETWORK(gru, Cell::Gru)
FACULA_NETWORK(rnn_tanh, Cell::Tanh)
FACULA_NETWORK(rnn_relu, Cell::Relu)
#undef FACULA_NETWORK

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorSpan hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  const States next = step(Cell::Lstm, input, pair_of(hx), w_ih, w_hh, b_ih, b_hh);
  return {next.h, next.c};
}

}  // namespace facula::kernels
