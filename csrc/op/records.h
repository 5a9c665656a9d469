// What the generated operator files include.
#pragma once
#include "autograd/node.h"
#include "op/elementwise.h"
#include "op/operand_checks.h"
#include "op/reduce.h"
#include "op/repeated.h"
#include "op/shortcuts.h"
#include "transform/rules.h"

#ifdef FACULA_X86
#define FACULA_LOOP_TABLES(name) baseline::name, v3::name, v4::name
#else
#define FACULA_LOOP_TABLES(name) baseline::name, baseline::name, baseline::name
#endif

namespace facula {

// Gradients that nobody sent are zeros of the output's shape.
Tensor grad_or_zeros(const Node& n, Tensor* grads, uint32_t i);
// One of the derivatives that an operator gave at once, as a tuple or as a list.
template <size_t I, class... Tensors>
const Tensor& nth_result(const std::tuple<Tensors...>& results) {
  return std::get<I>(results);
}
template <size_t I>
const Tensor& nth_result(const std::vector<Tensor>& results) {
  return results[I];
}
std::vector<Tensor> list_grads(const Node& n, Tensor* grads);

}  // namespace facula
