// Norms of vectors and matrices.
#include <cmath>

#include "cpu/cast.h"
#include "cpu/reduce.h"
#include "op/kernels/linalg_norms.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/linalg_spectral.h"
#include "op/ops/mathematics.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static Dims all_dims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}

// The input in the dtype that the norm is computed in.
static Tensor in_norm_dtype(const Tensor& self, DType dtype) {
  if (category(self.dtype()) < Category::Floating)
    runtime_error("Expected a floating point or complex tensor as input. Got ",
                  legacy_dtype_name(self.dtype()), "; convert it with .to(facula.float32)");
  if (dtype == DType::None || dtype == self.dtype()) return self;
  if (category(dtype) < Category::Floating)
    runtime_error("dtype should be floating point or complex, but got ", legacy_dtype_name(dtype));
  if (is_complex(dtype) != self.is_complex())
    runtime_error("dtype should be ", self.is_complex() ? "complex for complex" : "real for real",
                  " inputs, but got ", legacy_dtype_name(dtype));
  if (promote_types(self.dtype(), dtype) != dtype)
    runtime_error("the dtype of the input (", legacy_dtype_name(self.dtype()),
                  ") should be convertible without narrowing to the specified dtype (",
                  legacy_dtype_name(dtype), ")");
  return op::_to_copy(self, dtype);
}

// ---- vectors

// Negative orders and inf have no value for zero elements.
static void check_has_elements(const Tensor& self, double order, IntSpan dims, bool over_all) {
  if (self.numel() != 0 || (order >= 0 && !std::isinf(order))) return;
  for (int64_t d : dims)
    if (self.size(d) == 0) {
      if (over_all)
        runtime_error("linalg.vector_norm cannot compute the ", order,
                      " norm on an empty tensor because the ",
                      "operation does not have an identity; the input has shape ", self.sizes());
      runtime_error("linalg.vector_norm cannot compute the ", order, " norm on the dimension ", d,
                    " because this dimension is empty and the operation does not have an "
                    "identity; the input has shape ",
                    self.sizes());
    }
}

Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntSpan> dim,
                          bool keepdim, DType dtype) {
  if (ord.is_complex()) runtime_error("Expected a non-complex scalar as the order of norm.");
  const Tensor x = in_norm_dtype(self, dtype);
  const double order = ord.to_double();
  const bool over_all = !dim || dim->empty();
  if (self.dim() == 0) {
    if (!over_all) dim_mask(*dim, 0);  // refuses what is out of range
    return order == 0 ? op::_vector_norm(op::unsqueeze(x, 0), 0, Dims{0}, false) : op::abs(x);
  }
  const Dims dims = over_all ? all_dims(self.dim()) : Dims(*dim);
  dim_mask(dims, self.dim());  // refuses what is out of range or named twice
  check_has_elements(self, order, dims, over_all);
  return op::_vector_norm(x, order, dims, keepdim);
}

namespace {

// What is folded, how, and what is done with the total.
struct NormPlan {
  const OpDef* map;
  const OpDef* fold;
  double root;  // the exponent that the total is raised to
};

NormPlan plan_of(double order) {
  if (order == 2) return {&defs::_square, &defs::sum_dim, 0.5};
  if (order == 1) return {&defs::abs, &defs::sum_dim, 1};
  if (order == 0) return {&defs::_nonzero_count, &defs::sum_dim, 1};
  if (std::isinf(order)) return {&defs::abs, order > 0 ? &defs::amax : &defs::amin, 1};
  return {&defs::_abs_power, &defs::sum_dim, 1 / order};
}

}  // namespace

