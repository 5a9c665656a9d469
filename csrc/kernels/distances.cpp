// Distances between tensors and between the rows of matrices.
#include "cpu/distances.h"

#include <cmath>

#include "core/thread_pool.h"
#include "cpu/iterate.h"
#include "kernels/destination.h"
#include "op/hooks/sampling.h"
#include "op/kernels/linalg_norms.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/mathematics.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return op::linalg_vector_norm(self - other, p);
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  if (p.is_complex() || !(p.to_double() > 0))
    runtime_error("non-positive-norm not supported: p must be a real number above 0");
  if (maxnorm.is_complex() || !(maxnorm.to_double() >= 0))
    runtime_error("expected maxnorm to be >= 0 but got ", maxnorm.to_double());
  if (self.dim() < 2)
    runtime_error("input needs at least 2 dimensions, got ", self.dim(), " dimensions");
  const int64_t kept = wrap_dim(dim, self.dim());
  Dims others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != kept) others.push_back(d);
  const DType wide = is_reduced_float(self.dtype()) ? DType::Float32 : DType::None;
  const Tensor norm = op::linalg_vector_norm(self, p, IntSpan(others), true, wide);
  // Slightly below maxnorm, so that rounding does not leave the norm above it.
  const Tensor factor = op::where(norm > maxnorm, op::reciprocal(norm + 1e-7) * maxnorm, 1.0);
  return op::contiguous(self) * op::_to_copy(factor, to_real(self.dtype()));
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  Promotion promotion;
  promotion.add(x1);
  promotion.add(x2);
  const DType common = promotion.result();
  if (!is_floating(common))
    runtime_error("expected common dtype to be floating point, yet common dtype is ",
                  legacy_dtype_name(common));
  const Dims shape = broadcast_shapes(x1.sizes(), x2.sizes());
  wrap_dim(dim, int64_t(shape.size()));
  const DType wide = compute_dtype(common);  // eps is 0 in half precision
  auto directions = [&](const Tensor& given) {
    const Tensor x = op::expand(given.dtype() == wide ? given : op::_to_copy(given, wide), shape);
    const Tensor length = op::linalg_vector_norm(x, Scalar(2), Dims{dim}, true);
    // At least eps; the gradient passes as if nothing had been raised.
    const Tensor raised = op::clamp_min(op::detach(length), eps) - op::detach(length);
    return x / (length + raised);
  };
  const Tensor result = op::sum_dim(directions(x1) * directions(x2), Dims{dim});
  return wide == common ? result : op::_to_copy(result, common);
}

// ---- all pairs of rows

static void check_points(const Tensor& x, const char* name) {
  if (!is_floating(x.dtype()))
    runtime_error("cdist only supports floating-point dtypes, ", name,
                  " got: ", legacy_dtype_name(x.dtype()));
  if (x.dim() < 2)
    runtime_error("cdist only supports at least 2D tensors, ", name, " got: ", x.dim(), "D");
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::string_view compute_mode) {
  const bool always = compute_mode == "use_mm_for_euclid_dist",
             never = compute_mode == "donot_use_mm_for_euclid_dist";
  if (!always && !never && compute_mode != "use_mm_for_euclid_dist_if_necessary")
    value_error(compute_mode,
                " is not a valid value for compute_mode; accepted are "
                "'use_mm_for_euclid_dist_if_necessary', 'use_mm_for_euclid_dist' and "
                "'donot_use_mm_for_euclid_dist'");
  check_points(x1, "X1");
  check_points(x2, "X2");
  if (x1.dtype() != x2.dtype())
    runtime_error("expected X1 and X2 to have the same dtype, but got ", x1.dtype(), " and ",
                  x2.dtype());
  if (x1.device() != x2.device()) device_error(x1.device(), x2.device());
  if (x1.size(-1) != x2.size(-1))
    runtime_error("X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
                  " X2: ", x2.size(-1));
  if (!(p >= 0)) runtime_error("cdist only supports non-negative p values, got ", p);
  const bool many = x1.size(-2) > 25 || x2.size(-2) > 25;
  return p == 2 && (always || (many && !never)) ? op::_euclidean_dist(x1, x2)
                                                : op::_cdist(x1, x2, p);
}

