// Products made of matrix products: tensordot, sums of products, chains, cross products.
#include <algorithm>
#include <limits>

#include "core/type_names.h"
#include "op/elementwise.h"
#include "op/kernels/linalg_products.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_products.h"
#include "op/ops/mathematics.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// ---- tensordot and its special cases

Tensor tensordot(const Tensor& self, const Tensor& other, IntSpan dims_self, IntSpan dims_other) {
  if (dims_self.size() != dims_other.size())
    runtime_error("both dimension lists should have same length, got ", dims_self, " and ",
                  dims_other);
  Tensor a = self, b = other;
  Dims a_dims, b_dims;
  int64_t summed = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    a_dims.push_back(wrap_dim(dims_self[i], self.dim()));
    b_dims.push_back(wrap_dim(dims_other[i], other.dim()));
    const int64_t n = self.size(a_dims[i]), m = other.size(b_dims[i]);
    if (n == 1) b = op::sum_dim(b, Dims{b_dims[i]}, true, b.dtype());  // broadcasting
    else if (m == 1) a = op::sum_dim(a, Dims{a_dims[i]}, true, a.dtype());
    else if (n != m)
      runtime_error("contracted dimensions need to match, but first has size ", n, " in dim ",
                    dims_self[i], " and second has size ", m, " in dim ", dims_other[i],
                    " (shapes ", self.sizes(), " and ", other.sizes(), ")");
    summed *= std::min(n, m);
  }
  if (!dims_self.empty())  // refuses dimensions that are named twice
    dim_mask(a_dims, self.dim()), dim_mask(b_dims, other.dim());
  auto free_dims = [](const Tensor& t, const Dims& dims) {
    Dims left;
    for (int64_t d = 0; d < t.dim(); ++d)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) left.push_back(d);
    return left;
  };
  auto joined = [](Dims first, const Dims& second) {
    for (int64_t d : second) first.push_back(d);
    return first;
  };
  const Dims a_free = free_dims(a, a_dims), b_free = free_dims(b, b_dims);
  Dims shape;
  int64_t rows = 1, columns = 1;
  for (int64_t d : a_free) shape.push_back(a.size(d)), rows *= a.size(d);
  for (int64_t d : b_free) shape.push_back(b.size(d)), columns *= b.size(d);
  a = op::permute(a, joined(a_free, a_dims));
  b = op::permute(b, joined(b_dims, b_free));
  // A single number keeps its precision inside autocast, which lowers that of matrix products.
  if (rows == 1 && columns == 1)
    return op::view(op::dot(op::reshape(a, Dims{summed}), op::reshape(b, Dims{summed})), shape);
  a = op::reshape(a, Dims{rows, summed});
  b = op::reshape(b, Dims{summed, columns});
  return op::view(op::mm(a, b), shape);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  if (self.size(-1) != other.size(-1))
    runtime_error("the last dimension must match on both input tensors but got shapes ",
                  self.sizes(), " and ", other.sizes());
  return op::tensordot(self, other, Dims{-1}, Dims{-1});
}

Tensor vdot(const Tensor& self, const Tensor& other) {
  return op::dot(op::conj(self), other);
}

Tensor linalg_matmul(const Tensor& self, const Tensor& other) {
  return op::matmul(self, other);
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  if (category(x.dtype()) < Category::Floating || category(y.dtype()) < Category::Floating)
    runtime_error("expected floating-point or complex tensors, but got x of dtype ", x.dtype(),
                  " and y of dtype ", y.dtype());
  if (x.dtype() != y.dtype())
    runtime_error("expected x and y to have the same dtype, but found ", x.dtype(), " and ",
                  y.dtype(), "; convert one of them with .to(...)");
  if (x.dim() == 1 && y.dim() == 1 && x.numel() == y.numel()) {
    wrap_dim(dim, 1);
    return op::vdot(x, y);
  }
  return op::sum_dim(op::conj(x) * y, Dims{dim});
}

Tensor kron(const Tensor& self, const Tensor& other) {
  // (a0, 1, a1, 1, ...) times (1, b0, 1, b1, ...)
  const int64_t rank = std::max(self.dim(), other.dim());
  Dims a_shape, b_shape, shape;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t i = d - (rank - self.dim()), j = d - (rank - other.dim());
    const int64_t n = i < 0 ? 1 : self.size(i), m = j < 0 ? 1 : other.size(j);
    a_shape.push_back(n), a_shape.push_back(1);
    b_shape.push_back(1), b_shape.push_back(m);
    shape.push_back(n * m);
  }
  return op::reshape(op::reshape(self, a_shape) * op::reshape(other, b_shape), shape);
}