Tensor _vector_norm(const Tensor& self, double order, IntSpan dim, bool keepdim) {
  uint64_t mask = dim_mask(dim, self.dim());
  Tensor out = empty_tensor(reduced_shape(self.sizes(), mask, keepdim), to_real(self.dtype()),
                            self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const NormPlan plan = plan_of(order);
  Tensor x = self;
  if (self.is_complex() && order == 2) {  // the squares of both parts
    mask |= uint64_t(1) << self.dim();
    x = op::view_as_real(self);
  } else if (self.is_complex()) {
    x = op::abs(self);
  }
  // Totals of squares may be too large for half precision where the norm is not.
  const DType acc = compute_dtype(out.dtype());
  Tensor total = acc == out.dtype() ? out : empty_tensor(out.sizes(), acc, out.device());
  if (x.is_cpu()) {
    const ElementwiseDef& map = *plan.map->elementwise;
    alignas(16) const double params[2] = {order, 0};
    cpu_reduce(*plan.fold->reduce, x, mask, keepdim, acc, total,
               {map.loops[isa_level()][int(acc)], params});
  } else {
    Rets mapped, folded;
    if (x.dtype() != acc) x = op::_to_copy(x, acc);
    const Value map_args[] = {Value(x), Value(order)};
    call(*plan.map, map_args, mapped);
    Dims dims;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (mask >> d & 1) dims.push_back(d);
    const Value fold_args[] = {Value(mapped.t[0]), Value(dims), Value(keepdim), Value()};
    call(*plan.fold, fold_args, folded);
    total = op::reshape(folded.t[0], out.sizes());
  }
  if (plan.root == 0.5) op::sqrt_(total);
  else if (plan.root != 1) op::pow_(total, plan.root);
  return total.dtype() == out.dtype() ? total : op::_to_copy(total, out.dtype());
}

Tensor _vector_norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, double order,
                         IntSpan dim, bool keepdim) {
  if (order == 0) return op::zeros_like(self);
  const Dims kept = reduced_shape(self.sizes(), dim_mask(dim, self.dim()), true);
  const Tensor g = keepdim ? grad : op::reshape(grad, kept),
               r = keepdim ? result : op::reshape(result, kept);
  if (order == 1) return op::sgn(self) * g;
  if (std::isinf(order)) {  // equal magnitudes share the gradient
    const Tensor size = op::abs(self);
    const Tensor extreme =
        op::logical_or(op::eq(size, r), op::logical_and(op::isnan(size), op::isnan(r)));
    const Tensor count = op::sum_dim(extreme, dim, true, r.dtype());
    return op::sgn(self) * (g / count * extreme);
  }
  // A norm of 0 has the gradient 0, and no curvature.
  const Tensor zero = op::eq(r, 0), safe = op::masked_fill(r, zero, 1);
  const Tensor scale = op::masked_fill(g / (order == 2 ? safe : op::pow(safe, order - 1)), zero, 0);
  if (order == 2) return self * scale;
  if (order > 2) return self * op::pow(op::abs(self), order - 2) * scale;
  const Tensor none = op::eq(self, 0);
  const Tensor slope = op::pow(op::masked_fill(op::abs(self), none, 1), order - 1);
  return op::sgn(self) * slope * scale;  // the sign is 0 where the slope is not defined
}

// ---- matrices

// (rows, columns), as dimensions from the front.
static std::pair<int64_t, int64_t> matrix_dims(const Tensor& self, IntSpan dim) {
  if (self.dim() < 2)
    runtime_error("The input tensor A must have at least 2 dimensions, got shape ", self.sizes());
  if (dim.size() != 2) runtime_error("dim must be a 2-tuple. Got ", dim);
  const int64_t rows = wrap_dim(dim[0], self.dim()), columns = wrap_dim(dim[1], self.dim());
  if (rows == columns) runtime_error("dims must be different. Got (", dim[0], ", ", dim[1], ")");
  return {rows, columns};
}

// What a function of the singular values gives, in the place of the two dimensions.
template <class F>
static Tensor of_singular_values(const Tensor& x, int64_t rows, int64_t columns, bool keepdim,
                                 F fold) {
  const Tensor result = fold(op::linalg_svdvals(op::movedim(x, Dims{rows, columns}, Dims{-2, -1})));
  if (!keepdim) return result;
  const Tensor first = op::unsqueeze(result, std::min(rows, columns));
  return op::unsqueeze(first, std::max(rows, columns));
}

static Tensor matrix_norm_of(const Tensor& x, double order, int64_t rows, int64_t columns,
                             bool keepdim) {
  const bool largest = order > 0;
  auto extreme = [&](const Tensor& t, int64_t d, bool keep) {
    return largest ? op::amax(t, Dims{d}, keep) : op::amin(t, Dims{d}, keep);
  };
  const bool spectral = std::fabs(order) == 2;
  if (spectral && std::min(x.size(rows), x.size(columns)) > 0)
    return of_singular_values(x, rows, columns, keepdim,
                              [&](const Tensor& s) { return extreme(s, -1, false); });
  // 1 adds up columns, inf rows.
  const bool by_rows = std::isinf(order);
  const int64_t summed = by_rows ? columns : rows;
  int64_t compared = by_rows ? rows : columns;
  if (largest && (spectral ? x.size(rows) == 0 || x.size(columns) == 0 : x.size(compared) == 0))
    return op::sum_dim(op::abs(x), Dims{rows, columns}, keepdim);  // no elements: the norm is 0
  if (spectral || x.size(compared) == 0)
    index_error("cannot compute the ", order, " norm of a matrix without ",
                spectral  ? "elements"
                : by_rows ? "rows"
                          : "columns",
                "; the input has shape ", x.sizes());
  const Tensor totals = op::linalg_vector_norm(x, Scalar(1), Dims{summed}, keepdim);
  if (!keepdim && summed < compared) --compared;
  return extreme(totals, compared, keepdim);
}

