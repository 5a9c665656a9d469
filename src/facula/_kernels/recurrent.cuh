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
  const T* bias_in;  // of the input's share; may be null
  const T* bias;     // of the state's share; may be null
  T* cells;          // LSTM: the cells; GRU: the state's share of the candidate
  T* out;            // the hidden state
  T* state;          // likewise, of the batch; null: it is projected first
  T* cell_state;     // LSTM: the cells of the batch
  const T* state_from;  // GRU: the state before the step; may be `state`
  const T* cell_from;   // LSTM: the cells before the step; may be `cell_state`
  // the derivative
  const T* grad_out;   // null: none
  const T* grad_state_from;  // by the state after the step; null: none
  const T* grad_cell_from;   // by the cells after the step; null: none
  T* grad_state;       // GRU: becomes the direct part of the one by the state before; may be the same
  T* grad_cell;        // becomes the one by the cells before; may be the same
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
  // The sums of gate k: what the products left, and the biases.
  auto of_input = [&](int k) {
    return gate[k * width] + (a.bias_in ? a.bias_in[k * width + column] : T(0));
  };
  auto state_bias = [&](int k) { return a.bias ? a.bias[k * width + column] : T(0); };
#if FACULA_CELL == 0
  const T in = sigmoid(of_input(0) + state_bias(0)), forget = sigmoid(of_input(1) + state_bias(1));
  const T candidate = tanh_of(of_input(2) + state_bias(2));
  const T open = sigmoid(of_input(3) + state_bias(3));
  const T cell = forget * a.cell_from[i] + in * candidate;
  gate[0] = in;
  gate[width] = forget;
  gate[2 * width] = candidate;
  gate[3 * width] = open;
  a.cells[i] = cell;
  a.cell_state[i] = cell;
  const T h = open * tanh_of(cell);
#elif FACULA_CELL == 1
  const T* share = a.share + row * 3 * width + column;
  const T reset = sigmoid(of_input(0) + (share[0] + state_bias(0)));
  const T keep = sigmoid(of_input(1) + (share[width] + state_bias(1)));
  const T of_state = share[2 * width] + state_bias(2);
  const T candidate = tanh_of(of_input(2) + reset * of_state);
  gate[0] = reset;
  gate[width] = keep;
  gate[2 * width] = candidate;
  a.cells[i] = of_state;
  const T h = candidate + keep * (a.state_from[i] - candidate);
#elif FACULA_CELL == 2
  const T h = tanh_of(of_input(0) + state_bias(0));
  gate[0] = h;
#else
  const T sum = of_input(0) + state_bias(0);
  const T h = sum > T(0) ? sum : (sum != sum ? sum : T(0));
  gate[0] = h;
#endif
  a.out[i] = h;
  if (a.state) a.state[i] = h;
#else
  const T grad = (a.grad_state_from ? a.grad_state_from[i] : T(0)) +
                 (a.grad_out ? a.grad_out[i] : T(0));
  T* to = a.grad_gates + row * a.gate_row + column;
#if FACULA_CELL == 0
  const T in = gate[0], forget = gate[width], candidate = gate[2 * width], open = gate[3 * width];
  const T before = row < a.continued ? a.before[i] : a.start[i];
  const T bent = tanh_of(a.cells[i]);
  const T by_cell =
      (a.grad_cell_from ? a.grad_cell_from[i] : T(0)) + grad * open * (T(1) - bent * bent);
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