namespace {

// Both matrices with the same leading dimensions, and how many that makes.
struct Pairs {
  Tensor x1, x2;
  Dims batch;
  int64_t count, rows, columns, width;
};

Pairs paired(const Tensor& x1, const Tensor& x2) {
  auto leading = [](const Tensor& t) { return t.sizes().first(size_t(t.dim() - 2)); };
  Pairs pairs;
  pairs.batch = broadcast_shapes(leading(x1), leading(x2));
  pairs.count = checked_numel(pairs.batch);
  pairs.rows = x1.size(-2), pairs.columns = x2.size(-2), pairs.width = x1.size(-1);
  auto expanded = [&](const Tensor& t) {
    Dims shape(pairs.batch);
    shape.push_back(t.size(-2)), shape.push_back(t.size(-1));
    return same(shape, t.sizes()) ? t : op::expand(t, shape);
  };
  pairs.x1 = expanded(x1), pairs.x2 = expanded(x2);
  return pairs;
}

Dims with_shape(Dims batch, int64_t rows, int64_t columns) {
  batch.push_back(rows), batch.push_back(columns);
  return batch;
}

// Dense and in a dtype that has loops.
Tensor for_loops(const Tensor& t) {
  return dense(is_reduced_float(t.dtype()) ? op::_to_copy(t, DType::Float32) : t);
}

// Calls run(type, matrix, first row, rows) for pieces of all rows, on several threads when there
// is enough to do.
template <class F>
void for_each_rows(const Pairs& p, DType dtype, F run) {
  const int64_t work = std::max<int64_t>(1, p.columns * p.width);
  parallel_for(0, p.count * p.rows, std::max<int64_t>(1, kGrain / work), [&](int64_t b, int64_t e) {
    while (b < e) {
      const int64_t matrix = b / p.rows, row = b % p.rows, rows = std::min(e - b, p.rows - row);
      if (dtype == DType::Float64) run(TypeTag<double>{}, matrix, row, rows);
      else run(TypeTag<float>{}, matrix, row, rows);
      b += rows;
    }
  });
}

}  // namespace

Tensor _cdist(const Tensor& x1, const Tensor& x2, double p) {
  const Pairs pairs = paired(x1, x2);
  const DType dtype = compute_dtype(x1.dtype());
  Tensor out = empty_tensor(with_shape(pairs.batch, pairs.rows, pairs.columns), dtype, x1.device());
  if (out.is_cuda()) {
    device_sampling.distances(for_loops(pairs.x1), for_loops(pairs.x2), p, out);
  } else if (!out.is_meta() && out.numel()) {
    const Tensor a = for_loops(pairs.x1), b = for_loops(pairs.x2);
    for_each_rows(pairs, dtype, [&](auto tag, int64_t matrix, int64_t row, int64_t rows) {
      using T = typename decltype(tag)::type;
      const int64_t first = matrix * pairs.rows + row;
      const T* from = a.data_as<T>() + first * pairs.width;
      const T* with = b.data_as<T>() + matrix * pairs.columns * pairs.width;
      T* to = out.data_as<T>() + first * pairs.columns;
      if constexpr (sizeof(T) == 8)
        distance_loops().rows_f64(from, with, to, rows, pairs.columns, pairs.width, p);
      else distance_loops().rows_f32(from, with, to, rows, pairs.columns, pairs.width, p);
    });
  }
  return dtype == x1.dtype() ? out : op::_to_copy(out, x1.dtype());
}

