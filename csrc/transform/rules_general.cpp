// The batching rules of the families, and patterns that many operators share.
#include "op/elementwise.h"
#include "op/ops/copying.h"
#include "op/ops/joining.h"
#include "op/ops/views.h"
#include "op/reduce.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

void elementwise(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const ElementwiseDef& d = *op.elementwise;
  int64_t rank = 0;
  Promotion logical, physical;
  for (int i = 0; i < d.inputs; ++i) {
    const Value& v = args[d.operands[i]];
    if (v.is_tensor()) rank = std::max(rank, v.tensor().dim());
    if (!(d.bool_operands >> i & 1) && !v.is_none()) logical.add(v);
  }
  Arguments values(op, args);
  for (int i = 0; i < d.inputs; ++i) {
    Value& v = values[d.operands[i]];
    if (v.is_tensor()) values.set(v, aligned(v.tensor(), level, rank));
    if (!(d.bool_operands >> i & 1) && !v.is_none()) physical.add(v);
  }
  // A 0-dim tensor promotes less than others; with the batch it no longer looks like one.
  const DType result = logical.result();
  if (result != physical.result() && d.promote != Promote::First)
    for (int i = 0; i < d.inputs; ++i) {
      const Value& given = args[d.operands[i]];
      if (d.bool_operands >> i & 1 || !given.is_tensor() || given.tensor().dim() > 0) continue;
      Value& v = values[d.operands[i]];
      if (v.tensor().dtype() != result) values.set(v, op::_to_copy(v.tensor(), result));
    }
  run(op, values.data(), rets, level);
}

// ---- dimensions

static Dims shifted(IntSpan dims, int64_t rank) {
  Dims out;
  for (int64_t d : dims) out.push_back(wrap_dim(d, rank) + 1);
  return out;
}

static Dims logical_dims(int64_t rank) {
  Dims out;
  for (int64_t d = 1; d <= rank; ++d) out.push_back(d);
  return out;
}

void all(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const OpDef& along = *op.along;
  Tensor flat = flattened(in_front(args[0].tensor(), level));
  const Dims one{1};
  std::vector<Value> values;
  for (int i = 0; i < along.arg_count; ++i) {
    const ArgDef& a = along.args[i];
    Value v = a.value;
    for (int k = 1; k < op.arg_count; ++k)
      if (std::string_view(op.args[k].name) == a.name) v = args[k];
    if (i == 0) v = Value(flat);
    if (a.role == ArgRole::Dim) v = a.type == ArgType::IntList ? Value(one) : Value(int64_t(1));
    values.push_back(v);
  }
  Rets results;
  call(along, values.data(), results);
  deliver(rets, results.t[0], level);
}

void dims(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  // Scalars count as vectors of one element where a dim is named.
  const Tensor* first = nullptr;
  for_each_tensor(op, args, [&](const Tensor& t) {
    if (!first) first = &t;
  });
  const int64_t given_rank = first->dim();
  bool scalar = given_rank == 0, everything = false;
  bool creates = false;  // unsqueeze and stack make a dimension of a scalar, it is not one yet
  for (int i = 0; i < op.arg_count; ++i)
    creates |= op.args[i].role == ArgRole::NewDim || op.args[i].role == ArgRole::Size;
  scalar = scalar && !creates;
  Arguments values(op, args);
  values.map([&](const Tensor& t) {
    Tensor v = in_front(t, level);
    return t.dim() == 0 && !creates ? op::unsqueeze(v, 1) : v;
  });
  const int64_t rank = scalar ? 1 : given_rank;
  bool keepdim = false;
  for (int i = 0; i < op.arg_count; ++i) {
    Value& v = values[i];
    const ArgRole role = op.args[i].role;
    if (std::string_view(op.args[i].name) == "keepdim") keepdim = v.to_bool();
    if (role == ArgRole::None || role == ArgRole::Size) {
      if (role == ArgRole::Size && !v.is_none()) {
        Dims sizes(v.ints());
        sizes.insert(0, batch_size(level));
        values.set(v, std::move(sizes));
      }
      continue;
    }
    const int64_t of = role == ArgRole::NewDim ? rank + 1 : rank;
    if (v.is_none() && op.args[i].type == ArgType::Int) {
      everything = true;
      values.set(values[0], flattened(values[0].tensor()));
      v = Value(int64_t(1));
    } else if (v.is_none()) {
      values.set(v, logical_dims(rank));
    } else if (v.tag() == Value::Tag::Ints) {
      values.set(v, shifted(v.ints(), of));
    } else {
      v = Value(wrap_dim(v.to_int(), of) + 1);
    }
  }
  if (rets.destination == Destination::InPlace && scalar) {
    Rets results;
    results.destination = Destination::InPlace;
    results.t[0] = values[0].tensor();  // a view of the value
    return call(op, values.data(), results);
  }
  run(op, values.data(), rets, level);
  if (rets.destination != Destination::New || (!scalar && !(everything && keepdim))) return;
  auto fit = [&](Tensor& t) {
    if (!t.defined()) return;
    Tensor v = t->wrapper->value;
    if (everything && keepdim) {
      Dims ones(size_t(given_rank) + 1, 1);
      ones[0] = v.size(0);
      t = wrap_batched(op::reshape(v, ones), level);
    } else if (t.dim() == 1 && t.size(0) == 1) {
      t = wrap_batched(op::squeeze_dim(v, Dims{1}), level);
    }
  };
  if (rets.list)
    for (Tensor& t : *rets.list) fit(t);
  else
    for (int i = 0; i < op.ret_count; ++i) fit(rets.t[i]);
}

