// What a layer of a recurrent network is made of, and the layer in plain operators.
#pragma once
#include <tuple>

#include "core/tensor.h"
#include "cpu/recurrent.h"

namespace facula::kernels {

struct RecurrentTensors {
  Tensor input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr;  // undefined where there is none
};

// (output, hy, cy): step by step, for transforms and higher derivatives.
std::tuple<Tensor, Tensor, Tensor> plain_recurrent_layer(const RecurrentTensors& x, Cell cell,
                                                         IntSpan batch_sizes, bool reverse);

}  // namespace facula::kernels
