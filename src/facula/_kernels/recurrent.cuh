// The gates of one step of a recurrent layer (FACULA_KIND 0), or their derivative (1). The host
// defines FACULA_NAME and
//   FACULA_COMPUTE  the type T of everything
//   FACULA_CELL     0: LSTM; 1: GRU; 2: tanh; 3: relu (enum Cell in csrc/cpu/recurrent.h)
#pragma once
#include "types.cuh"

namespace facula {

using T = FACULA_COMPUTE;

__device__ __forceinline__ float exp_of(float x) { return ::expf(x); }
__device__ __forceinline__ double exp_of(double x) { return ::exp(x); }
__device__ __forceinline__ float tanh_of(float x) { return ::tanhf(x); }
__device__ __forceinline__ double tanh_of(double x) { return ::tanh(x); }
__device__ __forceinline__ T sigmoid(T x) { return T(1) / (T(1) + exp_of(-x)); }

// Of the step's rows, written by csrc/cuda/recurrent.cpp. Rows of gates are gate_row apart, all
// others `hidden`, and belong to the first n sequences of the batch.
struct Arguments {
  int64 n, hidden, gate_row;
  T* gates;          // the sums that are left when the products are done; become the gates' values
  const T* share;    // GRU: the state's share of the gates, dense
  const T* bias;     // GRU: of the state's share; may be null
  T* cells;          // LSTM: the cells; GRU: the state's share of the candidate
  T* out;            // the hidden state
  T* state;          // likewise, of the batch; null: it is projected first
  T* cell_state;     // LSTM: the cells of the batch
  // the derivative
  const T* grad_out;   // null: none
  T* grad_state;       // by the state after the step; GRU: becomes the direct part of that before
  T* grad_cell;        // by the cells after the step; becomes that by those before
  T* grad_gates;       // by the input's share
  T* grad_share;       // GRU: by the state's share
  const T* before;     // the state (GRU) or the cells (LSTM) of the step before, for the first
  const T* start;      // `continued` sequences; others have the layer's first state or cells
  int64 continued;
};

}  // namespace facula

extern "C" __global__ void __launch_bounds__(256)
    FACULA_NAME(const __grid_constant__ facula::Arguments arguments) {
  using namespace facula;
  const Arguments& a = arguments;
  const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.n * a.hidden) return;
  const int64 row = i / a.hidden, column = i % a.hidden, width = a.hidden;
  T* gate = a.gates + row * a.gate_row + column;
#if FACULA_KIND == 0
#if FACULA_CELL == 0
  const T in = sigmoid(gate[0]), forget = sigmoid(gate[width]);
  const T candidate = tanh_of(gate[2 * width]), open = sigmoid(gate[3 * width]);
  const T cell = forget * a.cell_state[i] + in * candidate;
  gate[0] = in;
  gate[width] = forget;
  gate[2 * width] = candidate;
  gate[3 * width] = open;
  a.cells[i] = cell;
  a.cell_state[i] = cell;
  const T h = open * tanh_of(cell);
#elif FACULA_CELL == 1
  const T* share = a.share + row * 3 * width + column;
  const T bias[3] = {a.bias ? a.bias[column] : T(0), a.bias ? a.bias[width + column] : T(0),
                     a.bias ? a.bias[2 * width + column] : T(0)};
  const T reset = sigmoid(gate[0] + (share[0] + bias[0]));
  const T keep = sigmoid(gate[width] + (share[width] + bias[1]));
  const T of_state = share[2 * width] + bias[2];
  const T candidate = tanh_of(gate[2 * width] + reset * of_state);
  gate[0] = reset;
  gate[width] = keep;
  gate[2 * width] = candidate;
  a.cells[i] = of_state;
  const T h = candidate + keep * (a.state[i] - candidate);
#elif FACULA_CELL == 2
  const T h = tanh_of(gate[0]);
  gate[0] = h;
#else
  const T h = gate[0] > T(0) ? gate[0] : (gate[0] != gate[0] ? gate[0] : T(0));
  gate[0] = h;
#endif
  a.out[i] = h;
  if (a.state) a.state[i] = h;
#else
  const T grad = a.grad_state[i] + (a.grad_out ? a.grad_out[i] : T(0));
  T* to = a.grad_gates + row * a.gate_row + column;
#if FACULA_CELL == 0
  const T in = gate[0], forget = gate[width], candidate = gate[2 * width], open = gate[3 * width];
  const T before = row < a.continued ? a.before[i] : a.start[i];
  const T bent = tanh_of(a.cells[i]);
  const T by_cell = a.grad_cell[i] + grad * open * (T(1) - bent * bent);
  to[0] = by_cell * candidate * in * (T(1) - in);
  to[width] = by_cell * before * forget * (T(1) - forget);
  to[2 * width] = by_cell * in * (T(1) - candidate * candidate);
  to[3 * width] = grad * bent * open * (T(1) - open);
  a.grad_cell[i] = by_cell * forget;
#elif FACULA_CELL == 1
  const T reset = gate[0], keep = gate[width], candidate = gate[2 * width];
  const T before = row < a.continued ? a.before[i] : a.start[i];
  const T by_candidate = grad * (T(1) - keep) * (T(1) - candidate * candidate);
  const T by_reset = by_candidate * a.cells[i] * reset * (T(1) - reset);
  const T by_keep = grad * (before - candidate) * keep * (T(1) - keep);
  T* share = a.grad_share + row * a.gate_row + column;
  to[0] = share[0] = by_reset;
  to[width] = share[width] = by_keep;
  to[2 * width] = by_candidate;
  share[2 * width] = by_candidate * reset;
  a.grad_state[i] = grad * keep;
#elif FACULA_CELL == 2
  to[0] = grad * (T(1) - gate[0] * gate[0]);
#else
  to[0] = gate[0] > T(0) ? grad : T(0);
#endif
#endif
}
