// Lookups in a table of vectors, and the gradient of the table.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/sparse.h"
#include "core/thread_pool.h"
#include "cpu/cast.h"
#include "cpu/index_points.h"
#include "cpu/line_loops.h"
#include "kernels/destination.h"
#include "kernels/embedding.h"
#include "op/elementwise.h"
#include "op/hooks/indexing.h"
#include "op/kernels/embedding.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/embedding.h"
#include "op/ops/indexing.h"
#include "op/ops/linalg_norms.h"
#include "op/ops/sparse.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

void check_table(const Tensor& weight) {
  if (weight.dim() != 2) runtime_error("'weight' must be 2-D, got shape ", weight.sizes());
}

void check_lookups(const Tensor& indices, const char* name) {
  if (indices.dtype() != DType::Int64 && indices.dtype() != DType::Int32)
    runtime_error("Expected tensor for argument #1 '", name,
                  "' to have one of the following scalar types: Long, Int; but got facula.",
                  legacy_dtype_name(indices.dtype()), "Tensor instead. Convert it with .long()");
}

Tensor checked_lookups(const Tensor& indices, int64_t rows, ErrorKind kind) {
  const Tensor dense_indices = dense_int64(indices);
  if (indices.is_cuda()) return dense_indices;  // the kernels look at them
  const int64_t* at = dense_indices.data_as<int64_t>();
  const int64_t bad = find_bad_index(at, dense_indices.numel(), rows, false);
  if (bad >= 0)
    fail(kind, "index out of range in self: element ", bad, " of the indices is ", at[bad],
         ", but the table has ", rows, " rows (0 to ", rows - 1, " are accepted)");
  return dense_indices;
}

Tensor dense_rows(const Tensor& table) {
  return table.size(1) <= 1 || table.stride(1) == 1 ? table : dense(table);
}

namespace {

constexpr int64_t kBytesPerPart = 1 << 17;  // copied before another thread pays

int64_t row_grain(int64_t bytes) {
  return std::max<int64_t>(1, kBytesPerPart / std::max<int64_t>(1, bytes));
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  check_table(weight);
  check_lookups(indices, "indices");
  if (weight.device() != indices.device()) device_error(weight.device(), indices.device());
  Dims shape(indices.sizes());
  shape.push_back(weight.size(1));
  if (weight.is_meta()) return empty_tensor(shape, weight.dtype(), weight.device());
  const Tensor lookups = checked_lookups(indices, weight.size(0));
  if (checked_numel(shape) == 0) return empty_tensor(shape, weight.dtype(), weight.device());
  const Tensor table = dense_rows(weight);
  if (weight.is_cuda()) {
    Tensor out = empty_tensor(shape, weight.dtype(), weight.device());
    auto flat = [](const Tensor& t, Dims sizes, Dims strides) {
      return alias_tensor(t, sizes, strides, t.offset());
    };
    const int64_t n = lookups.numel(), width = weight.size(1);
    device_indexing.read(
        slices_along("embedding", table, 0, flat(lookups, Dims{n}, Dims{1}), false),
        flat(out, Dims{n, width}, Dims{width, 1}));
    return out;
  }
  Tensor out = op::index_select(table, 0, op::reshape(lookups, Dims{lookups.numel()}));
  out->set_geometry(shape, contiguous_strides(shape));
  return out;
}

// ---- the gradient

namespace {

// For each row of a table the lookups that named it, in their order.
class LookupChains {
 public:
  LookupChains(const int64_t* at, int64_t count, int64_t rows, int64_t skipped)
      : first_(size_t(rows), -1), next_(size_t(count)) {
    for (int64_t i = count; i-- > 0;) {
      if (at[i] == skipped) continue;
      next_[size_t(i)] = std::exchange(first_[size_t(at[i])], i);
    }
  }
  int64_t first(int64_t row) const { return first_[size_t(row)]; }  // -1: none
  int64_t next(int64_t lookup) const { return next_[size_t(lookup)]; }

