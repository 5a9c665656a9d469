// Random operators under vmap: refused, different for each element, or the same for all.
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/joining.h"
#include "op/ops/views.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

void call_once(const OpDef& op, const Value* args, Rets& rets) {
  call(op, args, rets);
}

// Without tensors: more sizes, or a call for each element where no sizes are given (randperm).
void create_different(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  for (int i = 0; i < op.arg_count; ++i)
    if (op.args[i].role == ArgRole::Size) {
      Dims sizes(args[i].ints());
      sizes.insert(0, batch_size(level));
      values.set(values[i], std::move(sizes));
      return run(op, values.data(), rets, level);
    }
  std::vector<Tensor> all(size_t(batch_size(level)));
  for (Tensor& t : all) {
    Rets one;
    call(op, args, one);
    t = one.t[0];
  }
  deliver(rets, op::stack(all, 0), level);
}

void draw_different(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  int64_t rank = 0;
  for_each_tensor(op, args, [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
  Arguments values(op, args);
  values.map([&](const Tensor& t) {
    Tensor v = in_front(t, level);
    if (!is_batched(t, level)) v = op::clone(v, MemoryFormat::Contiguous);
    for (int64_t d = t.dim(); d < rank; ++d) v = op::unsqueeze(v, 1);
    return v;
  });
  if (std::string_view(op.name) != "multinomial" || rank == 1)
    return run(op, values.data(), rets, level);
  // Its rows are the last dimension of a matrix.
  Tensor weights = values[0].tensor();
  Dims sizes(weights.sizes());
  values.set(values[0], op::reshape(weights, Dims{-1, sizes.back()}));
  Rets one;
  call(op, values.data(), one);
  sizes[sizes.size() - 1] = one.t[0].size(-1);
  deliver(rets, op::reshape(one.t[0], sizes), level);
}

}  // namespace

void random(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Randomness mode = find_level(level)->randomness;
  if (mode == Randomness::Error)
    runtime_error(
        "vmap: called random operation while in randomness error mode. Please either use the "
        "'same' or 'different' randomness flags on vmap or perform the randomness operation out "
        "of vmap");
  bool tensors = false, batched = false;
  for_each_tensor(op, args, [&](const Tensor& t) {
    tensors = true;
    batched |= is_batched(t, level);
  });
  Below outside(level);
  const bool in_place = rets.destination == Destination::InPlace;
  if (mode == Randomness::Different) {
    if (in_place && !is_batched(rets.t[0], level))
      runtime_error("vmap: ", op.in_place_name,
                    "() on a tensor that is not vmapped over cannot give each element of the batch "
                    "its own numbers. Use the out-of-place form, or randomness='same'.");
    return tensors ? draw_different(op, args, rets, level)
                   : create_different(op, args, rets, level);
  }
  if (!batched) return call_once(op, args, rets);
  // The same numbers for all: those of one element, where they do not depend on the data.
  Arguments one(op, args);
  one.map([&](const Tensor& t) {
    return is_batched(t, level) ? op::select(t->wrapper->value, 0, 0) : t;
  });
  bool depends = false;
  for (int i = 0; i < op.arg_count; ++i)
    depends |= is_batched(args[i], level) && !(i == 0 && in_place) &&
               std::string_view(op.name).find("_like") == std::string_view::npos;
  if (depends)
    runtime_error("vmap: ", op.name,
                  "() with randomness='same' needs parameters that are not vmapped over");
  if (!in_place) return call_once(op, one.data(), rets);
  Tensor sample = op::clone(one[0].tensor());
  one.set(one[0], sample);
  Rets drawn;
  drawn.destination = Destination::InPlace;
  drawn.t[0] = sample;
  call(op, one.data(), drawn);
  op::copy_(rets.t[0]->wrapper->value, sample);
}

}  // namespace facula::batch