Tensor _cdist_grad(const Tensor& grad_out, const Tensor& x1, const Tensor& x2, double p,
                   const Tensor& distances) {
  const Pairs pairs = paired(x1, x2);
  const DType dtype = compute_dtype(x1.dtype());
  Tensor out = empty_tensor(with_shape(pairs.batch, pairs.rows, pairs.width), dtype, x1.device());
  if (!out.is_meta() && out.numel()) {
    const Dims full = with_shape(pairs.batch, pairs.rows, pairs.columns);
    const Tensor a = for_loops(pairs.x1), b = for_loops(pairs.x2),
                 g = for_loops(op::expand(grad_out, full)),
                 d = for_loops(op::expand(distances, full));
    if (out.is_cuda()) {
      device_sampling.distance_slopes(g, d, a, b, p, out);
      return dtype == x1.dtype() ? out : op::_to_copy(out, x1.dtype());
    }
    for_each_rows(pairs, dtype, [&](auto tag, int64_t matrix, int64_t row, int64_t rows) {
      using T = typename decltype(tag)::type;
      const int64_t first = matrix * pairs.rows + row;
      const T* gradients = g.data_as<T>() + first * pairs.columns;
      const T* lengths = d.data_as<T>() + first * pairs.columns;
      const T* from = a.data_as<T>() + first * pairs.width;
      const T* with = b.data_as<T>() + matrix * pairs.columns * pairs.width;
      T* to = out.data_as<T>() + first * pairs.width;
      if constexpr (sizeof(T) == 8)
        distance_loops().slopes_f64(gradients, lengths, from, with, to, rows, pairs.columns,
                                    pairs.width, p);
      else
        distance_loops().slopes_f32(gradients, lengths, from, with, to, rows, pairs.columns,
                                    pairs.width, p);
    });
  }
  return dtype == x1.dtype() ? out : op::_to_copy(out, x1.dtype());
}

// ---- second derivatives, over all differences at once: (..., rows, columns, width)

namespace {

struct Slopes {
  Tensor difference, distance, slope;  // slope: the derivative of the distance by the difference
};

Slopes slopes_of(const Tensor& x1, const Tensor& x2, double p) {
  Slopes s;
  s.difference = op::unsqueeze(x1, -2) - op::unsqueeze(x2, -3);
  s.distance = op::linalg_vector_norm(s.difference, Scalar(p), Dims{-1}, true);
  if (p == 0) {
    s.slope = op::zeros_like(s.difference);
  } else if (p == 1) {
    s.slope = op::sign(s.difference);
  } else if (std::isinf(p)) {
    s.slope = op::sign(s.difference) * op::eq(op::abs(s.difference), s.distance);
  } else {
    const Tensor ratio = s.difference / op::masked_fill(s.distance, op::eq(s.distance, 0), 1);
    const Tensor none = op::eq(ratio, 0);
    s.slope =
        p == 2 ? ratio : op::sign(ratio) * op::pow(op::masked_fill(op::abs(ratio), none, 1), p - 1);
  }
  return s;
}

// The derivative of _cdist_grad by the differences.
Tensor by_difference(const Tensor& grad, const Tensor& grad_out, const Tensor& x1, const Tensor& x2,
                     double p) {
  const Slopes s = slopes_of(x1, x2, p);
  if (p == 0 || p == 1 || std::isinf(p)) return op::zeros_like(s.difference);
  const Tensor none = op::eq(s.distance, 0), safe = op::masked_fill(s.distance, none, 1);
  const Tensor weight = op::masked_fill(op::unsqueeze(grad_out, -1) / safe * (p - 1), none, 0);
  const Tensor h = op::unsqueeze(grad, -2);
  const Tensor along = op::sum_dim(h * s.slope, Dims{-1}, true) * s.slope;
  if (p == 2) return weight * (h - along);
  const Tensor ratio = op::abs(s.difference / safe), flat = op::eq(ratio, 0);
  const Tensor bend = op::masked_fill(op::pow(op::masked_fill(ratio, flat, 1), p - 2), flat, 0);
  return weight * (h * bend - along);
}

}  // namespace

Tensor _cdist_grad_by_grad(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p) {
  return op::sum_dim(op::unsqueeze(grad, -2) * slopes_of(x1, x2, p).slope, Dims{-1});
}

Tensor _cdist_grad_by_x1(const Tensor& grad, const Tensor& grad_out, const Tensor& x1,
                         const Tensor& x2, double p) {
  return op::sum_dim(by_difference(grad, grad_out, x1, x2, p), Dims{-2});
}

