#include "kernels/destination.h"

#include "core/type_names.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula {

Tensor& exact_result(Rets& rets, int i, IntSpan shape, DType dtype, Device device) {
  if (rets.t[i].defined() && rets.t[i].dtype() != dtype)
    runtime_error("Expected out tensor to have dtype ", cpp_type_name(dtype), ", but got ",
                  cpp_type_name(rets.t[i].dtype()), " instead: the result is ", dtype,
                  ", out= ", rets.t[i].dtype());
  prepare_result(rets, i, shape, dtype, device);
  return rets.t[i];
}

void prepare_samples(Rets& rets, IntSpan shape, DType dtype, Device device) {
  Tensor& out = rets.t[0];
  if (rets.destination == Destination::Out && out.device() == device &&
      can_cast(dtype, out.dtype()) && !same(out.sizes(), shape))
    resize_tensor(out, shape);
  prepare_result(rets, 0, shape, dtype, device);
}

Tensor& start_from(const Tensor& self, Rets& rets, CopyLayout layout) {
  Tensor& out = rets.t[0];
  if (rets.destination == Destination::InPlace) return out;
  GradGuard off(false);
  if (!out.defined()) {
    out = op::clone(
        self, layout == CopyLayout::Preserve ? MemoryFormat::Preserve : MemoryFormat::Contiguous);
    return out;
  }
  exact_result(rets, 0, self.sizes(), self.dtype(), self.device());
  op::copy_(out, self);
  return out;
}

Tensor apart_from(const Tensor& written, const Tensor& read) {
  if (written.is_meta() || read.is_meta() || !may_share_memory(written, read)) return read;
  if (non_overlapping_and_dense(written.sizes(), written.strides()) &&
      non_overlapping_and_dense(read.sizes(), read.strides()))
    aliasing_error();
  GradGuard off(false);
  return op::clone(read);
}

Tensor apart_or_copied(const Tensor& written, const Tensor& read) {
  if (!read.is_meta() && written.data() == read.data() && written.dtype() == read.dtype() &&
      same(written.sizes(), read.sizes()) && same(written.strides(), read.strides())) {
    GradGuard off(false);
    return op::clone(read);
  }
  return apart_from(written, read);
}

Dims preserved_strides(const Tensor& t) {
  if (non_overlapping_and_dense(t.sizes(), t.strides())) return Dims(t.strides());
  const Tensor* in[] = {&t};
  return result_strides(t.sizes(), in, 1);
}

Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) return t;
  GradGuard off(false);
  return op::clone(t, MemoryFormat::Contiguous);
}

Tensor dense_int64(const Tensor& t) {
  if (t.dtype() == DType::Int64) return dense(t);
  return op::_to_copy(t, DType::Int64, kNoDevice, MemoryFormat::Contiguous);
}

Tensor at_least_1d(const Tensor& t) {
  if (t.dim() > 0) return t;
  return alias_tensor(t, Dims{1}, Dims{1}, t.offset());
}

}  // namespace facula