Tensor linalg_matrix_norm_number(const Tensor& self, const Scalar& ord, IntSpan dim, bool keepdim,
                                 DType dtype) {
  const Tensor x = in_norm_dtype(self, dtype);
  const auto [rows, columns] = matrix_dims(self, dim);
  const double order = ord.is_complex() ? 0 : ord.to_double();
  if (!(std::fabs(order) == 1 || std::fabs(order) == 2 || std::isinf(order)))
    runtime_error("Order ", order,
                  " not supported. Accepted are 1, -1, 2, -2, inf, -inf, 'fro' "
                  "and 'nuc'.");
  return matrix_norm_of(x, order, rows, columns, keepdim);
}

Tensor linalg_matrix_norm_name(const Tensor& self, std::string_view ord, IntSpan dim, bool keepdim,
                               DType dtype) {
  const Tensor x = in_norm_dtype(self, dtype);
  const auto [rows, columns] = matrix_dims(self, dim);
  if (ord == "fro") return op::linalg_vector_norm(x, Scalar(2), Dims{rows, columns}, keepdim);
  if (ord == "nuc")
    return of_singular_values(x, rows, columns, keepdim,
                              [](const Tensor& s) { return op::sum_dim(s, Dims{-1}); });
  runtime_error("Order ", ord,
                " not supported. Accepted are 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'.");
}

// ---- either

static void check_dims_of_norm(const Tensor& self, bool has_order, std::optional<IntSpan> dim) {
  if (dim && dim->size() != 1 && dim->size() != 2)
    runtime_error("If dim is specified, it must be of length 1 or 2. Got ", *dim);
  if (!dim && has_order && self.dim() != 1 && self.dim() != 2)
    runtime_error("If dim is not specified but ord is, the input must be 1D or 2D. Got ",
                  self.dim(), "D.");
}

Tensor linalg_norm(const Tensor& self, Value ord, std::optional<IntSpan> dim, bool keepdim,
                   DType dtype) {
  check_dims_of_norm(self, !ord.is_none(), dim);
  const Dims both{0, 1};
  if (!ord.is_none() && (dim ? dim->size() == 2 : self.dim() == 2))
    return op::linalg_matrix_norm_number(self, ord.scalar(), dim ? *dim : IntSpan(both), keepdim,
                                         dtype);
  return op::linalg_vector_norm(self, ord.is_none() ? Scalar(2) : ord.scalar(), dim, keepdim,
                                dtype);
}

Tensor linalg_norm_name(const Tensor& self, std::string_view ord, std::optional<IntSpan> dim,
                        bool keepdim, DType dtype) {
  check_dims_of_norm(self, true, dim);
  const Dims both{0, 1};
  return op::linalg_matrix_norm_name(self, ord, dim ? *dim : IntSpan(both), keepdim, dtype);
}

Tensor frobenius_norm(const Tensor& self, IntSpan dim, bool keepdim) {
  if (dim.size() > 2)
    runtime_error("Expected at most 2 dimensions, but got ", dim.size(), " dimensions instead.");
  return op::linalg_vector_norm(self, Scalar(2), dim, keepdim);
}

Tensor nuclear_norm(const Tensor& self, bool keepdim) {
  const Dims last{-2, -1};
  return op::linalg_matrix_norm_name(self, "nuc", last, keepdim);
}
Tensor nuclear_norm_dim(const Tensor& self, IntSpan dim, bool keepdim) {
  return op::linalg_matrix_norm_name(self, "nuc", dim, keepdim);
}

Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return op::linalg_vector_norm(v, Scalar(pow));
  const int64_t kept = wrap_dim(dim, v.dim());
  Dims dims;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != kept) dims.push_back(d);
  return dims.empty() ? op::abs(v) : op::linalg_vector_norm(v, Scalar(pow), IntSpan(dims), true);
}

}  // namespace facula::kernels
