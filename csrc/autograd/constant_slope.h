// Derivatives that do not change with the argument: those of pooling, of padding, of nll_loss.
#pragma once
#include "autograd/node.h"

namespace facula {

// Where the gradient `grad` of argument `edge` of the node may be differentiated again, its graph
// leads to that argument as well, and brings it zeros: second derivatives exist and are zero,
// instead of being none, for which autograd.grad raises. Nothing is saved for it.
void keep_constant_slope_in_graph(Node& node, uint32_t edge, Tensor& grad);

}  // namespace facula
