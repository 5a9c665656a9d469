// Batching rules of indexing by tensors.
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "transform/batching.h"
#include "transform/rules.h"

namespace facula::batch {

namespace {

// The indices of x[a, :, b] as seen inside of the function, with masks turned into positions.
struct Indices {
  std::vector<Tensor> list;  // undefined for a full slice
  int64_t rank = 0;          // of the indices broadcast together
  int first = -1;            // the position of the first one
  bool adjacent = true;      // else their dimensions come first in the result
  bool batched = false;
};

Indices read_indices(const OpDef& op, TensorSpan given, uint32_t level) {
  Indices out;
  for (const Tensor& t : given) {
    if (!t.defined() || (t.dtype() != DType::Bool && t.dtype() != DType::UInt8)) {
      out.list.push_back(t);
      continue;
    }
    if (is_batched(t, level)) {
      Rets none;
      dynamic(op, nullptr, none, level);
    }
    for (const Tensor& positions : op::unbind(op::nonzero(t), 1)) out.list.push_back(positions);
  }
  int last = -1;
  for (int i = 0; i < int(out.list.size()); ++i) {
    const Tensor& t = out.list[size_t(i)];
    if (!t.defined()) continue;
    if (out.first < 0) out.first = i;
    else if (i != last + 1) out.adjacent = false;
    last = i;
    out.rank = std::max(out.rank, t.dim());
    out.batched |= is_batched(t, level);
  }
  return out;
}

Tensor batch_positions(const Tensor& like, int64_t rank, uint32_t level) {
  Dims sizes(size_t(rank) + 1, 1);
  sizes[0] = batch_size(level);
  return op::view(op::arange(sizes[0], DType::Int64, Value(), like.device()), sizes);
}

// [batch, indexed dims, `before` dims, rest] <-> [batch, `before` dims, indexed dims, rest]
Tensor indexed_first(const Tensor& t, int64_t indexed, int64_t before, bool back) {
  Dims order{0};
  const int64_t first = back ? indexed : before, second = back ? before : indexed;
  for (int64_t d = 0; d < second; ++d) order.push_back(1 + first + d);
  for (int64_t d = 0; d < first; ++d) order.push_back(1 + d);
  for (int64_t d = 1 + indexed + before; d < t.dim(); ++d) order.push_back(d);
  return op::permute(t, order);
}

}  // namespace

void index(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  Indices at = read_indices(op, args[1].tensors(), level);
  std::vector<Tensor> list;
  Tensor result;
  if (!at.batched) {
    list.push_back(Tensor());
    list.insert(list.end(), at.list.begin(), at.list.end());
    result = op::index(in_front(self, level), list);
    if (!at.adjacent) result = op::movedim(result, Dims{at.rank}, Dims{0});
    return deliver(rets, result, level);
  }
  if (is_batched(self, level)) list.push_back(batch_positions(self, at.rank, level));
  for (const Tensor& t : at.list) list.push_back(t.defined() ? aligned(t, level, at.rank) : t);
  result = op::index(value_of(self, level), list);
  if (is_batched(self, level)) {
    if (at.adjacent && at.first > 0) result = indexed_first(result, at.rank, at.first, true);
  } else if (at.adjacent && at.first > 0) {
    result = op::movedim(result, Dims{at.first}, Dims{0});
  }
  deliver(rets, result, level);
}

void masked_fill(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  if (!is_batched(args[2], level)) return elementwise(op, args, rets, level);
  const Tensor &self = args[0].tensor(), &mask = args[1].tensor(), &value = args[2].tensor();
  if (value.dim())
    runtime_error("only supports a 0-dimensional value tensor, but got a value of shape ",
                  value.sizes());
  const int64_t rank = std::max(self.dim(), mask.dim());
  Tensor filled = op::_to_copy(aligned(value, level, rank), self.dtype());
  deliver(rets, op::where(aligned(mask, level, rank), filled, aligned(self, level, rank)), level);
}

// x[mask] = number with a mask for each element of the batch: nothing needs to be counted.
static bool put_number(const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &number = args[2].tensor();
  const TensorSpan indices = args[1].tensors();
  if (indices.size() != 1 || indices[0].dtype() != DType::Bool || !is_batched(indices[0], level) ||
      number.dim() || args[3].to_bool() || indices[0].dim() > self.dim())
    return false;
  Tensor mask = indices[0]->wrapper->value;
  for (int64_t d = indices[0].dim(); d < self.dim(); ++d) mask = op::unsqueeze(mask, -1);
  deliver(rets,
          op::where(mask, aligned(number, level, self.dim()), aligned(self, level, self.dim())),
          level);
  return true;
}

void index_put(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  if (put_number(args, rets, level)) return;
  const Tensor &self = args[0].tensor(), &values = args[2].tensor();
  Indices at = read_indices(op, args[1].tensors(), level);
  // The shape of what is written, as the function sees it.
  Dims indexed, before, after;
  for (const Tensor& t : at.list)
    if (t.defined()) indexed = broadcast_shapes(indexed, t.sizes());
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool taken = d < int64_t(at.list.size()) && at.list[size_t(d)].defined();
    if (!taken) (at.adjacent && d < at.first ? before : after).push_back(self.size(d));
  }
  Dims shape{batch_size(level)};
  for (const Dims* part : {&before, &indexed, &after})
    for (int64_t s : *part) shape.push_back(s);
  Tensor written = op::expand(aligned(values, level, int64_t(shape.size()) - 1), shape);
  if (!before.empty())
    written = indexed_first(written, int64_t(indexed.size()), int64_t(before.size()), false);
  std::vector<Tensor> list{batch_positions(self, at.rank, level)};
  for (const Tensor& t : at.list) list.push_back(t.defined() ? aligned(t, level, at.rank) : t);
  Arguments physical(op, args);
  physical.set(physical[0], in_front(self, level));
  physical.set(physical[1], std::move(list));
  physical.set(physical[2], written);
  run(op, physical.data(), rets, level);
}

