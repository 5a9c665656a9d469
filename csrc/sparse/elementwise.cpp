// Arithmetic on sparse tensors. What keeps zero is done to the values.
#include "op/elementwise.h"

#include "autograd/node.h"
#include "op/arguments.h"
#include "op/ops/activations.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/lazy.h"
#include "op/ops/mathematics.h"
#include "op/ops/number_format.h"
#include "op/ops/random.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"
#include "sparse/call.h"
#include "sparse/convert.h"

namespace facula::sparse {
namespace {

// A number, or what counts as one.
bool is_number(const Value& v) {
  return v.is_number() || (v.is_tensor() && !is_sparse(v.tensor()) && v.tensor().dim() == 0);
}

Tensor on_values(const OpDef& op, const Value* args, const Tensor& t) {
  Arguments replaced(op, args);
  replaced.set(replaced[0], values_of(t));
  Rets rets;
  call(op, replaced.data(), rets);
  return with_values(t, rets.t[0]);
}

// Functions with f(a + b) = f(a) + f(b): entries of one position need not be added up first.
Tensor linear(const OpDef& op, const Value* args) {
  return on_values(op, args, args[0].tensor());
}

Tensor added_up(const Tensor& t) {
  return layout_of(t) == SparseLayout::Coo ? coalesce(t) : t;
}

Tensor keeps_zero(const OpDef& op, const Value* args) {
  return on_values(op, args, added_up(args[0].tensor()));
}

Tensor power(const OpDef& op, const Value* args) {
  if (!args[0].is_tensor() || !is_sparse(args[0].tensor()) || !args[1].is_number() ||
      !(args[1].scalar().to_double() > 0))
    fail(ErrorKind::NotImplemented,
         "a sparse tensor can be raised to positive numbers only, others do not keep zero; use "
         ".to_dense()");
  return keeps_zero(op, args);
}

bool same_positions(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined() || (a.defined() && !same(a.sizes(), b.sizes()))) return false;
  return !a.defined() || a->storage == b->storage || same_numbers(a, b);
}

// Entry by entry at the same positions.
bool same_pattern(const Tensor& a, const Tensor& b) {
  const SparseParts &x = sparse_parts(a), &y = sparse_parts(b);
  return x.layout == y.layout && same(x.values.sizes(), y.values.sizes()) &&
         same_positions(x.indices, y.indices) && same_positions(x.plain, y.plain);
}

void check_same_kind(const Tensor& a, const Tensor& b) {
  if (!same(a.sizes(), b.sizes()))
    runtime_error("sparse tensors must have the same size (they are not broadcast), but got ",
                  a.sizes(), " and ", b.sizes());
  if (sparse_parts(a).sparse_dim != sparse_parts(b).sparse_dim)
    runtime_error("sparse tensors must have as many sparse dimensions as each other, but got ",
                  sparse_parts(a).sparse_dim, " and ", sparse_parts(b).sparse_dim);
}

// Without elements it does not matter which dimensions are sparse: as many as those of the other.
Tensor fit_to(const Tensor& t, const Tensor& other) {
  const SparseParts &mine = sparse_parts(t), &theirs = sparse_parts(other);
  if (mine.layout != SparseLayout::Coo || theirs.layout != SparseLayout::Coo || mine.nnz() ||
      mine.sparse_dim == theirs.sparse_dim || !same(t.sizes(), other.sizes()))
    return t;
  return without_elements(other, theirs.layout, t.dtype(), t.device());
}

Tensor scaled(const Tensor& t, const Scalar& alpha) {
  return alpha.to_complex().re == 1 && alpha.to_complex().im == 0 ? t : op::mul(t, alpha);
}

// Dense memory with the elements of a sparse tensor added to it.
Tensor add_to_dense(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  if (dense.dtype() != sparse.dtype() || dense.dtype() == DType::Bool || sparse.is_meta() ||
      !same(broadcast_shapes(dense.sizes(), sparse.sizes()), sparse.sizes()))
    return op::add(dense, op::_sparse_to_dense(sparse), alpha);
  Dims flat{sparse_numel(sparse)};
  for (int64_t s : dense_sizes(sparse)) flat.push_back(s);
  const Tensor whole =
      same(dense.sizes(), sparse.sizes()) ? dense : op::expand(dense, sparse.sizes());
  return op::reshape(op::index_add(op::reshape(whole, flat), 0, element_keys(sparse),
                                   element_values(sparse), alpha),
                     sparse.sizes());
}

Tensor sum_of(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (!is_sparse(self)) return add_to_dense(self, other, alpha);
  const Tensor b = fit_to(other, self), a = fit_to(self, b);
  check_same_kind(a, b);
  if (same_pattern(a, b)) return with_values(a, op::add(values_of(a), values_of(b), alpha));
  const Tensor x = to_coo(a), y = to_coo(b);
  const SparseParts &p = sparse_parts(x), &q = sparse_parts(y);
  const Tensor values = op::cat(std::vector<Tensor>{values_of(x), scaled(values_of(y), alpha)}, 0);
  if (p.coalesced && q.coalesced) {
    const Groups groups = merge_keys(element_keys(x), element_keys(y));
    return in_layout_of(
        from_keys(groups.keys, add_groups(values, groups.member, groups.keys.numel()), a.sizes(),
                  true),
        a);
  }
  return from_coo(op::cat(std::vector<Tensor>{p.indices, q.indices}, 1), values, a.sizes(), false);
}

[[noreturn]] void refuse_number(const char* sign) {
  fail(ErrorKind::NotImplemented, "sparse ", sign,
       " number has an element at every position; use .to_dense() on the sparse tensor");
}

Tensor add(const OpDef&, const Value* args) {
  if (is_number(args[0]) || is_number(args[1])) refuse_number("+");
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  if (is_sparse(a) && !is_sparse(b)) return add_to_dense(scaled(b, args[2].scalar()), a, Scalar(1));
  return sum_of(a, b, args[2].scalar());
}

Tensor sub(const OpDef&, const Value* args) {
  if (is_number(args[0]) || is_number(args[1])) refuse_number("-");
  const Tensor &a = args[0].tensor(), &b = args[1].tensor();
  if (is_sparse(a) && !is_sparse(b)) return op::sub(op::_sparse_to_dense(a), b, args[2].scalar());
  return sum_of(a, op::neg(b), args[2].scalar());
}

// dense += sparse touches only what the sparse tensor has.
bool add_into_dense(const Value* args, Rets& rets, bool subtract) {
  if (!args[0].is_tensor() || !args[1].is_tensor() || is_sparse(args[0].tensor())) return false;
  const Tensor &self = args[0].tensor(), &other = args[1].tensor();
  if (!same(self.sizes(), other.sizes()) || self.dtype() != other.dtype() ||
      !self.is_contiguous() || self.dtype() == DType::Bool)
    return false;
  Dims flat{sparse_numel(other)};
  for (int64_t s : dense_sizes(other)) flat.push_back(s);
  const Tensor values = subtract ? op::neg(element_values(other)) : element_values(other);
  op::index_add_(op::view(self, flat), 0, element_keys(other), values, args[2].scalar());
  rets.t[0] = self;
  return true;
}
bool write_add(const OpDef&, const Value* args, Rets& rets) {
  return add_into_dense(args, rets, false);
}
bool write_sub(const OpDef&, const Value* args, Rets& rets) {
  return add_into_dense(args, rets, true);
}

// Elements of a dense tensor, broadcast to the sizes of a sparse one, at its positions.
Tensor values_at(const Tensor& dense, const Tensor& sparse) {
  const int64_t rank = sparse.dim(), dims = sparse_parts(sparse).sparse_dim;
  Dims padded(size_t(rank), 1);
  for (int64_t d = 0; d < dense.dim(); ++d) padded[size_t(rank - dense.dim() + d)] = dense.size(d);
  const Tensor all = positions_of(element_keys(sparse), sparse_sizes(sparse));
  std::vector<Tensor> rows;
  Dims sizes, flat{1};
  for (int64_t d = 0; d < dims; ++d) {
    if (padded[size_t(d)] == 1 && sparse.size(d) != 1) continue;
    rows.push_back(op::select(all, 0, d));
    sizes.push_back(padded[size_t(d)]);
    flat[0] *= padded[size_t(d)];
  }
  for (int64_t d = dims; d < rank; ++d) flat.push_back(padded[size_t(d)]);
  const Tensor table = op::reshape(dense, flat);
  if (rows.empty()) return table;  // one row for all elements
  return rows_at(table, linear_keys(op::stack(rows, 0), sizes));
}

Tensor times_dense(const Tensor& sparse, const Tensor& dense) {
  if (!same(broadcast_shapes(sparse.sizes(), dense.sizes()), sparse.sizes()))
    fail(ErrorKind::NotImplemented, "a sparse tensor of size ", sparse.sizes(),
         " is not broadcast to the size ", dense.sizes(), " of the dense one; use .to_dense()");
  const Tensor coo = sparse_parts(sparse).in_blocks() ? to_coo(sparse) : sparse;
  return in_layout_of(with_values(coo, values_of(coo) * values_at(dense, coo)), sparse);
}

Tensor mul(const OpDef& op, const Value* args) {
  if (is_number(args[1])) return on_values(op, args, args[0].tensor());
  if (is_number(args[0])) {
    const Value swapped[] = {args[1], args[0]};
    return on_values(op, swapped, args[1].tensor());
  }
  if (!is_sparse(args[1].tensor())) return times_dense(args[0].tensor(), args[1].tensor());
  if (!is_sparse(args[0].tensor())) return times_dense(args[1].tensor(), args[0].tensor());
  const Tensor b = fit_to(args[1].tensor(), args[0].tensor()), a = fit_to(args[0].tensor(), b);
  check_same_kind(a, b);
  if (sparse_parts(a).coalesced && same_pattern(a, b))
    return with_values(a, values_of(a) * values_of(b));
  const Tensor x = coalesce(a), y = coalesce(b);
  const Tensor keys = element_keys(x);
  const Matches found = match_keys(keys, element_keys(y));
  const Tensor values = rows_at(values_of(x), found.wanted) * rows_at(values_of(y), found.known);
  return in_layout_of(from_keys(op::index_select(keys, 0, found.wanted), values, a.sizes(), true),
                      a);
}

Tensor div(const OpDef& op, const Value* args) {
  if (!args[0].is_tensor() || !is_sparse(args[0].tensor()) || !is_number(args[1]))
    fail(ErrorKind::NotImplemented,
         "a sparse tensor can be divided by numbers and 0-dim tensors only; use .to_dense()");
  return &op == &defs::div ? linear(op, args) : keeps_zero(op, args);
}

Tensor clone(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  return with_values(t, op::clone(values_of(t)));
}

Tensor to_copy(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  const Device device = args[2].device();
  const bool to_meta = device.type == DeviceType::Meta;
  if (t.is_meta() && device.type != DeviceType::None && !to_meta)
    fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data!");
  if (to_meta && !t.is_meta()) return without_elements(t, layout_of(t), args[1].dtype(), device);
  const Tensor values = op::_to_copy(values_of(t), args[1].dtype(), device);
  const SparseParts& parts = sparse_parts(t);
  const Device place = device_of_positions(values.device());
  if (place == parts.indices.device()) return with_values(t, values);
  auto moved = [place](const Tensor& positions) {
    return positions.defined() ? op::_to_copy(positions, DType::None, place) : positions;
  };
  return op::_sparse_make(moved(parts.indices), moved(parts.plain), values, t.sizes(),
                          int64_t(parts.layout), parts.coalesced);
}

Tensor itself(const OpDef&, const Value* args) {
  return args[0].tensor();
}

Tensor alias(const OpDef&, const Value* args) {
  return with_values(args[0].tensor(), values_of(args[0].tensor()));
}

// What has values of its own everywhere has them where a compressed tensor has elements.
Tensor filled_like(const OpDef& op, const Value* args) {
  const Tensor& t = args[0].tensor();
  if (layout_of(t) == SparseLayout::Coo)
    fail(ErrorKind::NotImplemented,
         "not implemented for tensors of layout facula.sparse_coo; use .to_dense() on them");
  Arguments leaf(op, args);
  bool grad = false;
  for (int i = 0; i < op.arg_count; ++i)
    if (std::string_view(op.args[i].name) == "requires_grad") {
      grad = args[i].to_bool();
      leaf[i] = Value(false);
    }
  const Tensor result = on_values(op, leaf.data(), t);
  if (grad) set_requires_grad(result, true);
  return result;
}

Tensor nothing_like(const OpDef&, const Value* args) {
  const Tensor& t = args[0].tensor();
  return without_elements(t, layout_of(t), args[1].dtype(), t.device());
}
Tensor empty_like(const OpDef& op, const Value* args) {
  const bool coo = layout_of(args[0].tensor()) == SparseLayout::Coo;
  return coo ? nothing_like(op, args) : filled_like(op, args);
}
Tensor nothing(const OpDef& op, const Value* args) {
  const Value all[] = {args[0], Value()};
  return nothing_like(op, all);
}

}  // namespace

