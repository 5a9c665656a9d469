// Joining, reversing and repeating.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/thread_pool.h"
#include "cpu/index_loops.h"
#include "cpu/iterate.h"
#include "cpu/stream.h"
#include "kernels/make_view.h"
#include "kernels/spatial.h"
#include "op/elementwise.h"
#include "op/hooks/indexing.h"
#include "op/kernels/joining.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static DType joined_dtype(TensorSpan tensors) {
  Promotion p;
  for (const Tensor& t : tensors) p.add(t);
  return p.result();
}

// PyTorch raises a TypeError here, where other operators raise a RuntimeError.
static void check_destination_dtype(const Rets& rets, DType dtype) {
  if (rets.destination != Destination::New && !can_cast(dtype, rets.t[0].dtype()))
    type_error("input types can't be cast to the desired output type ",
               legacy_dtype_name(rets.t[0].dtype()), ": the tensors promote to ", dtype);
}

// An empty 1-d tensor may be joined with anything, as in PyTorch.
static bool skipped(const Tensor& t) {
  return t.dim() == 1 && t.numel() == 0;
}

// Whether all lie on a device as one kernel wants them: contiguous, and of the result's dtype.
static bool joins_at_once(TensorSpan tensors, const Tensor& out) {
  if (!out.is_cuda() || !out.is_contiguous()) return false;
  return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
    return t.is_contiguous() && t.dtype() == out.dtype() && t.device() == out.device();
  });
}

// The distance of rows, each the dense elements of the dimensions from `dim` on; -1 if they are not
// dense, or not all as far apart.
static int64_t row_step(const Tensor& t, int64_t dim) {
  int64_t dense = 1, step = -1, next = 0;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    const int64_t size = t.sizes()[d], stride = t.strides()[d];
    if (size == 1) continue;
    if (d >= dim) {
      if (stride != dense) return -1;
      dense *= size;
    } else {
      if (step < 0) step = stride;
      else if (stride != next) return -1;
      next = stride * size;
    }
  }
  return step < 0 ? dense : step;
}

// Joins tensors of dense rows row by row: each gives `bytes` of every row of the result, which is
// written from its beginning to its end. False where the general copy is as good: short pieces of
// many rows, other dtypes or layouts.
static bool join_rows(TensorSpan tensors, const Tensor& out, int64_t dim, bool is_new_dim) {
  constexpr int64_t kShortest = 32, kFewRows = 8, kLong = 1024, kGrainBytes = 1 << 17;
  if (!out.is_cpu() || !out.is_contiguous() || out.numel() == 0) return false;
  struct Piece {
    const char* data;
    int64_t begin, bytes, step;
  };
  const int64_t item = int64_t(out.item_size());
  int64_t rows = 1, inner = item, row = 0;
  for (int64_t d = 0; d < dim; ++d) rows *= out.sizes()[d];
  for (int64_t d = dim + 1; d < out.dim(); ++d) inner *= out.sizes()[d];
  std::vector<Piece> pieces;
  pieces.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    if (t.dtype() != out.dtype() || !t.is_cpu() || may_share_memory(out, t)) return false;
    const int64_t bytes = is_new_dim ? inner : inner * t.sizes()[dim], step = row_step(t, dim);
    if ((bytes < kShortest && rows > kFewRows) || step < 0) return false;
    pieces.push_back({t.data(), row, bytes, step * item});
    row += bytes;
  }
  const bool streamed = exceeds_cache(2 * rows * row);
  const Piece *first = pieces.data(), *last = first + pieces.size();
  parallel_for(0, rows * row, kGrainBytes, [&, target = out.data()](int64_t b, int64_t e) {
    const Piece* piece = std::upper_bound(first, last, b % row,
                                          [](int64_t at, const Piece& p) { return at < p.begin; }) -
                         1;
    char *to = target + b, *end = target + e;
    int64_t done = b % row - piece->begin;  // of the piece in which the work begins
    for (int64_t r = b / row; to < end; done = 0) {
      const int64_t n = std::min<int64_t>(end - to, piece->bytes - done);
      const char* from = piece->data + r * piece->step + done;
      if (streamed && n >= kLong) stream_copy(to, from, n);
      else copy_bytes(to, from, n);
      to += n;
      if (++piece == last) piece = first, ++r;
    }
    if (streamed) finish_streams();
  });
  return true;
}