// An index along `dim` spread over the shape of `like`, both with the batch in front.
static Tensor spread(const Tensor& index, const Tensor& like, int64_t dim, uint32_t level) {
  Tensor i = in_front(index, level);
  if (index.dim() == 0) i = op::unsqueeze(i, 1);
  Dims sizes(size_t(like.dim()), 1);
  sizes[0] = i.size(0);
  sizes[size_t(dim) + 1] = i.size(1);
  return op::expand(op::view(i, sizes), like.sizes());
}

static Tensor at_least_vector(const Tensor& t, uint32_t level) {
  Tensor v = in_front(t, level);
  return t.dim() == 0 ? op::unsqueeze(v, 1) : v;
}

// The result has the shape of the index, which may be a vector where self is a scalar and the
// reverse.
void gather(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[2].tensor();
  Arguments values(op, args);
  values.set(values[0], at_least_vector(self, level));
  values[1] = Value(wrap_dim(args[1].to_int(), self.dim()) + 1);
  values.set(values[2], at_least_vector(index, level));
  if (index.dim()) return run(op, values.data(), rets, level);
  Rets results;
  call(op, values.data(), results);
  deliver(rets, op::squeeze_dim(results.t[0], Dims{1}), level);
}

// What is written has a dimension less than self, none where self is a vector.
void select_scatter(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  Arguments values(op, args);
  values.map([&](const Tensor& t) { return in_front(t, level); });
  values[2] = Value(wrap_dim(args[2].to_int(), args[0].tensor().dim()) + 1);
  run(op, values.data(), rets, level);
}

void index_select(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[2].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim());
  if (!is_batched(index, level)) {
    Tensor picked = op::index_select(at_least_vector(self, level), dim + 1, index);
    return deliver(rets, self.dim() ? picked : op::squeeze_dim(picked, Dims{1}), level);
  }
  if (index.dim() > 1)
    runtime_error("Index is supposed to be a vector, but ", op.name, "() got shape ",
                  index.sizes());
  Tensor source = at_least_vector(self, level);
  Dims shape(source.sizes());
  shape[size_t(dim) + 1] = index.numel();
  Tensor picked =
      op::gather(source, dim + 1, spread(index, op::new_empty(source, shape), dim, level));
  deliver(rets, self.dim() ? picked : op::squeeze_dim(picked, Dims{1}), level);
}

// One index for all elements of the batch: (self, dim, index, source, ...) along the next
// dimension.
static void by_shared_index(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  Arguments values(op, args);
  values.set(values[0], at_least_vector(self, level));
  values[1] = Value(wrap_dim(args[1].to_int(), self.dim()) + 1);
  values.set(values[3], at_least_vector(args[3].tensor(), level));
  if (self.dim()) return run(op, values.data(), rets, level);
  Rets results;
  call(op, values.data(), results);
  deliver(rets, op::squeeze_dim(results.t[0], Dims{1}), level);
}

void index_add(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[2].tensor();
  if (!is_batched(index, level)) return by_shared_index(op, args, rets, level);
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim());
  Tensor source = at_least_vector(args[3].tensor(), level), target = at_least_vector(self, level);
  const Scalar alpha = args[4].scalar();
  if (!alpha.equals(1)) source = source * alpha;
  Tensor sum = op::scatter_add(target, dim + 1, spread(index, source, dim, level), source);
  deliver(rets, self.dim() ? sum : op::squeeze_dim(sum, Dims{1}), level);
}

void index_copy(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[2].tensor();
  if (!is_batched(index, level)) return by_shared_index(op, args, rets, level);
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim());
  Tensor source = at_least_vector(args[3].tensor(), level), target = at_least_vector(self, level);
  Tensor out = op::scatter_src(target, dim + 1, spread(index, source, dim, level), source);
  deliver(rets, self.dim() ? out : op::squeeze_dim(out, Dims{1}), level);
}