 private:
  std::vector<int64_t> first_, next_;
};

// Half precision is summed in float and rounded once.
template <class T>
using SumOf = std::conditional_t<std::is_convertible_v<T, float> && sizeof(T) <= 2, float, T>;

// Columns [0, width) of rows that are `stride` apart.
template <class T>
void sum_rows(const T* __restrict grad, T* __restrict out, int64_t stride, int64_t width,
              int64_t begin, int64_t end, const LookupChains& chains, bool by_frequency) {
  using A = SumOf<T>;
  std::vector<A> wide(std::is_same_v<A, T> ? 0 : size_t(width));
  for (int64_t row = begin; row < end; ++row) {
    T* to = out + row * stride;
    int64_t lookup = chains.first(row);
    if (lookup < 0) {
      std::memset(static_cast<void*>(to), 0, size_t(width) * sizeof(T));
      continue;
    }
    const T* from = grad + lookup * stride;
    int64_t count = 1;
    if constexpr (std::is_same_v<A, T>) {
      std::memcpy(static_cast<void*>(to), from, size_t(width) * sizeof(T));
      // Some in one pass over the sums, in the same order.
      constexpr int kSome = 4;
      for (int some = kSome; some == kSome;) {
        const T* next[kSome];
        for (some = 0; some < kSome && (lookup = chains.next(lookup)) >= 0; ++some)
          next[some] = grad + lookup * stride;
        count += some;
        if (some == kSome) {
          const T *a = next[0], *b = next[1], *c = next[2], *d = next[3];
          for (int64_t j = 0; j < width; ++j) to[j] = T(T(T(T(to[j] + a[j]) + b[j]) + c[j]) + d[j]);
          continue;
        }
        for (int k = 0; k < some; ++k)
          for (int64_t j = 0; j < width; ++j) to[j] = T(to[j] + next[k][j]);
      }
      if (by_frequency && count > 1)
        for (int64_t j = 0; j < width; ++j) to[j] = T(to[j] / T(float(count)));
    } else {
      constexpr DType half = DTypeOf<T>::value;
      const auto add_dense = line_loops().add_scaled[int(half)];
      std::fill(wide.begin(), wide.end(), A(0));
      for (count = 0; lookup >= 0; lookup = chains.next(lookup), ++count) {
        from = grad + lookup * stride;
        if (add_dense) add_dense(wide.data(), reinterpret_cast<const char*>(from), width, 1.0f);
        else
          for (int64_t j = 0; j < width; ++j) wide[size_t(j)] += A(from[j]);
      }
      if (by_frequency)
        for (A& sum : wide) sum *= A(1) / A(count);
      cast_loop(DType::Float32, half)(reinterpret_cast<char*>(to), sizeof(T),
                                      reinterpret_cast<const char*>(wide.data()), sizeof(A), width);
    }
  }
}

}  // namespace

Tensor _embedding_gradient(const Tensor& grad_output, const Tensor& indices, IntSpan weight_size,
                           int64_t padding_idx, bool scale_grad_by_freq) {
  Tensor out = empty_tensor(weight_size, grad_output.dtype(), grad_output.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const int64_t rows = weight_size[0], width = weight_size[1];
  const Tensor lookups = checked_lookups(indices, rows), grad = dense(grad_output);
  if (out.is_cuda()) {
    device_indexing.sum_rows(grad, lookups, padding_idx, scale_grad_by_freq, out);
    return out;
  }
  const LookupChains chains(lookups.data_as<int64_t>(), lookups.numel(), rows, padding_idx);
  dispatch_dtype(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      const T* from = grad.data_as<T>();
      // Few rows that many lookups name: threads share their columns.
      constexpr int64_t kColumns = 64;
      if (rows < 2 * num_threads() && width > kColumns) {
        const int64_t per_column = lookups.numel() * int64_t(sizeof(T));
        parallel_for(0, (width + kColumns - 1) / kColumns, row_grain(per_column * kColumns),
                     [&](int64_t b, int64_t e) {
                       const int64_t first = b * kColumns, end = std::min(e * kColumns, width);
                       sum_rows(from + first, out.data_as<T>() + first, width, end - first, 0, rows,
                                chains, scale_grad_by_freq);
                     });
        return;
      }
      parallel_for(0, rows, row_grain(width * int64_t(sizeof(T))), [&](int64_t b, int64_t e) {
        sum_rows(from, out.data_as<T>(), width, width, b, e, chains, scale_grad_by_freq);
      });
    }
  });
  return out;
}

Tensor _embedding_gradient_back(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                bool scale_grad_by_freq) {
  Tensor out = op::embedding(grad, indices);
  if (padding_idx >= 0)
    out = op::masked_fill(out, op::unsqueeze(op::eq(indices, padding_idx), -1), 0);
  if (scale_grad_by_freq) {
    const Tensor flat = op::reshape(indices, Dims{indices.numel()});
    const Tensor ones = op::new_ones(grad, flat.sizes());
    const Tensor counts = op::index_add(op::new_zeros(grad, Dims{grad.size(0)}), 0, flat, ones);
    out = out / op::unsqueeze(op::reshape(op::index_select(counts, 0, flat), indices.sizes()), -1);
  }
  return out;
}

