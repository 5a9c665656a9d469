// The steps of a recurrent layer: products with the state's weight and the gates, for all of them.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace facula {

enum class Cell : int64_t { Lstm = 0, Gru = 1, Tanh = 2, Relu = 3 };

constexpr int64_t gates_of(Cell cell) {
  return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1;
}

// Rows of all steps lie one after the other: step t has batch_sizes[t] of them, from first_row[t].
// Everything is dense and of one type, float32 or float64 (but for tiles, see below); rows of gates
// are `gate_row` apart, which is a multiple of 16 elements.
struct RecurrentLayer {
  DType dtype;
  Cell cell;
  bool reverse;
  int64_t hidden;  // size of a cell
  int64_t state;   // size of h: of the projection where there is one
  int64_t steps, gate_row;
  const int64_t *batch_sizes, *first_row;
  const void* w_hh;            // (gates * hidden, state)
  const void* w_hr = nullptr;  // (state, hidden): projects the hidden state
  // On the host, biases are in the gates from the start, but for that of a GRU's state and those of
  // tiles.
  const void *b_ih = nullptr, *b_hh = nullptr;
  const void *hx, *cx = nullptr;
  void* gates;          // the input's share; becomes the gates' values
  void* cells;          // LSTM: the cells; GRU: the state's share of the candidate
  void* raw = nullptr;  // the hidden state before it is projected
  void* output;         // (rows, state)
  // the derivative
  const void* grad_output = nullptr;  // null: none
  void* grad_h;                       // (batch, state): by the last state; becomes that by hx
  void* grad_c = nullptr;             // (batch, hidden), likewise
  void* grad_gates;                   // by the input's share of the gates
  void* grad_state_gates = nullptr;   // GRU: by the state's share
  void* grad_projected = nullptr;     // (rows, state): by the projected state
  // Devices: all sequences are of one length and nothing is projected. The first step reads hx and
  // cx, or grad_hy and grad_cy (null: none), and states need not hold them before.
  bool in_step = false;
  const void *grad_hy = nullptr, *grad_cy = nullptr;
};

// For sequences [begin, end) of the batch; they do not depend on each other.
struct RecurrentLoops {
  void (*forward[2])(const RecurrentLayer&, int64_t begin, int64_t end);  // float, double
  void (*backward[2])(const RecurrentLayer&, int64_t begin, int64_t end);
};

// bfloat16 and half by matrix tiles, or bfloat16 by dot products of pairs. Their layer has weights,
// biases (both), hx and the output in that type and everything else in float32: the state is
// rounded after each step, as the output is.
bool recurrent_by_pairs(DType);
struct RecurrentPairLoops {
  // Rows of a weight, `count` for each of the gates: for cells [16 * block, 16 * end), strip by
  // strip of 16 for each gate.
  void (*pack)(const void* weight, int64_t gates, int64_t count, int64_t depth, int64_t block,
               int64_t end, uint16_t* to);
  void (*forward)(const RecurrentLayer&, const uint16_t* weight, const uint16_t* projection,
                  int64_t begin, int64_t end);
};

// Of float32 and float64; forward of bfloat16 and half by pairs as well.
void recurrent_forward(const RecurrentLayer& layer);
void recurrent_backward(const RecurrentLayer& layer);

}  // namespace facula