// Vectors without elements join with anything, which they would not with the batch in front.
void cat(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  std::vector<Tensor> joined;
  for (const Tensor& t : args[0].tensors())
    if (t.dim() != 1 || t.numel() != 0) joined.push_back(t);
  if (joined.empty() || joined.size() == args[0].tensors().size())
    return dims(op, args, rets, level);
  const Value values[] = {Value(TensorSpan(joined)), args[1]};
  dims(op, values, rets, level);
}

void reduction(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  if (op.reduce && op.reduce->dim_arg < 0) return all(op, args, rets, level);
  // An empty list means every dimension.
  const int at = op.reduce ? op.reduce->dim_arg : 1;
  if (args[at].tag() != Value::Tag::Ints || !args[at].ints().empty())
    return dims(op, args, rets, level);
  std::vector<Value> none(args, args + op.arg_count);
  none[size_t(at)] = Value();
  dims(op, none.data(), rets, level);
}

// ---- leading dimensions

void leading(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  int64_t rank = 0;
  for_each_tensor(op, args, [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
  // The first argument gets the batch in any case, so that every result has it.
  bool first = true;
  Arguments values(op, args);
  values.map([&](const Tensor& t) {
    if (!std::exchange(first, false) || is_batched(t, level)) return aligned(t, level, rank);
    Tensor v = in_front(t, level);
    for (int64_t d = t.dim(); d < rank; ++d) v = op::unsqueeze(v, 1);
    return v;
  });
  run(op, values.data(), rets, level);
}

void core(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Dims batch;  // what the arguments have in front of their cores, broadcast
  for (int i = 0; i < op.arg_count; ++i)
    if (args[i].is_tensor() && args[i].tensor().dim() >= op.args[i].core)
      batch = broadcast_shapes(
          batch, args[i].tensor().sizes().first(size_t(args[i].tensor().dim() - op.args[i].core)));
  Arguments values(op, args);
  for (int i = 0; i < op.arg_count; ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].tensor();
    if (t.dim() < op.args[i].core)
      runtime_error("argument '", op.args[i].name, "' must have at least ", int(op.args[i].core),
                    " dimensions, but has shape ", t.sizes());
    Dims sizes(batch);
    sizes.insert(0, batch_size(level));
    for (int64_t s : t.sizes().last(size_t(op.args[i].core))) sizes.push_back(s);
    values.set(values[i], op::expand(aligned(t, level, int64_t(sizes.size()) - 1), sizes));
  }
  run(op, values.data(), rets, level);
}

// ---- one at a time

void loop(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const int64_t n = batch_size(level);
  std::vector<std::vector<Tensor>> columns;
  for (int64_t b = 0; b < n; ++b) {
    Arguments one(op, args);
    one.map([&](const Tensor& t) {
      return is_batched(t, level) ? op::select(t->wrapper->value, 0, b) : t;
    });
    Rets results;
    std::vector<Tensor> list;
    if (rets.list) results.list = &list;
    results.destination = rets.destination;
    if (rets.destination == Destination::InPlace)
      results.t[0] = op::select(rets.t[0]->wrapper->value, 0, b);
    call(op, one.data(), results);
    if (rets.destination == Destination::InPlace) continue;
    if (!rets.list)
      for (int i = 0; i < op.ret_count; ++i) list.push_back(results.t[i]);
    columns.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) columns[i].push_back(list[i]);
  }
  if (rets.destination == Destination::InPlace) return;
  if (!n) runtime_error("vmap: ", op.name, "() runs once for each element, but the batch is empty");
  for (size_t i = 0; i < columns.size(); ++i) {
    Tensor value = op::stack(columns[i], 0);
    if (rets.list) rets.list->push_back(wrap_batched(value, level));
    else deliver(rets, int(i), value, level);
  }
}

void dynamic(const OpDef& op, const Value*, Rets&, uint32_t) {
  const bool indexing = std::string_view(op.name) == "index";
  runtime_error("vmap: We do not support batching operators that can ",
                indexing ? "support" : "output", " dynamic shape. ",
                indexing ? "Attempting to batch over indexing with a boolean mask"
                         : "Attempted to vmap over ",
                indexing ? "" : op.name,
                ": the shape of the result depends on the data, so the elements of the batch would "
                "have different shapes. Use a form with a fixed shape, such as where() or a mask, "
                "or call it outside of vmap.");
}

}  // namespace facula::batch