// Two dense tensors whose elements alternate in the result.
static bool join_pairs(TensorSpan tensors, const Tensor& out, int64_t dim) {
  const int64_t item = int64_t(out.item_size());
  if (tensors.size() != 2 || dim != out.dim() - 1 || !out.is_cpu() || !out.is_contiguous() ||
      item > 8)
    return false;
  for (const Tensor& t : tensors)
    if (t.dtype() != out.dtype() || !t.is_contiguous() || may_share_memory(out, t)) return false;
  const char* first = tensors[0].data();
  const int64_t apart = tensors[1].data() - first;
  if (apart % item) return false;
  const auto interleave = index_loops().interleave[std::countr_zero(uint64_t(item))];
  parallel_for(0, tensors[0].numel(), kGrain, [&](int64_t b, int64_t e) {
    interleave(out.data() + 2 * b * item, first + b * item, apart, 2, e - b);
  });
  return true;
}

// Images, or volumes, that all have their channels last, as the joined one then has.
static bool all_channels_last(TensorSpan tensors, const Tensor& lead) {
  if ((lead.dim() != 4 && lead.dim() != 5) || lead.is_contiguous()) return false;
  for (const Tensor& t : tensors)
    if (t.dim() == lead.dim() && !suggests_channels_last(t)) return false;
  return true;
}

void cat(TensorSpan tensors, int64_t dim, Rets& rets) {
  if (tensors.empty()) value_error("expected a non-empty list of Tensors");
  const Tensor* lead = nullptr;
  for (const Tensor& t : tensors) {
    if (t.dim() == 0)
      runtime_error("zero-dimensional tensor (at position ", &t - tensors.data(),
                    ") cannot be concatenated");
    if (!lead && !skipped(t)) lead = &t;
  }
  const bool all_skipped = !lead;  // then any dimension will do
  if (all_skipped) lead = &tensors[0];
  dim = all_skipped ? 0 : wrap_dim(dim, lead->dim());
  Dims shape(lead->sizes());
  shape[dim] = 0;
  const Tensor* devices[kMaxDims];
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    devices[0] = lead;
    devices[1] = &t;
    common_device(devices, 2);
    if (skipped(t) && lead->dim() != 1) continue;
    if (t.dim() != lead->dim())
      runtime_error("Tensors must have same number of dimensions: got ", lead->dim(), " and ",
                    t.dim(), " (shapes ", lead->sizes(), " and ", t.sizes(), " at position ", i,
                    ")");
    for (int64_t d = 0; d < t.dim(); ++d)
      if (d != dim && t.sizes()[d] != lead->sizes()[d])
        runtime_error("Sizes of tensors must match except in dimension ", dim, ". Expected size ",
                      lead->sizes()[d], " but got size ", t.sizes()[d], " for tensor number ", i,
                      " in the list (shapes ", lead->sizes(), " and ", t.sizes(), ").");
    shape[dim] += t.sizes()[dim];
  }
  DType dtype = joined_dtype(tensors);
  if (rets.destination != Destination::New)
    for (const Tensor& t : tensors)
      if (may_share_memory(rets.t[0], t)) aliasing_error();
  if (!rets.t[0].defined() && all_channels_last(tensors, *lead))
    rets.t[0] = empty_tensor(shape, spatial_strides(shape, true), dtype, lead->device());
  check_destination_dtype(rets, dtype);
  prepare_result(rets, 0, shape, dtype, lead->device());
  if (joins_at_once(tensors, rets.t[0])) {
    std::vector<Tensor> parts;
    for (const Tensor& t : tensors)
      if (t.numel()) parts.push_back(t);
    if (!parts.empty()) device_indexing.cat(parts, dim, rets.t[0]);
    return;
  }
  if (join_rows(tensors, rets.t[0], dim, false)) return;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t) && lead->dim() != 1) continue;
    int64_t n = t.sizes()[dim];
    op::copy_(op::slice(rets.t[0], dim, at, at + n, 1), t);
    at += n;
  }
}

