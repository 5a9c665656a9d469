// What recurrent layers do in every step, whatever multiplies their weights: which rows there are,
// and the gates of a row. Each ISA's files have their own copy.
#pragma once
#include <cstdint>

#include "cpu/recurrent.h"
#include "cpu/vector_math.h"

namespace facula::FACULA_ISA {
namespace {

struct Step {
  int64_t at;         // first row of the step that belongs to this part
  int64_t rows;       // sequences of this part that are in the step
  int64_t before;     // the same row of the step that was done before
  int64_t continued;  // sequences that were in it; the rest starts from hx and cx
};

// The step that is done in place `n` of the order.
inline Step step_of(const RecurrentLayer& l, int64_t n, int64_t begin, int64_t end) {
  const int64_t t = l.reverse ? l.steps - 1 - n : n, previous = l.reverse ? t + 1 : t - 1;
  auto within = [&](int64_t size) { return (size < end ? size : end) - begin; };
  Step s{l.first_row[t] + begin, within(l.batch_sizes[t]), 0, 0};
  if (n > 0) {
    s.before = l.first_row[previous] + begin;
    const int64_t common = within(l.batch_sizes[previous]);
    s.continued = common < s.rows ? (common > 0 ? common : 0) : s.rows;
  }
  return s;
}

// `n` cells of one row: reads the shares of input and state, writes the gates' values, of which one
// stands `apart` from the next.

template <class A>
void lstm_row(A* __restrict gates, int64_t apart, const A* __restrict before, A* __restrict cell,
              A* __restrict hidden, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const A in = math::sigmoid(gates[j]), keep = math::sigmoid(gates[apart + j]),
            candidate = math::tanh(gates[2 * apart + j]), out = math::sigmoid(gates[3 * apart + j]);
    const A c = keep * before[j] + in * candidate;
    gates[j] = in, gates[apart + j] = keep, gates[2 * apart + j] = candidate,
    gates[3 * apart + j] = out;
    cell[j] = c;
    hidden[j] = out * math::tanh(c);
  }
}

template <class A>
void gru_row(A* __restrict gates, int64_t apart, const A* __restrict state_share,
             int64_t share_apart, const A* __restrict before, A* __restrict candidate_share,
             A* __restrict hidden, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const A reset = math::sigmoid(gates[j] + state_share[j]),
            keep = math::sigmoid(gates[apart + j] + state_share[share_apart + j]),
            share = state_share[2 * share_apart + j];
    const A candidate = math::tanh(gates[2 * apart + j] + reset * share);
    gates[j] = reset, gates[apart + j] = keep, gates[2 * apart + j] = candidate;
    candidate_share[j] = share;
    hidden[j] = candidate + keep * (before[j] - candidate);
  }
}

template <class A>
void plain_row(Cell cell, A* __restrict gates, A* __restrict hidden, int64_t n) {
  if (cell == Cell::Tanh) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) hidden[j] = math::tanh(gates[j]);
  } else {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) hidden[j] = gates[j] < 0 ? A(0) : gates[j];  // keeps NaN
  }
}

}  // namespace
}  // namespace facula::FACULA_ISA
