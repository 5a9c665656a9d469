// Runs a graph backward.
#pragma once
#include <functional>

#include "autograd/node.h"

namespace facula {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // into .grad of the leaves; false for autograd.grad
};

// Gradients of `roots` (each an owned edge) flow to the leaves, or, when `inputs` is not empty,
// only as far as those edges, whose gradients are returned in order (undefined where none arrived).
std::vector<Tensor> run_backward(std::span<const Edge> roots, std::span<const Tensor> grads,
                                 std::span<const Edge> inputs, const BackwardOptions& options);

// How many of a node's outputs hooks and callers see gradients for: indices and statistics behind
// the others never have one.
uint32_t shown_outputs(const Node& node);

// Brings a gradient to the shape, dtype and device that its edge asks for, or raises.
Tensor validate_gradient(const OutputMeta& meta, Tensor grad, const char* producer, uint32_t index);

extern thread_local constinit bool anomaly_mode;  // check every gradient for NaN
extern thread_local constinit bool anomaly_check_nan;
extern thread_local constinit Node* current_node;  // the node being run, for Python
extern void (*keep_traceback)(Node*);  // anomaly mode: notes the forward call with the node
extern std::string (*traceback_text)(Node*);

// About the pass that runs in this thread, for hooks.
int64_t current_pass();                        // its number, or -1
bool pass_will_run(Node* node);                // the node takes part in it
bool pass_accumulates_everywhere();            // backward() without inputs=, not autograd.grad
void when_pass_ends(std::function<void()> f);  // raises outside of a pass

}  // namespace facula