// `shapes`: each tensor's rank and sizes, one after the other.
std::vector<Tensor> _cat_grad(const Tensor& grad, IntSpan shapes, int64_t dim) {
  std::vector<Tensor> out;
  dim = skipped(grad) ? 0 : wrap_dim(dim, grad.dim());
  int64_t at = 0;
  for (size_t i = 0; i < shapes.size(); i += 1 + size_t(shapes[i])) {
    const IntSpan shape = shapes.subspan(i + 1, size_t(shapes[i]));
    if (int64_t(shape.size()) != grad.dim()) {  // an empty tensor that was left out
      out.push_back(op::new_zeros(grad, shape));
      continue;
    }
    const int64_t n = shape[size_t(dim)];
    out.push_back(op::slice(grad, dim, at, at + n, 1));
    at += n;
  }
  return out;
}

void stack(TensorSpan tensors, int64_t dim, Rets& rets) {
  if (tensors.empty()) runtime_error("stack expects a non-empty TensorList");
  dim = wrap_dim(dim, tensors[0].dim() + 1);
  for (size_t i = 1; i < tensors.size(); ++i)
    if (!same(tensors[i].sizes(), tensors[0].sizes()))
      runtime_error("stack expects each tensor to be equal size, but got ", tensors[0].sizes(),
                    " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  for (const Tensor& t : tensors)
    if (t.device() != tensors[0].device()) device_error(tensors[0].device(), t.device());
  Dims shape(tensors[0].sizes());
  shape.insert(dim, int64_t(tensors.size()));
  const Tensor& first = tensors[0];
  if (rets.destination == Destination::New && dim < first.dim() &&
      all_channels_last(tensors, first)) {
    // Joined along the dimension, which is then split: images keep their channels last.
    Rets joined;
    cat(tensors, dim, joined);
    Dims strides(joined.t[0].strides());
    strides.insert(size_t(dim), strides[size_t(dim)] * first.size(dim));
    rets.t[0] = alias_tensor(joined.t[0], shape, strides, 0);
    return;
  }
  const DType dtype = joined_dtype(tensors);
  check_destination_dtype(rets, dtype);
  prepare_result(rets, 0, shape, dtype, tensors[0].device());
  if (joins_at_once(tensors, rets.t[0]) && rets.t[0].numel()) {
    std::vector<Tensor> parts;
    for (const Tensor& t : tensors) parts.push_back(op::unsqueeze(t, dim));
    return device_indexing.cat(parts, dim, rets.t[0]);
  }
  if (join_rows(tensors, rets.t[0], dim, true) || join_pairs(tensors, rets.t[0], dim)) return;
  for (size_t i = 0; i < tensors.size(); ++i)
    op::copy_(op::select(rets.t[0], dim, int64_t(i)), tensors[i]);
}

Tensor flip(const Tensor& self, IntSpan dims) {
  uint64_t mask = dims.empty() ? 0 : dim_mask(dims, self.dim());
  const Tensor* in[] = {&self};
  Tensor out =
      empty_tensor(self.sizes(), result_strides(self.sizes(), in, 1), self.dtype(), self.device());
  if (self.is_meta() || self.numel() == 0) return out;
  // The destination is written backwards: its pointer starts at the end with negative strides.
  Dims strides(out.strides());
  int64_t offset = out.offset();
  for (int64_t d = 0; d < self.dim(); ++d)
    if (mask >> d & 1) {
      offset += (self.sizes()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
  copy_strided(out, strides, offset, self);
  return out;
}

Tensor roll(const Tensor& self, IntSpan shifts, IntSpan dims) {
  if (shifts.empty()) runtime_error("`shifts` required");
  if (dims.empty()) {
    if (shifts.size() != 1)
      runtime_error("shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    return op::reshape(op::roll(op::reshape(self, Dims{-1}), shifts, Dims{0}), self.sizes());
  }
  if (shifts.size() != dims.size())
    runtime_error("shifts and dimensions must align. shifts: ", shifts.size(),
                  ", dims:", dims.size());
  if (self.dim() == 0)
    index_error("Dimension specified as ", dims[0], " but tensor has no dimensions");
  if (self.numel() == 0) return op::clone(self);
  Tensor out = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t n = self.size(dims[i]), s = ((shifts[i] % n) + n) % n;
    if (s == 0 && i + 1 < dims.size()) continue;
    out = op::cat(
        std::vector<Tensor>{op::narrow(out, dims[i], n - s, s), op::narrow(out, dims[i], 0, n - s)},
        dims[i]);
  }
  return out;
}

Tensor repeat(const Tensor& self, IntSpan repeats) {
  if (int64_t(repeats.size()) < self.dim())
    runtime_error(
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
        "tensor: ",
        repeats, " for a tensor of shape ", self.sizes());
  int64_t lead = int64_t(repeats.size()) - self.dim();
  Dims narrow_shape, wide, final_shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0)
      runtime_error("Trying to create tensor with negative dimension ", repeats[i]);
    int64_t n = int64_t(i) >= lead ? self.sizes()[i - lead] : 1;
    narrow_shape.push_back(1);
    narrow_shape.push_back(n);
    wide.push_back(repeats[i]);
    wide.push_back(n);
    final_shape.push_back(repeats[i] * n);
  }
  return op::reshape(
      op::clone(op::expand(op::reshape(self, narrow_shape), wide), MemoryFormat::Contiguous),
      final_shape);
}

Tensor tile(const Tensor& self, IntSpan dims) {
  Dims padded(dims);
  while (int64_t(padded.size()) < self.dim()) padded.insert(0, 1);
  return op::repeat(self, padded);
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t>) {
  if (repeats < 0) runtime_error("repeats can not be negative, got ", repeats);
  Tensor x = dim ? self : op::reshape(self, Dims{-1});
  int64_t d = dim ? wrap_dim(*dim, self.dim()) : 0;
  if (x.dim() == 0) x = op::reshape(x, Dims{1});
  Dims wide(x.sizes()), shape(x.sizes());
  wide.insert(d + 1, repeats);
  shape[d] *= repeats;
  return op::reshape(op::clone(op::expand(op::unsqueeze(x, d + 1), wide), MemoryFormat::Contiguous),
                     shape);
}

// Each place among the repeated ones belongs to the first position whose sum lies above it. The
// host reads one number: the sum of all, or -1 where a count is negative.
static Tensor device_repeats(const Tensor& repeats, std::optional<int64_t> output_size) {
  const Tensor times = op::_to_copy(repeats, DType::Int64, kNoDevice, MemoryFormat::Contiguous);
  if (times.numel() == 0) return empty_tensor(Dims{0}, repeats.dtype(), repeats.device());
  const Tensor sums = op::cumsum(times, 0);
  int64_t total = output_size.value_or(0);
  if (!output_size) {
    const Tensor last = op::select(sums, 0, -1);
    total = item_of(op::where(op::any(op::lt(times, 0)), -1, last)).to_int();
    if (total < 0) runtime_error("repeats can not be negative");
  }
  const Tensor places = op::arange(Scalar(total), DType::Int64, std::nullopt, repeats.device());
  return op::searchsorted(sums, places, repeats.dtype() == DType::Int32, true);
}

Tensor repeat_interleave_positions(const Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.dim() != 1)
    runtime_error("repeats must be 0-dim or 1-dim tensor, got shape ", repeats.sizes());
  if (repeats.dtype() != DType::Int64 && repeats.dtype() != DType::Int32)
    dtype_error(repeats.dtype(), "int32, int64");
  if (repeats.is_meta()) {
    if (!output_size)
      runtime_error("on a meta tensor needs output_size, since repeats has no values");
    return empty_tensor(Dims{*output_size}, repeats.dtype(), repeats.device());
  }
  GradGuard off(false);
  if (repeats.is_cuda()) return device_repeats(repeats, output_size);
  Tensor host = op::contiguous(op::_to_copy(repeats, DType::Int64));
  const int64_t* times = host.data_as<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < host.numel(); ++i) {
    if (times[i] < 0)
      runtime_error("repeats can not be negative, got ", times[i], " at position ", i);
    total += times[i];
  }
  if (output_size && *output_size != total)
    runtime_error("allocated size does not match required size: output_size is ", *output_size,
                  " but repeats sum to ", total);
  Tensor out = empty_tensor(Dims{total}, DType::Int64, Device{});
  int64_t* p = out.data_as<int64_t>();
  for (int64_t i = 0; i < host.numel(); ++i) p = std::fill_n(p, times[i], i);
  return repeats.dtype() == DType::Int64 ? out : op::_to_copy(out, repeats.dtype());
}