// ---- a product added to a tensor

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  if (mat.dim() != 2 || vec.dim() != 1 || self.dim() > 1)
    runtime_error("vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(), ", ",
                  vec.dim(), " (shapes ", self.sizes(), ", ", mat.sizes(), " and ", vec.sizes(),
                  ")");
  if (mat.size(1) != vec.size(0) || !(self.numel() == 1 || self.numel() == mat.size(0)))
    runtime_error("size mismatch, got input (", self.numel(), "), mat (", mat.size(0), "x",
                  mat.size(1), "), vec (", vec.size(0), ")");
  const Tensor base = self.dim() == 0 ? self : op::unsqueeze(self, 1);
  return op::squeeze_dim(op::addmm(base, mat, op::unsqueeze(vec, 1), beta, alpha), Dims{1});
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  if (batch1.dim() != 3 || batch2.dim() != 3)
    runtime_error("batch1 and batch2 must be 3D tensors, got shapes ", batch1.sizes(), " and ",
                  batch2.sizes());
  if (batch1.size(0) != batch2.size(0) || batch1.size(2) != batch2.size(1))
    runtime_error(
        "batch1 and batch2 must have the same number of batches, and the columns of "
        "the first must match the rows of the second; got shapes ",
        batch1.sizes(), " and ", batch2.sizes());
  // The sum over the batch is a sum over more columns of one product.
  const int64_t n = batch1.size(1), k = batch1.size(0) * batch1.size(2), p = batch2.size(2);
  return op::addmm(self, op::reshape(op::transpose(batch1, 0, 1), Dims{n, k}),
                   op::reshape(batch2, Dims{k, p}), beta, alpha);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  if (vec1.dim() != 1 || vec2.dim() != 1)
    runtime_error("Expected 1-D arguments vec1 and vec2, but got ", vec1.dim(), "-D and ",
                  vec2.dim(), "-D");
  if (!is_expandable(self.sizes(), Dims{vec1.numel(), vec2.numel()}))
    runtime_error("input of shape ", self.sizes(), " cannot be broadcast to the shape (",
                  vec1.numel(), ", ", vec2.numel(), ") of the outer product");
  // Of the dtypes alone, as in PyTorch: a tensor without dimensions counts like any other.
  const DType dtype = promote_types(promote_types(vec1.dtype(), vec2.dtype()), self.dtype());
  const Category kind = category(dtype);
  for (const auto& [name, factor] : {std::pair("beta", &beta), std::pair("alpha", &alpha)}) {
    if (factor->is_bool() && kind != Category::Bool)
      runtime_error("Boolean ", name, " only supported for Boolean results. The result is ", dtype);
    if (kind <= Category::Integral && factor->category() > Category::Integral)
      runtime_error("For integral input tensors, argument ", name,
                    " must not be a floating point number.");
    if (kind < Category::Complex && factor->is_complex())
      runtime_error("For non-complex input tensors, argument ", name,
                    " must not be a complex number.");
  }
  auto scaled = [&](const Tensor& t, const Scalar& factor) {
    if (factor.equals(1)) return t;
    return kind == Category::Bool ? t * Scalar(!factor.equals(0)) : t * factor;
  };
  auto in_dtype = [&](const Tensor& t) { return t.dtype() == dtype ? t : op::_to_copy(t, dtype); };
  const Tensor product = scaled(op::outer(in_dtype(vec1), in_dtype(vec2)), alpha);
  // beta 0 ignores what self holds, NaN too
  return beta.equals(0) ? product : scaled(in_dtype(self), beta) + product;
}

// ---- chains

// order[i][j]: where the cheapest product of matrices i..j is split into two.
static std::vector<std::vector<size_t>> cheapest_order(const std::vector<int64_t>& sizes) {
  const size_t n = sizes.size() - 1;  // matrix i is sizes[i] x sizes[i + 1]
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> order(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length)
    for (size_t i = 0; i + length <= n; ++i) {
      const size_t j = i + length - 1;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double c = cost[i][k] + cost[k + 1][j] +
                         double(sizes[i]) * double(sizes[k + 1]) * double(sizes[j + 1]);
        if (c < cost[i][j]) cost[i][j] = c, order[i][j] = k;
      }
    }
  return order;
}

static Tensor multiply_chain(const std::vector<Tensor>& matrices,
                             const std::vector<std::vector<size_t>>& order, size_t i, size_t j) {
  if (i == j) return matrices[i];
  const size_t k = order[i][j];
  return op::mm(multiply_chain(matrices, order, i, k), multiply_chain(matrices, order, k + 1, j));
}

Tensor linalg_multi_dot(TensorSpan tensors) {
  const size_t n = tensors.size();
  if (n < 2) runtime_error("expected at least 2 tensors but got ", n);
  std::vector<Tensor> matrices(tensors.begin(), tensors.end());
  const bool row = tensors[0].dim() == 1, column = tensors[n - 1].dim() == 1;
  if (row) matrices[0] = op::unsqueeze(tensors[0], 0);
  if (column) matrices[n - 1] = op::unsqueeze(tensors[n - 1], 1);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& t = matrices[i];
    const bool end = i == 0 || i == n - 1;
    if (t.dim() != 2) {
      if (end)
        runtime_error("the ", i ? "last" : "first", " tensor must be 1D or 2D but got ",
                      tensors[i].dim(), "D");
      runtime_error("tensor ", i, " must be 2D but got ", tensors[i].dim(), "D");
    }
    if (t.dtype() != matrices[0].dtype())
      runtime_error("all tensors must have be the same dtype but tensor 0 is ",
                    cpp_type_name(matrices[0].dtype()), " and tensor ", i, " ",
                    cpp_type_name(t.dtype()));
    if (t.device() != matrices[0].device()) device_error(matrices[0].device(), t.device());
    if (i && matrices[i - 1].size(1) != t.size(0))
      runtime_error("tensors ", i - 1, " and ", i, " with shapes ", tensors[i - 1].sizes(), " and ",
                    tensors[i].sizes(), " cannot be multiplied");
    sizes.push_back(t.size(0));
  }
  sizes.push_back(matrices[n - 1].size(1));
  Tensor result = multiply_chain(matrices, cheapest_order(sizes), 0, n - 1);
  if (row) result = op::squeeze_dim(result, Dims{0});
  return column ? op::squeeze_dim(result, Dims{-1}) : result;
}