void index_fill(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[2].tensor();
  const int64_t dim = wrap_dim(args[1].to_int(), self.dim());
  Tensor target = at_least_vector(self, level);
  if (!is_batched(index, level) && !is_batched(args[3], level)) {
    Arguments values(op, args);
    values.set(values[0], target);
    values[1] = Value(dim + 1);
    Rets results;
    call(op, values.data(), results);
    return deliver(rets, self.dim() ? results.t[0] : op::squeeze_dim(results.t[0], Dims{1}), level);
  }
  Dims shape(target.sizes());
  shape[size_t(dim) + 1] = std::max<int64_t>(index.numel(), 0);
  Tensor fill;
  if (args[3].is_tensor()) {
    fill = in_front(args[3].tensor(), level);
    for (int64_t d = 1; d < target.dim(); ++d) fill = op::unsqueeze(fill, -1);
    fill = op::expand(op::_to_copy(fill, target.dtype()), shape);
  } else {
    fill = op::new_full(target, shape, args[3].scalar());
  }
  Tensor out = op::scatter_src(target, dim + 1, spread(index, fill, dim, level), fill);
  deliver(rets, self.dim() ? out : op::squeeze_dim(out, Dims{1}), level);
}

void take(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &index = args[1].tensor();
  if (!is_batched(self, level)) return deliver(rets, op::take(self, value_of(index, level)), level);
  Tensor flat = flattened(in_front(self, level)), at = in_front(index, level);
  const int64_t n = flat.size(1);
  Tensor i = flattened(at);
  i = op::where(i < Value(int64_t(0)), i + Value(n), i);
  deliver(rets, op::reshape(op::gather(flat, 1, i), at.sizes()), level);
}

void put(const OpDef&, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& self = args[0].tensor();
  Tensor value = in_front(self, level), flat = flattened(value);
  Tensor i = flattened(in_front(args[1].tensor(), level));
  Tensor source = flattened(in_front(args[2].tensor(), level));
  std::vector<Tensor> list{batch_positions(flat, 1, level), i};
  deliver(rets, op::reshape(op::index_put(flat, list, source, args[3].to_bool()), value.sizes()),
          level);
}

void masked_select(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor &self = args[0].tensor(), &mask = args[1].tensor();
  if (is_batched(mask, level)) dynamic(op, args, rets, level);
  Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
  Tensor full_mask = op::expand(mask, shape);
  Dims physical(shape);
  physical.insert(0, batch_size(level));
  Tensor value = op::expand(aligned(self, level, int64_t(shape.size())), physical);
  Tensor positions = op::squeeze_dim(op::nonzero(op::reshape(full_mask, Dims{-1})), Dims{1});
  deliver(rets, op::index_select(flattened(value), 1, positions), level);
}

void isin(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  if (!is_batched(args[1], level)) {
    Arguments values(op, args);
    values.set(values[0], in_front(args[0].tensor(), level));
    return run(op, values.data(), rets, level);
  }
  Tensor tests = flattened(in_front(args[1].tensor(), level));
  Tensor elements;
  if (args[0].is_tensor()) elements = in_front(args[0].tensor(), level);
  else elements = op::expand(op::new_full(tests, Dims{}, args[0].scalar()), Dims{tests.size(0)});
  Dims wide{tests.size(0)};
  for (int64_t d = 1; d < elements.dim(); ++d) wide.push_back(1);
  wide.push_back(tests.size(1));
  Tensor found = op::any_dim(op::eq(op::unsqueeze(elements, -1), op::view(tests, wide)), Dims{-1});
  deliver(rets, args[3].to_bool() ? op::logical_not(found) : found, level);
}

void searchsorted(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  const Tensor& sorted = args[0].tensor();
  Arguments values(op, args);
  if (!is_batched(args[0], level) && !is_batched(args[5], level) && sorted.dim() == 1) {
    values.set(values[1], in_front(args[1].tensor(), level));
    return run(op, values.data(), rets, level);
  }
  // Rows of boundaries and rows of values match one to one.
  Tensor queries = args[1].is_tensor()
                       ? in_front(args[1].tensor(), level)
                       : in_front(op::new_full(sorted, Dims{}, args[1].scalar()), level);
  Dims shape(queries.sizes());
  if (sorted.dim() == 1) queries = flattened(queries);
  values.set(values[0], in_front(sorted, level));
  values.set(values[1], queries);
  if (args[5].is_tensor()) values.set(values[5], in_front(args[5].tensor(), level));
  Rets found;
  call(op, values.data(), found);
  deliver(rets, op::reshape(found.t[0], shape), level);
}

void bucketize(const OpDef& op, const Value* args, Rets& rets, uint32_t level) {
  if (!is_batched(args[1], level)) {
    Arguments values(op, args);
    values.set(values[0], in_front(args[0].tensor(), level));
    return run(op, values.data(), rets, level);
  }
  const Value sorted[] = {args[1], args[0], args[2], args[3], Value(), Value()};
  searchsorted(defs::searchsorted, sorted, rets, level);
}

}  // namespace facula::batch