Tensor _cdist_grad_by_x2(const Tensor& grad, const Tensor& grad_out, const Tensor& x1,
                         const Tensor& x2, double p) {
  return -op::sum_dim(by_difference(grad, grad_out, x1, x2, p), Dims{-3});
}

// ---- Euclidean distances by a matrix product: |a|^2 - 2 a.b + |b|^2

Tensor _euclidean_dist(const Tensor& x1, const Tensor& x2) {
  auto with_squares = [](const Tensor& x, bool first) {  // (-2 a, |a|^2, 1) or (b, 1, |b|^2)
    const Tensor squares = op::sum_dim(op::square(x), Dims{-1}, true), one = op::ones_like(squares);
    return first ? op::cat(std::vector<Tensor>{x * -2.0, squares, one}, -1)
                 : op::cat(std::vector<Tensor>{x, one, squares}, -1);
  };
  Tensor squares =
      op::matmul(with_squares(x1, true), op::transpose(with_squares(x2, false), -2, -1));
  return op::sqrt_(op::clamp_min_(squares, 0));
}

Tensor _euclidean_dist_grad(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                            const Tensor& distances) {
  const Tensor none = op::eq(distances, 0);
  const Tensor ratio = op::masked_fill(grad / op::masked_fill(distances, none, 1), none, 0);
  return x1 * op::sum_dim(ratio, Dims{-1}, true) - op::matmul(ratio, x2);
}

// ---- all pairs of one matrix

// Where the pairs stand among all (n, n).
static Tensor places_of_pairs(int64_t n, const Tensor& like) {
  const int64_t pairs = n * (n - 1) / 2;
  Tensor places =
      empty_tensor(Dims{pairs}, DType::Int64, like.is_meta() ? like.device() : Device{});
  if (!like.is_meta()) {
    int64_t* place = places.data_as<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) *place++ = i * n + j;
  }
  return like.is_cuda() ? op::_to_copy(places, DType::Int64, like.device()) : places;
}

Tensor pdist(const Tensor& self, double p) {
  if (self.dim() != 2) runtime_error("pdist only supports 2D tensors, got: ", self.dim(), "D");
  if (!is_floating(self.dtype()))
    runtime_error("pdist only supports floating-point dtypes, got ", self.dtype());
  if (!(p >= 0)) runtime_error("pdist only supports non-negative p values, got ", p);
  if (!self.is_cuda()) return op::_pdist(self, p);
  const int64_t n = self.size(0);
  return op::index_select(op::reshape(op::_cdist(self, self, p), Dims{n * n}), 0,
                          places_of_pairs(n, self));
}

// (..., n, width) to (..., pairs)
Tensor _pdist(const Tensor& self, double p) {
  const int64_t n = self.size(-2), width = self.size(-1), pairs = n * (n - 1) / 2;
  const DType dtype = compute_dtype(self.dtype());
  Dims shape(self.sizes().first(size_t(self.dim() - 2)));
  const int64_t count = checked_numel(shape);
  shape.push_back(pairs);
  Tensor out = empty_tensor(shape, dtype, self.device());
  if (!out.is_meta() && out.numel()) {
    const Tensor x = for_loops(self);
    // Some rows together, with all that come after the first of them: the loops prepare columns for
    // as many rows as there are. What stands before a row's own pairs is dropped.
    constexpr int64_t kRows = 8;
    auto of_rows = [&]<class T>(T, int64_t matrix, int64_t i, T* room) {
      const int64_t rows = std::min(kRows, n - 1 - i), columns = n - 1 - i;
      const T* a = x.data_as<T>() + (matrix * n + i) * width;
      if constexpr (sizeof(T) == 8)
        distance_loops().rows_f64(a, a + width, room, rows, columns, width, p);
      else distance_loops().rows_f32(a, a + width, room, rows, columns, width, p);
      T* to = out.data_as<T>() + matrix * pairs + i * (2 * n - i - 1) / 2;
      for (int64_t r = 0; r < rows; to += columns - r, ++r)
        std::copy(room + r * columns + r, room + (r + 1) * columns, to);
    };
    // Block i and block blocks - 1 - i together have about as many pairs as any other two.
    const int64_t blocks = (n - 1 + kRows - 1) / kRows, half = (blocks + 1) / 2;
    const int64_t work = std::max<int64_t>(1, kRows * n * width);
    auto run = [&]<class T>(T type) {
      parallel_for(0, count * half, std::max<int64_t>(1, kGrain / work), [&](int64_t b, int64_t e) {
        std::vector<T> room(size_t(kRows * n));
        for (int64_t k = b; k < e; ++k) {
          const int64_t matrix = k / half, i = k % half, other = blocks - 1 - i;
          of_rows(type, matrix, i * kRows, room.data());
          if (other != i) of_rows(type, matrix, other * kRows, room.data());
        }
      });
    };
    if (dtype == DType::Float64) run(double{});
    else run(float{});
  }
  return dtype == self.dtype() ? out : op::_to_copy(out, self.dtype());
}