void add_valuewise(Table& table) {
  for (const OpDef* op : {&defs::sin,      &defs::tan,
                          &defs::asin,     &defs::atan,
                          &defs::sinh,     &defs::tanh,
                          &defs::asinh,    &defs::atanh,
                          &defs::sqrt,     &defs::abs,
                          &defs::sign,     &defs::sgn,
                          &defs::relu,     &defs::relu_functional,
                          &defs::ceil,     &defs::floor,
                          &defs::trunc,    &defs::round,
                          &defs::frac,     &defs::expm1,
                          &defs::log1p,    &defs::erf,
                          &defs::erfinv,   &defs::square,
                          &defs::isnan,    &defs::isinf,
                          &defs::angle,    &defs::isneginf,
                          &defs::isposinf, &defs::nan_to_num,
                          &defs::signbit})
    table[op].compute = keeps_zero;
  for (const OpDef* op : {&defs::neg, &defs::positive, &defs::deg2rad, &defs::rad2deg, &defs::conj,
                          &defs::conj_physical, &defs::real, &defs::imag})
    table[op].compute = linear;
  for (const OpDef* op : {&defs::resolve_conj, &defs::resolve_neg}) table[op].compute = itself;
  for (const OpDef* op : {&defs::ones_like, &defs::full_like, &defs::rand_like, &defs::randn_like})
    table[op].compute = filled_like;
  table[&defs::zeros_like].compute = nothing_like;
  table[&defs::empty_like].compute = empty_like;
  table[&defs::pow].compute = power;
  table[&defs::clone].compute = clone;
  table[&defs::_to_copy].compute = to_copy;
  table[&defs::alias].compute = alias;
}

void add_elementwise(Table& table) {
  add_valuewise(table);
  table[&defs::add] = {add, write_add};
  table[&defs::sub] = {sub, write_sub};
  table[&defs::mul].compute = mul;
  table[&defs::div].compute = div;
  table[&defs::div_mode].compute = div;
  table[&defs::floor_divide].compute = div;
  table[&defs::zero_].compute = nothing;
}

}  // namespace facula::sparse
