// Writing in place under the tape: what is refused, and how the history of a view's base changes.
#include "autograd/node.h"
#include "op/lazy.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/mathematics.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula {

void check_inplace(const OpDef&, const Tensor& self) {
  if (TensorImpl* base = self->base) {
    if (self->flags & kNoGradView) {
      const Node* fn = self->autograd ? self->autograd->grad_fn.get() : nullptr;
      if (fn && !fn->op)
        runtime_error("Output ", self->autograd->output_nr, " of ", fn->name,
                      " is a view and is being modified inplace. This view was created inside a "
                      "custom Function (or because an input was returned as-is), whose backward "
                      "would be passed by. Clone the output of the Function to write to it.");
      runtime_error(
          "A view was created in no_grad mode and is being modified inplace with grad mode "
          "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
          "You can clarify your code by moving both the view and the inplace either both "
          "inside the no_grad block (if you don't want the inplace to be tracked) or both "
          "outside (if you want the inplace to be tracked).");
    }
    if (self->flags & kMultiOutputView) {
      NodeRef fn = grad_fn_of(self);
      runtime_error(
          "Output ", self->autograd ? self->autograd->output_nr : 0, " of ",
          fn ? fn->name : "a view function",
          " is a view and is being modified inplace. This view is the output of a function "
          "that returns multiple views. Such functions do not allow the output views to be "
          "modified inplace. You should replace the inplace operation by an out-of-place "
          "one.");
    }
    Tensor b = Tensor::share(base);
    if (b.needs_grad() && is_leaf(b))
      runtime_error(
          "a view of a leaf Variable that requires grad is being used in an in-place "
          "operation. Write under facula.no_grad(), or work on a clone().");
    // A view has a history of its own only where it goes back to a view that was made a leaf.
    if (!b.needs_grad() && self->autograd && self->autograd->grad_fn)
      runtime_error(
          "a view of a leaf Variable that requires grad is being used in an in-place "
          "operation. Write under facula.no_grad(), or work on a clone().");
    // A view of a tensor without gradients that was itself made a leaf.
    if (b.needs_grad() || !self->autograd || !self->autograd->requires_grad ||
        self->autograd->grad_fn)
      return;
  }
  if (self.needs_grad() && is_leaf(self))
    runtime_error(
        "a leaf Variable that requires grad is being used in an in-place operation. Write "
        "under facula.no_grad(), or work on a clone().");
}

namespace {

// Runs `fn` on the part of the gradient that belongs to the view and passes the rest through.
struct CopySlices {
  NodeRef fn;
  Dims base_sizes, base_strides, view_sizes, view_strides;
  int64_t view_offset;  // relative to the base
  bool parts;           // the view is of real numbers, the base of complex ones
  uint8_t lazy;         // the lazy bits in which they differ
};

void copy_slices_vjp(Node& node, Tensor* grads, Tensor* out, uint64_t needs) {
  auto& c = *static_cast<CopySlices*>(node.extra);
  if (!grads[0].defined()) return;
  if (!c.fn)
    runtime_error(
        "Trying to backward through the graph a second time (or directly access saved "
        "tensors after they have already been freed). Specify retain_graph=True if you "
        "need to backward through the graph a second time.");
  Tensor result =
      op::empty_strided(c.base_sizes, c.base_strides, grads[0].dtype(), grads[0].device());
  op::copy_(result, grads[0]);
  Tensor whole = c.parts ? op::view_as_real(result) : result;
  Tensor slice =
      op::as_strided(whole, c.view_sizes, c.view_strides, c.view_offset + whole.offset());
  slice = toggle_lazy(slice, c.lazy);
  uint32_t n = c.fn->edges.size();
  std::vector<Tensor> inner(n);
  Tensor view_grad = op::clone(slice);
  // Without a gradient of the base, nothing was saved for what the view held before.
  c.fn->apply(*c.fn.get(), &view_grad, inner.data(), needs);
  if (needs & 1) {
    if (inner.empty() || !inner[0].defined()) op::zero_(slice);
    else op::copy_(slice, inner[0]);
    out[0] = result;
  }
  for (uint32_t i = 1; i < n; ++i) out[i] = inner[i];
}

}  // namespace

void rebase_history(const Tensor& self, Node* node) {
  bool retains = self->autograd && self->autograd->retain_cell;
  NodeRef before = self->autograd ? self->autograd->grad_fn : NodeRef();
  if (!self->base) {
    set_history(self, NodeRef::share(node), 0);
    if (retains) attach_retain_hook(self, before.get());
    return;
  }
  Tensor base = Tensor::share(self->base);
  Dims sizes, strides;
  int64_t offset;
  view_geometry(base, self.dtype(), sizes, strides, offset);
  auto* c = new CopySlices{
      NodeRef::share(node),         Dims(base.sizes()),
      Dims(base.strides()),         Dims(self.sizes()),
      Dims(self.strides()),         self.offset() - offset,
      base.dtype() != self.dtype(), uint8_t((base->keys ^ self->keys) & lazy_keys_of(self))};
  NodeRef slices(Node::make("CopySlices", copy_slices_vjp));
  slices->extra = c;
  slices->release_extra = [](Node* n) { delete static_cast<CopySlices*>(n->extra); };
  slices->release_saved_extra = [](Node* n) { static_cast<CopySlices*>(n->extra)->fn = NodeRef(); };
  uint32_t n = node->edges.size();
  slices->edges.allocate(n);
  slices->edges[0] = gradient_edge(base);
  for (uint32_t i = 1; i < n; ++i) {
    slices->edges[i] = node->edges[i];
    if (node->edges[i].node) node->edges[i].node->retain();
  }
  slices->outputs.allocate(1);
  slices->set_output(0, base);
  NodeRef base_before = base->autograd ? base->autograd->grad_fn : NodeRef();
  set_history(base, std::move(slices), 0);
  if (base->autograd->retain_cell) attach_retain_hook(base, base_before.get());
  // The view reads its history from the new base when it is next asked for, which is now where the
  // hook of retain_grad has to move from the old one.
  AutogradMeta& m = ensure_autograd(self);
  self->keys |= kKeyGrad;
  if (retains) {
    m.view_version = self.version() - 1;
    grad_fn_of(self);
  } else {
    m.grad_fn = NodeRef();
  }
}

}  // namespace facula
