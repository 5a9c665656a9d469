// The steps of recurrent layers and of their derivatives; built once per ISA. The state's weight is
// packed once, each step is one product by register tiles and one pass over the gates.
#include "cpu/tile_products.h"

#include <cstring>

#include "cpu/recurrent_rows.h"

namespace facula::FACULA_ISA {
namespace {

template <class A>
void forward(const RecurrentLayer& l, int64_t begin, int64_t end) {
  const int64_t n = l.hidden, width = gates_of(l.cell) * n, row = l.gate_row, batch = end - begin;
  const bool gru = l.cell == Cell::Gru;
  const int64_t panel_size = panels<A>(width) * kTileColumns<A> * l.state,
                projection_size = l.w_hr ? panels<A>(l.state) * kTileColumns<A> * n : 0,
                state_room = padded<A>(l.state);
  using Memory = Scratch<A>;
  Memory memory(Memory::room(panel_size) + Memory::room(projection_size) + Memory::room(row) +
                Memory::room(gru ? batch * row : 0) + Memory::room(batch * state_room) + 64);
  A* const weight = memory.take(panel_size);
  A* const projection = memory.take(projection_size);
  A* const bias = memory.take(row);
  A* const shares = memory.take(gru ? batch * row : 0);
  A* const projected = memory.take(batch * state_room);
  pack_transposed<A>(static_cast<const A*>(l.w_hh), l.state, width, l.state, weight);
  if (l.w_hr) pack_transposed<A>(static_cast<const A*>(l.w_hr), n, l.state, n, projection);
  for (int64_t j = 0; j < row; ++j)
    bias[j] = l.b_hh && j < width ? static_cast<const A*>(l.b_hh)[j] : A(0);
  const A* const hx = static_cast<const A*>(l.hx) + begin * l.state;
  const A* const cx = static_cast<const A*>(l.cx) + (l.cx ? begin * n : 0);
  A* const output = static_cast<A*>(l.output);
  A* const cells = static_cast<A*>(l.cells);
  for (int64_t i = 0; i < l.steps; ++i) {
    const Step s = step_of(l, i, begin, end);
    if (s.rows <= 0) continue;
    A* const gates = static_cast<A*>(l.gates) + s.at * row;
    auto add_state = [&](const A* h, int64_t from, int64_t count) {
      A* const out = (gru ? shares : gates) + from * row;
      if (count > 0)
        times_panels(h, l.state, count, l.state, weight, width, out, row, gru ? bias : out,
                     gru ? 0 : row);
    };
    add_state(output + s.before * l.state, 0, s.continued);
    add_state(hx + s.continued * l.state, s.continued, s.rows - s.continued);
    A* const hidden = l.w_hr ? static_cast<A*>(l.raw) + s.at * n : output + s.at * n;
    for (int64_t b = 0; b < s.rows; ++b) {
      const bool fresh = b >= s.continued;
      A* const to = hidden + b * n;
      if (l.cell == Cell::Lstm)
        lstm_row(gates + b * row, n, fresh ? cx + b * n : cells + (s.before + b) * n,
                 cells + (s.at + b) * n, to, n);
      else if (gru)
        gru_row(gates + b * row, n, shares + b * row, n,
                fresh ? hx + b * n : output + (s.before + b) * n, cells + (s.at + b) * n, to, n);
      else plain_row(l.cell, gates + b * row, to, n);
    }
    if (!l.w_hr) continue;
    times_panels(hidden, n, s.rows, n, projection, l.state, projected, state_room);
    for (int64_t b = 0; b < s.rows; ++b)
      std::memcpy(output + (s.at + b) * l.state, projected + b * state_room,
                  size_t(l.state) * sizeof(A));
  }
}

// ---- derivatives of one row, from that by the hidden state

template <class A>
void lstm_row_back(const A* __restrict gates, const A* __restrict cell, const A* __restrict before,
                   const A* __restrict grad_h, A* __restrict grad_c, A* __restrict out, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const A in = gates[j], keep = gates[n + j], candidate = gates[2 * n + j],
            open = gates[3 * n + j], squashed = math::tanh(cell[j]), g = grad_h[j];
    const A by_cell = grad_c[j] + g * open * (1 - squashed * squashed);
    out[j] = by_cell * candidate * in * (1 - in);
    out[n + j] = by_cell * before[j] * keep * (1 - keep);
    out[2 * n + j] = by_cell * in * (1 - candidate * candidate);
    out[3 * n + j] = g * squashed * open * (1 - open);
    grad_c[j] = by_cell * keep;
  }
}

// grad_h becomes what reaches the previous state directly.
template <class A>
void gru_row_back(const A* __restrict gates, const A* __restrict share, const A* __restrict before,
                  A* __restrict grad_h, A* __restrict by_input, A* __restrict by_state, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const A reset = gates[j], keep = gates[n + j], candidate = gates[2 * n + j], g = grad_h[j];
    const A by_candidate = g * (1 - keep) * (1 - candidate * candidate),
            by_reset = by_candidate * share[j] * reset * (1 - reset),
            by_keep = g * (before[j] - candidate) * keep * (1 - keep);
    by_input[j] = by_state[j] = by_reset;
    by_input[n + j] = by_state[n + j] = by_keep;
    by_input[2 * n + j] = by_candidate;
    by_state[2 * n + j] = by_candidate * reset;
    grad_h[j] = g * keep;
  }
}

