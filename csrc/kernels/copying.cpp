// Copies, fills and conversions.
#include <cstring>

#include "autograd/node.h"
#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/stream.h"
#include "cpu/strided_copy.h"
#include "kernels/make_view.h"
#include "op/device_hooks.h"
#include "op/elementwise.h"
#include "op/hooks/memory.h"
#include "op/kernels/copying.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula {

// Copies between tensors of one shape: any strides, any dtypes, host memory.
void cpu_copy(const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) return;
  CastLoop cast = cast_loop(from.dtype(), to.dtype());
  if (to.dtype() == from.dtype() && to.is_contiguous() && from.is_contiguous() &&
      same(to.sizes(), from.sizes())) {
    int64_t bytes = to.numel() * int64_t(to.item_size());
    const bool streamed = exceeds_cache(2 * bytes);
    parallel_for(0, bytes, 4 * kGrain, [&](int64_t b, int64_t e) {
      if (!streamed) {
        copy_bytes(to.data() + b, from.data() + b, e - b);
        return;
      }
      stream_copy(to.data() + b, from.data() + b, e - b);
      finish_streams();
    });
    return;
  }
  Iteration it;
  it.begin(to.sizes());
  it.add(to.data(), to.sizes(), to.strides(), int64_t(to.item_size()));
  it.add(from.data(), from.sizes(), from.strides(), int64_t(from.item_size()));
  it.finish();
  copy_strided_operands(it, cast, int64_t(to.item_size()), int64_t(from.item_size()),
                        to.dtype() == from.dtype());
}

void copy_strided(const Tensor& to, IntSpan strides, int64_t offset, const Tensor& from) {
  if (to.is_cuda()) return device_hooks().copy(from, alias_tensor(to, to.sizes(), strides, offset));
  CastLoop cast = cast_loop(from.dtype(), to.dtype());
  Iteration it;
  it.begin(to.sizes());
  // Negative strides would confuse the sorting of dimensions, so no merging: order as given.
  int64_t item = int64_t(to.item_size());
  it.add(static_cast<char*>(to->storage->data) + offset * item, to.sizes(), strides, item);
  it.add(from.data(), from.sizes(), from.strides(), int64_t(from.item_size()));
  copy_strided_operands(it, cast, item, int64_t(from.item_size()), to.dtype() == from.dtype());
}

namespace kernels {

static Dims strides_like(const Tensor& self, MemoryFormat format) {
  if (format != MemoryFormat::Preserve && format != MemoryFormat::None)
    return strides_for(self.sizes(), format);
  if (non_overlapping_and_dense(self.sizes(), self.strides())) return Dims(self.strides());
  const Tensor* in[] = {&self};
  return result_strides(self.sizes(), in, 1);
}

static void copy_data(const Tensor& to, const Tensor& from) {
  if (to.is_meta() || from.is_meta()) {
    if (to.is_meta()) return;
    fail(ErrorKind::NotImplemented, "Cannot copy out of meta tensor; no data!");
  }
  if (to.is_cuda() || from.is_cuda()) device_hooks().copy(from, to);
  else cpu_copy(to, from);
}

Tensor clone(const Tensor& self, MemoryFormat format) {
  Tensor out = empty_tensor(self.sizes(), strides_like(self, format), self.dtype(), self.device());
  if (!self.is_meta()) copy_data(out, self);
  return out;
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  const bool preserves = format == MemoryFormat::Preserve;
  if (preserves || format == MemoryFormat::None) format = MemoryFormat::Contiguous;
  if (self.is_contiguous(format)) return self;
  if (preserves) runtime_error("preserve memory format is unsupported by the contiguous operator");
  return op::clone(self, format);
}

void copy_(const Tensor& self, Value from, bool non_blocking, Rets&) {
  Tensor number;
  if (!from.is_tensor()) number = weak_number_tensor(from.scalar());
  const Tensor& src = from.is_tensor() ? from.tensor() : number;
  if (self.is(src)) return;
  CopiesReturnEarly early(non_blocking);
  if (!same(self.sizes(), src.sizes()) && !is_expandable(src.sizes(), self.sizes())) {
    Dims shape = broadcast_shapes(self.sizes(), src.sizes());
    runtime_error("output with shape ", self.sizes(), " doesn't match the broadcast shape ",
                  IntSpan(shape), ": the source of shape ", src.sizes(),
                  " cannot be broadcast to the destination");
  }
  if (!self.is_contiguous() && has_internal_overlap(self.sizes(), self.strides())) overlap_error();
  if (!from.is_tensor() && self.is_cuda()) return device_hooks().fill(self, from.scalar());
  if (may_share_memory(self, src)) {
    if (self.data() == src.data() && same(self.sizes(), src.sizes()) &&
        same(self.strides(), src.strides()) && self.dtype() == src.dtype())
      return;
    if (!check_overlap(self, src)) return copy_data(self, src);
    Tensor before = empty_tensor(src.sizes(), src.dtype(), src.device());
    copy_data(before, src);
    copy_data(self, before);
    return;
  }
  copy_data(self, src);
}

Tensor _to_copy(const Tensor& self, DType dtype, Device device, MemoryFormat format) {
  if (device.type == DeviceType::None) device = self.device();
  if (dtype == DType::None) dtype = self.dtype();
  const Dims strides = strides_like(self, format);
  Tensor out;
  if (copies_return_early && device.is_cpu() && self.is_cuda() && self.numel()) {
    // Only page-locked memory can be written while the program goes on.
    checked_numel(self.sizes());
    Storage* storage =
        device_memory.pinned_storage(size_t(self.numel()) * facula::item_size(dtype));
    out = tensor_on_storage(storage, self.sizes(), strides, 0, dtype);
  } else {
    out = empty_tensor(self.sizes(), strides, dtype, device);
  }
  copy_data(out, self);
  return out;
}

void fill_(const Tensor& self, Value value, Rets&) {
  if (value.is_tensor() && value.tensor().dim() != 0)
    runtime_error("fill_ only supports 0-dimension value tensor but got tensor with ",
                  value.tensor().dim(), " dimensions.");
  if (!value.is_tensor()) value.scalar().check_fits(self.dtype());
  if (self.is_meta()) return;
  if (self.is_cuda()) {
    if (!value.is_tensor()) return device_hooks().fill(self, value.scalar());
    if (value.tensor().is_cuda()) return copy_data(self, value.tensor());
    return device_hooks().fill(self, item_of(value.tensor()));
  }
  Tensor number = value.is_tensor() ? value.tensor() : number_tensor(value.scalar(), self.dtype());
  if (number.is_cuda()) number = op::_to_copy(number, DType::None, Device{});
  cpu_copy(self, number);
}

void zero_(const Tensor& self, Rets& rets) {
  if (self.is_cpu() && self.is_contiguous()) {
    parallel_for(0, self.numel() * int64_t(self.item_size()), 4 * kGrain,
                 [&](int64_t b, int64_t e) { std::memset(self.data() + b, 0, size_t(e - b)); });
    return;
  }
  fill_(self, Value(0), rets);
}

}  // namespace kernels
}  // namespace facula