Tensor chain_matmul(TensorSpan matrices) {
  if (matrices.empty()) runtime_error("expected one or more matrices, but got none");
  for (size_t i = 0; i < matrices.size(); ++i)
    if (matrices[i].dim() != 2)
      runtime_error("Tensor ", i, " of the chain has ", matrices[i].dim(),
                    " dimensions; matrices have 2");
  return matrices.size() == 1 ? op::alias(matrices[0]) : op::linalg_multi_dot(matrices);
}

// ---- cross products

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  if (self.dim() != other.dim())
    runtime_error("inputs must have the same number of dimensions, got shapes ", self.sizes(),
                  " and ", other.sizes());
  const int64_t d = wrap_dim(dim, self.dim());
  if (self.dim() == 0 || self.size(d) != 3 || other.size(d) != 3)
    runtime_error("inputs dimension ", dim, " must have length 3. Got ",
                  self.dim() ? self.size(d) : 0, " and ", other.dim() ? other.size(d) : 0,
                  " (shapes ", self.sizes(), " and ", other.sizes(), ")");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    auto part = [&](const Tensor& t, int64_t at) { return op::select(t, d, at); };
    parts.push_back(part(self, j) * part(other, k) - part(self, k) * part(other, j));
  }
  return op::stack(parts, d);
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return op::linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] == 3) return op::linalg_cross(self, other, d);
  runtime_error("no dimension of size 3 in input, of shape ", self.sizes());
}

// ---- matrices from parts

Tensor block_diag(TensorSpan tensors) {
  if (tensors.empty()) return op::empty(Dims{1, 0});
  Promotion promotion;
  int64_t width = 0, at = 0;
  std::vector<Tensor> blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.dim() > 2)
      runtime_error("Input tensors must have 2 or fewer dimensions. Input ", i, " has ", t.dim(),
                    " dimensions");
    if (t.device() != tensors[0].device()) device_error(tensors[0].device(), t.device());
    promotion.add(t);
    blocks.push_back(t.dim() == 2   ? t
                     : t.dim() == 1 ? op::unsqueeze(t, 0)
                                    : op::reshape(t, Dims{1, 1}));
    width += blocks[i].size(1);
  }
  std::vector<Tensor> rows;
  for (const Tensor& block : blocks) {
    auto zeros = [&](int64_t columns) {
      return op::zeros(Dims{block.size(0), columns}, promotion.result(), std::nullopt,
                       block.device());
    };
    const int64_t n = block.size(1);
    rows.push_back(op::cat(std::vector<Tensor>{zeros(at), block, zeros(width - at - n)}, 1));
    at += n;
  }
  return op::cat(rows, 0);
}

Tensor linalg_diagonal(const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return op::diagonal(a, offset, dim1, dim2);
}

// Columns of the powers 0, 1, ... of the elements, along a new last dimension; integers are
// multiplied as int64, like in every running product.
static Tensor powers_of(const Tensor& x, int64_t columns) {
  const DType dtype = is_integral(x.dtype(), true) ? DType::Int64 : x.dtype();
  Dims shape(x.sizes());
  shape.push_back(1);
  const Tensor one = op::ones(shape, dtype, std::nullopt, x.device());
  shape[shape.size() - 1] = columns - 1;
  const Tensor rest = op::cumprod(op::expand(op::unsqueeze(x, -1), shape), -1, dtype);
  return op::cat(std::vector<Tensor>{one, rest}, -1);
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> n) {
  if (x.dtype() == DType::Bool)
    dtype_error(x.dtype(), "integers, floating-point and complex dtypes");
  if (x.dim() == 0) return op::linalg_vander(op::reshape(x, Dims{1}), n);
  const int64_t columns = n.value_or(x.size(-1));
  if (columns <= 1) runtime_error("N must be greater than 1, got ", columns);
  return powers_of(x, columns);
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  if (x.dim() != 1) runtime_error("x must be a one-dimensional tensor, got shape ", x.sizes());
  const int64_t columns = n.value_or(x.size(0));
  if (columns < 0) runtime_error("N must be non-negative, got ", columns);
  if (columns == 0) return op::slice(powers_of(op::detach(x), 1), 1, 0, 0);
  const Tensor powers = powers_of(x, columns);
  return increasing ? powers : op::flip(powers, Dims{1});
}

}  // namespace facula::kernels