template <class A>
void plain_row_back(Cell cell, const A* __restrict hidden, const A* __restrict grad_h,
                    A* __restrict out, int64_t n) {
  if (cell == Cell::Tanh) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = grad_h[j] * (1 - hidden[j] * hidden[j]);
  } else {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = hidden[j] > 0 ? grad_h[j] : A(0);
  }
}

template <class A>
void backward(const RecurrentLayer& l, int64_t begin, int64_t end) {
  const int64_t n = l.hidden, width = gates_of(l.cell) * n, row = l.gate_row, batch = end - begin;
  const bool gru = l.cell == Cell::Gru;
  const int64_t state_room = padded<A>(l.state), hidden_room = padded<A>(n);
  using Memory = Scratch<A>;
  Memory memory(Memory::room(width * state_room) +
                Memory::room(l.w_hr ? l.state * hidden_room : 0) +
                Memory::room(batch * state_room) + Memory::room(batch * hidden_room) + 64);
  A* const weight = memory.take(width * state_room);
  A* const projection = memory.take(l.w_hr ? l.state * hidden_room : 0);
  A* const grad_h = memory.take(batch * state_room);
  A* const grad_raw = memory.take(batch * hidden_room);
  copy_rows<A, A>(static_cast<const A*>(l.w_hh), l.state, width, l.state, A(1), weight, state_room);
  if (l.w_hr)
    copy_rows<A, A>(static_cast<const A*>(l.w_hr), n, l.state, n, A(1), projection, hidden_room);
  A* const last_h = static_cast<A*>(l.grad_h) + begin * l.state;
  A* const grad_c = static_cast<A*>(l.grad_c) + (l.grad_c ? begin * n : 0);
  copy_rows<A, A>(last_h, l.state, batch, l.state, A(1), grad_h, state_room);
  const A* const hx = static_cast<const A*>(l.hx) + begin * l.state;
  const A* const cx = static_cast<const A*>(l.cx) + (l.cx ? begin * n : 0);
  const A* const output = static_cast<const A*>(l.output);
  const A* const cells = static_cast<const A*>(l.cells);
  for (int64_t i = l.steps; i-- > 0;) {
    const Step s = step_of(l, i, begin, end);
    if (s.rows <= 0) continue;
    if (l.grad_output)
      for (int64_t b = 0; b < s.rows; ++b) {
        const A* given = static_cast<const A*>(l.grad_output) + (s.at + b) * l.state;
        A* to = grad_h + b * state_room;
        for (int64_t j = 0; j < l.state; ++j) to[j] += given[j];
      }
    if (l.w_hr) {
      A* const kept = static_cast<A*>(l.grad_projected) + s.at * l.state;
      for (int64_t b = 0; b < s.rows; ++b)
        std::memcpy(kept + b * l.state, grad_h + b * state_room, size_t(l.state) * sizeof(A));
      add_product(grad_h, state_room, 1, s.rows, l.state, projection, hidden_room, hidden_room,
                  grad_raw, hidden_room, false);
    }
    const A* const gates = static_cast<const A*>(l.gates) + s.at * row;
    A* const by_input = static_cast<A*>(l.grad_gates) + s.at * row;
    A* const by_state = gru ? static_cast<A*>(l.grad_state_gates) + s.at * row : by_input;
    for (int64_t b = 0; b < s.rows; ++b) {
      const bool fresh = b >= s.continued;
      A* const g = l.w_hr ? grad_raw + b * hidden_room : grad_h + b * state_room;
      if (l.cell == Cell::Lstm)
        lstm_row_back(gates + b * row, cells + (s.at + b) * n,
                      fresh ? cx + b * n : cells + (s.before + b) * n, g, grad_c + b * n,
                      by_input + b * row, n);
      else if (gru)
        gru_row_back(gates + b * row, cells + (s.at + b) * n,
                     fresh ? hx + b * n : output + (s.before + b) * n, g, by_input + b * row,
                     by_state + b * row, n);
      else plain_row_back(l.cell, output + (s.at + b) * n, g, by_input + b * row, n);
    }
    add_product(by_state, row, 1, s.rows, width, weight, state_room, state_room, grad_h, state_room,
                gru);
  }
  for (int64_t b = 0; b < batch; ++b)
    std::memcpy(last_h + b * l.state, grad_h + b * state_room, size_t(l.state) * sizeof(A));
}

}  // namespace

extern const RecurrentLoops recurrent_loops;
const RecurrentLoops recurrent_loops = {{forward<float>, forward<double>},
                                        {backward<float>, backward<double>}};

}  // namespace facula::FACULA_ISA
