// Batching rules of attention: a batch joins the one that attention has already.
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

// _attention and _attention_backward: every tensor is (batch, heads, ...), of arguments and
// results.
void attention(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const int64_t size = args[0].tensor().size(0);
  Arguments values(op, args);
  values.map([&](const Tensor& t) { return join(in_front(t, level), 0); });
  Rets results;
  std::vector<Tensor> list;
  if (rets.list) results.list = &list;
  call(op, values.data(), results);
  auto parted = [&](const Tensor& t) { return split(t, 0, batch_size(level), size); };
  for (const Tensor& t : list) rets.list->push_back(wrap_batched(parted(t), level));
  if (!rets.list)
    for (int i = 0; i < op.ret_count; ++i) deliver(rets, i, parted(results.t[i]), level);
}

}  // namespace facula::batch
