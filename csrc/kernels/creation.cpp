// New tensors: fills, and tensors like others. Sequences are in sequences.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "cpu/index_loops.h"
#include "kernels/new_tensor.h"
#include "op/elementwise.h"
#include "op/hooks/memory.h"
#include "op/kernels/creation.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/views.h"
#include "op/settings.h"
#include "op/tensor_operators.h"

namespace facula {

static thread_local Device t_default_device{DeviceType::CPU, -1};

Device default_device() {
  return with_index(t_default_device);
}
void set_default_device(Device d) {
  t_default_device = d;
}

namespace kernels {

// As empty_tensor, in page-locked memory where that is asked for.
static Tensor allocated(IntSpan size, IntSpan strides, const Like& like, std::optional<bool> pin) {
  if (!pin.value_or(false)) return empty_tensor(size, strides, like.dtype, like.device);
  if (!like.device.is_cpu())
    runtime_error("Only dense CPU tensors can be pinned, not a tensor on ", like.device);
  const Tensor shape = empty_tensor(size, strides, like.dtype, Device{DeviceType::Meta, -1});
  return tensor_on_storage(device_memory.pinned_storage(shape->storage->nbytes), size, strides, 0,
                           like.dtype);
}
static Tensor allocated(IntSpan size, const Like& like, std::optional<bool> pin) {
  if (!pin.value_or(false)) return empty_tensor(size, like.dtype, like.device);
  return allocated(size, contiguous_strides(size), like, pin);
}

// Under use_deterministic_algorithms, memory that is read before it is written reads the same.
static Tensor unwritten(Tensor t) {
  if (!settings.deterministic || !settings.fill_uninitialized_memory || t.is_meta()) return t;
  GradGuard off(false);
  const DType d = t.dtype();
  if (is_floating(d) || is_complex(d)) op::fill_(t, Scalar(NAN));
  else
    op::fill_(t, dispatch_dtype(d, [](auto tag) {
                using T = typename decltype(tag)::type;
                if constexpr (std::is_integral_v<T>)
                  return Scalar(uint64_t(std::numeric_limits<T>::max()));
                else return Scalar(0);
              }));
  return t;
}

static Tensor filled(Tensor t, const Scalar& value) {
  GradGuard off(false);
  if (value.equals(0) && !std::signbit(value.to_double())) op::zero_(t);
  else op::fill_(t, value);
  t->storage->version = 0;  // filling new memory is no write that anybody could have missed
  return t;
}

Tensor empty(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad,
             MemoryFormat format) {
  Like like(dtype, device);
  if (format == MemoryFormat::Preserve)
    runtime_error("unsupported memory format Preserve: there is no tensor whose format to keep");
  if (format == MemoryFormat::None || format == MemoryFormat::Contiguous)
    return finish(unwritten(allocated(size, like, pin)), grad);
  checked_numel(size);
  return finish(unwritten(allocated(size, strides_for(size, format), like, pin)), grad);
}

Tensor empty_strided(IntSpan size, IntSpan stride, DType dtype, Device device) {
  Like like(dtype, device);
  if (size.size() != stride.size())
    runtime_error("dimensionality of sizes (", size.size(),
                  ") must match dimensionality of strides (", stride.size(), ")");
  for (int64_t s : stride)
    if (s < 0) runtime_error("empty_strided: strides must not be negative, got ", stride);
  return unwritten(empty_tensor(size, stride, like.dtype, like.device));
}
Tensor empty_strided_public(IntSpan size, IntSpan stride, DType dtype, Value, Device device,
                            std::optional<bool>, bool grad) {
  return finish(empty_strided(size, stride, dtype, device), grad);
}

Tensor zeros(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad) {
  Like like(dtype, device);
  return finish(filled(allocated(size, like, pin), Scalar(0)), grad);
}
Tensor ones(IntSpan size, DType dtype, Value, Device device, std::optional<bool> pin, bool grad) {
  Like like(dtype, device);
  return finish(filled(allocated(size, like, pin), Scalar(1)), grad);
}

static DType natural_dtype(const Scalar& s) {
  return s.is_bool()      ? DType::Bool
         : s.is_float()   ? default_dtype()
         : s.is_complex() ? default_complex_dtype()
                          : DType::Int64;
}

Tensor full(IntSpan size, const Scalar& value, DType dtype, Value, Device device,
            std::optional<bool> pin, bool grad) {
  Like like(dtype == DType::None ? natural_dtype(value) : dtype, device);
  return finish(filled(allocated(size, like, pin), value), grad);
}

Tensor eye_m(int64_t n, int64_t m, DType dtype, Value, Device device, std::optional<bool> pin,
             bool grad) {
  if (n < 0) runtime_error("n must be greater or equal to 0, got ", n);
  if (m < 0) runtime_error("m must be greater or equal to 0, got ", m);
  Like like(dtype, device);
  Tensor t = filled(allocated(Dims{n, m}, like, pin), Scalar(0));
  GradGuard off(false);
  if (n && m) op::fill_(op::diagonal(t), Scalar(1));
  return finish(t, grad);
}
Tensor eye(int64_t n, DType dtype, Value layout, Device device, std::optional<bool> pin,
           bool grad) {
  return eye_m(n, n, dtype, layout, device, pin, grad);
}

Tensor scalar_tensor(const Scalar& s, DType dtype, Value layout, Device device,
                     std::optional<bool> pin, bool grad) {
  return full({}, s, dtype == DType::None ? default_dtype() : dtype, layout, device, pin, grad);
}

static Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, bool lower,
                               DType dtype, Device device) {
  if (rows < 0) runtime_error("row must be non-negative, got ", rows);
  if (columns < 0) runtime_error("col must be non-negative, got ", columns);
  Like like(dtype == DType::None ? DType::Int64 : dtype, device);
  if (like.dtype != DType::Int64 && like.dtype != DType::Int32)
    dtype_error(like.dtype, "int32, int64");
  // Row i has the columns from begin(i) up to end(i); rows outside of [first, last) have none.
  using Wide = __int128;  // the numbers may be any
  const auto place = [&](Wide i) { return int64_t(std::clamp<Wide>(i + offset, 0, columns)); };
  const auto begin = [&](int64_t i) { return lower ? 0 : place(i); };
  const auto end = [&](int64_t i) { return lower ? place(Wide(i) + 1) : columns; };
  const auto row_at = [&](Wide i) { return int64_t(std::clamp<Wide>(i, 0, rows)); };
  const int64_t first = lower ? row_at(-Wide(offset)) : 0;
  const int64_t last = !columns ? first : lower ? rows : row_at(Wide(columns) - offset);
  Wide total = 0;
  if (first < last) {  // counts differ by one from row to row, except those of the largest
    const int64_t a = end(first) - begin(first), b = end(last - 1) - begin(last - 1);
    const Wide least = std::min(a, b), most = std::max(a, b), steps = most - least;
    total = steps * (least + most - 1) / 2 + (Wide(last) - first - steps) * most;
  }
  if (total > std::numeric_limits<int64_t>::max() / 32)
    runtime_error("the indices of a triangle of ", rows, " by ", columns, " are too many");
  const int64_t n = int64_t(total);
  if (like.device.is_meta()) return empty_tensor(Dims{2, n}, like.dtype, like.device);
  const Tensor t = empty_tensor(Dims{2, n}, DType::Int64, Device{});
  int64_t *row = t.data_as<int64_t>(), *column = row + n;
  for (int64_t i = first; i < last; ++i) {
    const int64_t count = end(i) - begin(i);
    row = std::fill_n(row, count, i);
    index_loops().count_up(column, count, begin(i), 1);
    column += count;
  }
  return like.dtype == DType::Int64 && like.device.is_cpu()
             ? t
             : op::_to_copy(t, like.dtype, like.device);
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Value, Device device,
                    std::optional<bool>, bool) {
  return triangle_indices(row, col, offset, true, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, DType dtype, Value, Device device,
                    std::optional<bool>, bool) {
  return triangle_indices(row, col, offset, false, dtype, device);
}

// ---- like another tensor

Tensor empty_like(const Tensor& self, DType dtype, Value, Device device, std::optional<bool> pin,
                  bool grad, MemoryFormat format) {
  Like like(self, dtype, device);
  if (format != MemoryFormat::None && format != MemoryFormat::Preserve)
    return finish(unwritten(allocated(self.sizes(), strides_for(self.sizes(), format), like, pin)),
                  grad);
  const Tensor* in[] = {&self};
  const bool dense =
      self.is_contiguous() || non_overlapping_and_dense(self.sizes(), self.strides());
  const Dims strides = dense ? Dims(self.strides()) : result_strides(self.sizes(), in, 1);
  return finish(unwritten(allocated(self.sizes(), strides, like, pin)), grad);
}
Tensor full_like(const Tensor& self, const Scalar& value, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad, MemoryFormat format) {
  return finish(filled(empty_like(self, dtype, layout, device, pin, false, format), value), grad);
}
Tensor zeros_like(const Tensor& self, DType dtype, Value layout, Device device,
                  std::optional<bool> pin, bool grad, MemoryFormat format) {
  return full_like(self, Scalar(0), dtype, layout, device, pin, grad, format);
}
Tensor ones_like(const Tensor& self, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad, MemoryFormat format) {
  return full_like(self, Scalar(1), dtype, layout, device, pin, grad, format);
}

Tensor new_empty(const Tensor& self, IntSpan size, DType dtype, Value, Device device,
                 std::optional<bool> pin, bool grad) {
  Like like(self, dtype, device);
  return finish(unwritten(allocated(size, like, pin)), grad);
}
Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride, DType dtype, Value,
                         Device device, std::optional<bool>, bool grad) {
  Like like(self, dtype, device);
  return finish(empty_strided(size, stride, like.dtype, like.device), grad);
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& value, DType dtype, Value,
                Device device, std::optional<bool> pin, bool grad) {
  Like like(self, dtype, device);
  return finish(filled(allocated(size, like, pin), value), grad);
}
Tensor new_zeros(const Tensor& self, IntSpan size, DType dtype, Value layout, Device device,
                 std::optional<bool> pin, bool grad) {
  return new_full(self, size, Scalar(0), dtype, layout, device, pin, grad);
}
Tensor new_ones(const Tensor& self, IntSpan size, DType dtype, Value layout, Device device,
                std::optional<bool> pin, bool grad) {
  return new_full(self, size, Scalar(1), dtype, layout, device, pin, grad);
}

}  // namespace kernels
}  // namespace facula
