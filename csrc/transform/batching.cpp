#include "transform/batching.h"

#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "transform/rules.h"

namespace facula {

namespace batch {

int64_t batch_size(uint32_t level) {
  return find_level(level)->batch_size;
}

bool is_batched(const Value& v, uint32_t level) {
  if (v.is_tensor()) return is_batched(v.tensor(), level);
  if (v.tag() != Value::Tag::Tensors) return false;
  for (const Tensor& t : v.tensors())
    if (t.defined() && is_batched(t, level)) return true;
  return false;
}

Tensor in_front(const Tensor& t, uint32_t level) {
  if (is_batched(t, level)) return t->wrapper->value;
  Dims sizes(t.sizes());
  sizes.insert(0, batch_size(level));
  return op::expand(t, sizes);
}

Tensor aligned(const Tensor& t, uint32_t level, int64_t rank) {
  Tensor v = value_of(t, level);
  if (is_batched(t, level))
    for (int64_t d = t.dim(); d < rank; ++d) v = op::unsqueeze(v, 1);
  return v;
}

Tensor flattened(const Tensor& value) {
  int64_t n = 1;
  for (int64_t s : value.sizes().subspan(1)) n *= s;
  return op::reshape(value, Dims{value.size(0), n});
}

Tensor split(const Tensor& t, int64_t dim, int64_t first, int64_t rest) {
  Dims sizes(t.sizes());
  sizes[size_t(dim)] = first;
  sizes.insert(size_t(dim) + 1, rest);
  return op::reshape(t, sizes);
}

Tensor join(const Tensor& t, int64_t dim) {
  Dims sizes(t.sizes());
  sizes[size_t(dim)] *= sizes[size_t(dim) + 1];
  sizes.erase(size_t(dim) + 1);
  return op::reshape(t, sizes);
}

void run(const OpDef& op, const Value* values, Rets& rets, uint32_t level) {
  Rets results;
  std::vector<Tensor> list;
  if (rets.list) results.list = &list;
  results.destination = rets.destination;
  if (rets.destination == Destination::InPlace) results.t[0] = rets.t[0]->wrapper->value;
  call(op, values, results);
  if (rets.destination == Destination::InPlace) return refresh_geometry(rets.t[0]);
  if (rets.list)
    for (const Tensor& t : list) rets.list->push_back(t.defined() ? wrap_batched(t, level) : t);
  else
    for (int i = 0; i < op.ret_count; ++i) deliver(rets, i, results.t[i], level);
}

void deliver(Rets& rets, int i, const Tensor& value, uint32_t level) {
  // A result that is the same for all (the empty q of qr in mode "r") comes without the batch.
  const bool lacks = value.defined() && (value.dim() == 0 || value.size(0) != batch_size(level));
  if (lacks) rets.t[i] = wrap_batched(in_front(value, level), level);
  else rets.t[i] = value.defined() ? wrap_batched(value, level) : value;
}

void deliver(Rets& rets, const Tensor& value, uint32_t level) {
  if (rets.destination == Destination::InPlace) op::copy_(rets.t[0]->wrapper->value, value);
  else deliver(rets, 0, value, level);
}

}  // namespace batch

void call_batched(const OpDef& op, const Value* args, Rets& rets, const Level& level) {
  if (!op.batch)
    fail(ErrorKind::NotImplemented, "vmap: no batching rule for ", op.name,
         "(). Call it outside of the function under vmap.");
  op.batch(op, args, rets, level.id);
}

}  // namespace facula