Tensor repeat_interleave_each(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                              std::optional<int64_t> output_size) {
  Tensor x = dim ? self : op::reshape(self, Dims{-1});
  if (x.dim() == 0) x = op::reshape(x, Dims{1});
  int64_t d = wrap_dim(dim.value_or(0), x.dim());
  Tensor times = repeats.dim() == 0 ? op::reshape(repeats, Dims{1}) : repeats;
  if (times.dim() == 1 && times.numel() == 1) times = op::expand(times, Dims{x.size(d)});
  if (times.dim() == 1 && times.numel() != x.size(d))
    runtime_error("repeats must have the same size as input along dim, but got repeats.size(0) = ",
                  times.numel(), " and input.size(", d, ") = ", x.size(d));
  return op::index_select(x, d, op::repeat_interleave_positions(times, output_size));
}

static Tensor at_least(const Tensor& t, int64_t rank) {
  if (t.dim() == 0) return op::reshape(t, Dims(size_t(rank), 1));
  return t.dim() < rank ? op::unsqueeze(t, 0) : t;
}

Tensor hstack(TensorSpan tensors) {
  if (tensors.empty()) runtime_error("hstack expects a non-empty TensorList");
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) list.push_back(at_least(t, 1));
  return op::cat(list, list[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(TensorSpan tensors) {
  if (tensors.empty()) runtime_error("vstack expects a non-empty TensorList");
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) list.push_back(at_least(t, 2));
  return op::cat(list, 0);
}

Tensor column_stack(TensorSpan tensors) {
  if (tensors.empty()) runtime_error("column_stack expects a non-empty TensorList");
  std::vector<Tensor> list;
  for (const Tensor& t : tensors)
    list.push_back(t.dim() < 2 ? op::reshape(t, Dims{t.numel(), 1}) : t);
  return op::cat(list, 1);
}

Tensor dstack(TensorSpan tensors) {
  if (tensors.empty()) runtime_error("dstack expects a non-empty TensorList");
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) {
    Tensor deep = at_least(t, 2);
    list.push_back(deep.dim() == 2 ? op::unsqueeze(deep, 2) : deep);
  }
  return op::cat(list, 2);
}

