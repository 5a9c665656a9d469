#include "sparse/call.h"

#include "autograd/node.h"
#include "op/arguments.h"
#include "op/elementwise.h"
#include "op/ops/copying.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "sparse/convert.h"
#include "sparse/pattern.h"

namespace facula {
namespace sparse {
namespace {

// A sparse tensor takes over the elements of another one.
void copy_kernel(const OpDef& op, const Value* args, Rets& rets) {
  const Tensor &self = args[0].tensor(), &src = args[1].tensor();
  if (!same(self.sizes(), src.sizes()))
    runtime_error("a sparse tensor of size ", self.sizes(), " cannot take the elements of one of ",
                  src.sizes());
  if (src.is_meta() && !self.is_meta())
    fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data!");
  if (src.is_meta() == self.is_meta()) {  // what is on meta has no elements to take over
    const Tensor there = op::_to_copy(in_layout_of(src, self), self.dtype(), self.device());
    replace_parts(self, self.sizes(), sparse_parts(there));
  }
  rets.t[0] = self;
  self.bump_version(op.in_place_name);
}

void detach_kernel(const OpDef&, const Value* args, Rets& rets) {
  rets.t[0] = alias_tensor(args[0].tensor());
}

bool write_copy(const OpDef& op, const Value* args, Rets& rets) {
  if (!args[1].is_tensor())
    fail(ErrorKind::NotImplemented, "copying a number into a tensor of layout facula.",
         layout_name(layout_of(args[0].tensor())), " is not supported");
  const Tensor &self = args[0].tensor(), &src = args[1].tensor();
  if (!is_sparse(self)) {
    op::copy_(self, op::_sparse_to_dense(src));
    rets.t[0] = self;
    return true;
  }
  if (!is_sparse(src))
    fail(ErrorKind::NotImplemented, "copying a strided tensor into one of layout facula.",
         layout_name(layout_of(self)), " is not supported; use src.to_sparse()");
  const bool taped = grad_enabled() && (requires_grad(self) || requires_grad(src));
  if (taped) tape_call(op, args, rets, 0, copy_kernel);
  else copy_kernel(op, args, rets);
  return true;
}

const Table& table() {
  static const Table all = [] {
    Table t;
    for (const OpDef* op :
         {&defs::_sparse_make, &defs::_sparse_values, &defs::_sparse_elements,
          &defs::_sparse_gather_at, &defs::_sparse_indices, &defs::_sparse_gather,
          &defs::_sparse_like, &defs::_sparse_coalesce, &defs::_sparse_to_dense,
          &defs::_sparse_convert, &defs::_sparse_mask, &defs::_sparse_softmax, &defs::_sparse_sum})
      t[op].kernel = run_kernel;
    t[&defs::detach].kernel = detach_kernel;
    t[&defs::copy_].write = write_copy;
    add_derived(t);
    add_elementwise(t);
    add_moves(t);
    add_products(t);
    add_reductions(t);
    return t;
  }();
  return all;
}

const Table& batched_table() {
  static const Table all = [] {
    Table t;
    t[&defs::detach].kernel = detach_kernel;
    t[&defs::copy_].write = write_copy;
    add_batched(t);
    return t;
  }();
  return all;
}

bool is_batch(const Tensor& t) {
  return t.defined() && is_sparse(t) && sparse_parts(t).batch_dim;
}
bool has_batches(const OpDef& op, const Value* args, const Rets& rets) {
  bool found = false;
  for_each_tensor(op, args, [&](const Tensor& t) { found |= is_batch(t); });
  if (rets.destination != Destination::New)
    for (int i = 0; i < op.ret_count; ++i) found |= is_batch(rets.t[i]);
  return found;
}

// Positions lie where the values do, and dense tensors elsewhere would not go along.
void check_devices(const OpDef& op, const Value* args) {
  Device device;
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (is_sparse(t)) device = t.device();
  });
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (t.device() != device && t.dim() > 0 && t.numel() > 0) device_error(device, t.device());
  });
}

// What a program wrote into indices() is looked at before it is followed through memory.
void check_written_positions(const Tensor& t) {
  if (!is_sparse(t) || !sparse_parts(t).positions_written()) return;
  SparseParts& parts = record_of(t);
  if (parts.layout == SparseLayout::Coo) {
    check_coo(parts.indices, parts.values, t.sizes());
    if (parts.coalesced) {
      const Groups groups =
          group_keys(linear_keys(parts.indices, t.sizes().subspan(0, size_t(parts.sparse_dim))));
      parts.coalesced = groups.distinct && !groups.order.defined();
    }
  } else if (!check_compressed(parts.layout, parts.indices, parts.plain, parts.values, t.sizes())) {
    runtime_error(
        "plain indices must be such that in every row or column they are sorted and distinct along "
        "the last dimension values");
  }
  parts.mark_positions();
}

[[noreturn]] void refuse(const OpDef& op, const Value* args, const Rets& rets) {
  if (has_batches(op, args, rets))
    fail(ErrorKind::NotImplemented,
         "not implemented for batches of compressed matrices; use .to_dense() on them");
  SparseLayout layout = SparseLayout::Coo;
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (is_sparse(t)) layout = layout_of(t);
  });
  if (rets.destination == Destination::Out)
    for (int i = 0; i < op.ret_count; ++i)
      if (is_sparse(rets.t[i])) layout = layout_of(rets.t[i]);
  fail(ErrorKind::NotImplemented, "not implemented for tensors of layout facula.",
       layout_name(layout), "; use .to_dense() on them");
}

}  // namespace
}  // namespace sparse

void call_sparse(const OpDef& op, const Value* args, Rets& rets, bool taped) {
  using namespace sparse;
  if (&op != &defs::copy_) check_devices(op, args);
  if (&op != &defs::_sparse_indices && &op != &defs::_sparse_values && &op != &defs::detach)
    for_each_tensor(op, args, check_written_positions);
  const Table& all = has_batches(op, args, rets) ? batched_table() : table();
  const auto found = all.find(&op);
  if (found == all.end()) refuse(op, args, rets);
  const Handler& handler = found->second;
  if (handler.kernel) {
    if (taped && !handler.composite && !(op.flags & (kOpComposite | kOpNoGrad)) && op.vjp)
      tape_call(op, args, rets, 0, handler.kernel);
    else handler.kernel(op, args, rets);
    return;
  }
  if (rets.destination == Destination::New) {
    rets.t[0] = handler.compute(op, args);
    return;
  }
  if (rets.destination == Destination::InPlace) {
    if (handler.write && handler.write(op, args, rets)) return;
    if (!handler.compute) refuse(op, args, rets);
    Arguments kept(op, args);
    // What the parts of the handler save of self must survive the write at the end.
    if (taped && requires_grad(rets.t[0])) kept.set(kept[0], op::clone(rets.t[0]));
    op::copy_(rets.t[0], handler.compute(op, kept.data()));
    return;
  }
  if (taped)
    runtime_error(
        "functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad. Use the form without out=.");
  const Tensor result = handler.compute(op, args);
  if (is_sparse(result) != is_sparse(rets.t[0]))
    runtime_error("the result has layout facula.", layout_name(layout_of(result)),
                  ", but out has layout facula.", layout_name(layout_of(rets.t[0])));
  if (!is_sparse(result)) prepare_result(rets, 0, result.sizes(), result.dtype(), result.device());
  else if (!same(result.sizes(), rets.t[0].sizes()))
    replace_parts(rets.t[0], result.sizes(), sparse_parts(result));
  op::copy_(rets.t[0], result);
}

}  // namespace facula