// ---- as nn.functional has it

int64_t wrapped_padding(std::optional<int64_t> padding_idx, int64_t rows, ErrorKind kind) {
  if (!padding_idx) return -1;
  if (*padding_idx >= rows || *padding_idx < -rows)
    fail(kind, "padding_idx must be within the ", rows, " rows of the table, got ", *padding_idx);
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

void renorm_rows(const Tensor& weight, const Tensor& indices, std::optional<double> max_norm,
                 double norm_type) {
  if (!max_norm) return;
  GradGuard off(false);
  op::embedding_renorm_(weight, indices, *max_norm, norm_type);
}

Tensor _embedding_table_gradient(const Tensor& grad_output, const Tensor& indices,
                                 IntSpan weight_size, int64_t padding_idx, bool scale_grad_by_freq,
                                 bool sparse) {
  if (!sparse)
    return op::_embedding_gradient(grad_output, indices, weight_size, padding_idx,
                                   scale_grad_by_freq);
  if (scale_grad_by_freq)
    runtime_error("scale_grad_by_freq is not supported with sparse gradients");
  Tensor rows = op::reshape(indices, Dims{-1}),
         values = op::reshape(grad_output, Dims{-1, weight_size[1]});
  if (padding_idx >= 0) {
    const Tensor kept = op::select(op::nonzero(op::ne(rows, padding_idx)), 1, 0);
    rows = op::index_select(rows, 0, kept);
    values = op::index_select(values, 0, kept);
  }
  return op::_sparse_make(op::unsqueeze(rows, 0), Tensor(), values, weight_size,
                          int64_t(SparseLayout::Coo), false);
}

Tensor embedding_input(const Tensor& input, const Tensor& weight,
                       std::optional<int64_t> padding_idx, std::optional<double> max_norm,
                       double norm_type, bool scale_grad_by_freq, bool sparse) {
  check_table(weight);
  check_lookups(input, "indices");
  const int64_t padding = wrapped_padding(padding_idx, weight.size(0));
  renorm_rows(weight, input, max_norm, norm_type);
  return op::embedding(weight, input, padding, scale_grad_by_freq, sparse);
}

void embedding_renorm_(const Tensor& self, const Tensor& indices, double max_norm, double norm_type,
                       Rets&) {
  check_table(self);
  check_lookups(indices, "indices");
  if (!is_floating(self.dtype())) dtype_error(self.dtype(), "floating-point dtypes");
  if (self.is_meta()) return;
  if (self.is_cuda()) {
    GradGuard off(false);
    const Tensor rows =
        std::get<0>(op::_unique(op::reshape(dense_int64(indices), Dims{-1}), true, false, false));
    const Tensor found = op::_to_copy(op::index_select(self, 0, rows), DType::Float64);
    const Tensor norm =
        op::linalg_vector_norm(found, Scalar(norm_type), std::optional<IntSpan>(Dims{1}), true);
    const Tensor scale = op::where(op::gt(norm, max_norm), max_norm / (norm + 1e-7), 1);
    op::index_copy_(self, 0, rows, op::_to_copy(found * scale, self.dtype()));
    return;
  }
  const Tensor lookups = checked_lookups(indices, self.size(0));
  std::vector<int64_t> rows(lookups.data_as<int64_t>(),
                            lookups.data_as<int64_t>() + lookups.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const int64_t width = self.size(1), step = self.stride(1);
  dispatch_dtype(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T> && !std::is_integral_v<T>) {
      for (const int64_t row : rows) {
        T* at = self.data_as<T>() + row * self.stride(0);
        double norm = 0;
        for (int64_t j = 0; j < width; ++j) {
          const double x = std::fabs(double(at[j * step]));
          if (norm_type == 2) norm += x * x;
          else if (norm_type == 1) norm += x;
          else if (std::isinf(norm_type)) norm = std::max(norm, x);
          else norm += std::pow(x, norm_type);
        }
        if (norm_type == 2) norm = std::sqrt(norm);
        else if (norm_type != 1 && !std::isinf(norm_type)) norm = std::pow(norm, 1 / norm_type);
        if (!(norm > max_norm)) continue;
        const double scale = max_norm / (norm + 1e-7);
        for (int64_t j = 0; j < width; ++j) at[j * step] = convert<T>(double(at[j * step]) * scale);
      }
    }
  });
}

}  // namespace facula::kernels