static Tensor triangle(const Tensor& self, int64_t diagonal, bool lower) {
  if (self.dim() < 2)
    runtime_error("input tensor must have at least 2 dimensions, got shape ", self.sizes());
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (self.is_meta() || self.numel() == 0) return out;
  if (self.is_cuda()) {
    device_indexing.triangle(self.is_contiguous() ? self : op::contiguous(self), diagonal, lower,
                             out);
    return out;
  }
  op::copy_(out, self);
  int64_t rows = self.size(-2), columns = self.size(-1), item = int64_t(self.item_size());
  for (int64_t b = 0; b < self.numel() / (rows * columns); ++b)
    for (int64_t r = 0; r < rows; ++r) {
      char* row = out.data() + (b * rows + r) * columns * item;
      int64_t edge = std::clamp<int64_t>(r + diagonal + (lower ? 1 : 0), 0, columns);
      if (lower) std::memset(row + edge * item, 0, size_t((columns - edge) * item));
      else std::memset(row, 0, size_t(edge * item));
    }
  return out;
}
Tensor tril(const Tensor& self, int64_t diagonal) {
  return triangle(self, diagonal, true);
}
Tensor triu(const Tensor& self, int64_t diagonal) {
  return triangle(self, diagonal, false);
}

}  // namespace facula::kernels