// As the derivative of all distances of a matrix with itself, of which both triangles are known.
Tensor _pdist_grad(const Tensor& grad, const Tensor& self, double p, const Tensor& distances) {
  const int64_t n = self.size(-2);
  if (n < 2) return op::zeros_like(self);
  return op::_cdist_grad(op::_square_of_pairs(grad, n), self, self, p,
                         op::_square_of_pairs(distances, n));
}

// (..., pairs) in both triangles of (..., n, n), with zeros between them.
Tensor _square_of_pairs(const Tensor& self, int64_t n) {
  Dims shape(self.sizes());
  shape[shape.size() - 1] = n, shape.push_back(n);
  if (self.is_cuda()) {
    Dims flat(self.sizes());
    flat[flat.size() - 1] = n * n;
    const Tensor none = op::zeros(flat, self.dtype(), std::nullopt, self.device());
    const Tensor upper =
        op::reshape(op::index_copy(none, -1, places_of_pairs(n, self), self), shape);
    return upper + op::transpose(upper, -2, -1);
  }
  Tensor out = empty_tensor(shape, self.dtype(), self.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor pairs = op::contiguous(self);
  const int64_t count = out.numel() / (n * n), width = n * (n - 1) / 2;
  auto run = [&]<class T>(T) {
    // A block of rows: what lies right of the diagonal is there row by row, what lies left of it is
    // read down the columns, some of which a cache line holds side by side.
    constexpr int64_t kRows = 64 / int64_t(sizeof(T));
    const int64_t blocks = (n + kRows - 1) / kRows;
    const int64_t grain = std::max<int64_t>(1, kGrain / (n * kRows));
    parallel_for(0, count * blocks, grain, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        const T* from = pairs.data_as<T>() + k / blocks * width;
        T* to = out.data_as<T>() + k / blocks * n * n;
        const auto pair = [&](int64_t i, int64_t j) {
          return from + (i * (2 * n - i - 1) / 2 + j - i - 1);
        };
        const int64_t first = k % blocks * kRows, last = std::min(n, first + kRows);
        for (int64_t j = 0; j < last; ++j)
          for (int64_t i = std::max(first, j + 1); i < last; ++i) to[i * n + j] = *pair(j, i);
        for (int64_t i = first; i < last; ++i) {
          to[i * n + i] = T{};
          std::copy_n(pair(i, i + 1), n - i - 1, to + i * n + i + 1);
        }
      }
    });
  };
  switch (self.item_size()) {
    case 2: run(uint16_t{}); break;
    case 4: run(uint32_t{}); break;
    default: run(uint64_t{}); break;
  }
  return out;
}
Tensor _pairs_of_square(const Tensor& square) {
  const int64_t n = square.size(-1);
  Dims flat(square.sizes().first(size_t(square.dim() - 2)));
  flat.push_back(n * n);
  const Tensor both = square + op::transpose(square, -2, -1);
  return op::index_select(op::reshape(both, flat), -1, places_of_pairs(n, square));
}

}  // namespace facula::kernels
