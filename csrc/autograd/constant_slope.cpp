#include "autograd/constant_slope.h"

#include "op/ops/creation.h"

namespace facula {

static void constant_slope_vjp(Node& node, Tensor* grads, Tensor* out, uint64_t needs) {
  if (!grads[0].defined()) return;
  if (needs & 1) out[0] = grads[0];
  if (needs & 2) {
    const Edge& e = node.edges[1];
    const OutputMeta& m = e.node->outputs[e.input_nr];
    out[1] = op::zeros(m.sizes, m.dtype, std::nullopt, m.device);
  }
}

void keep_constant_slope_in_graph(Node& node, uint32_t edge, Tensor& grad) {
  // A transform takes a missing derivative for zeros, and each of its levels has a tape of its own.
  if (!grad_enabled() || current_level || !grad.defined() || grad.is_wrapped() ||
      edge >= node.edges.size() || !node.edges[edge].node)
    return;
  NodeRef joint(Node::make("ConstantSlopeBackward0", constant_slope_vjp));
  joint->edges.allocate(2);
  joint->edges[0] = gradient_edge(grad);
  joint->edges[1] = node.edges[edge];
  joint->edges[1].node->retain();
  joint->outputs.allocate(1);
  joint->set_output(0, grad);
  grad = alias_tensor(grad);
  set_history(grad, std::move(joint), 0);
}

}  // namespace facula
