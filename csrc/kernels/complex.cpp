// Complex numbers and their parts.
#include "kernels/make_view.h"
#include "op/elementwise.h"
#include "op/kernels/lazy.h"
#include "op/kernels/mathematics.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static Tensor part(const Tensor& self, int64_t which) {
  Dims strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  Tensor v = make_view(self, self.sizes(), strides, self.offset() * 2 + which);
  v->dtype = to_real(self.dtype());
  return v;
}

static Tensor whole(const Tensor& self) {
  return make_view(self, self.sizes(), self.strides(), self.offset());
}

Tensor _conj(const Tensor& self) {
  Tensor v = whole(self);
  v->keys ^= kKeyConj;
  return v;
}

Tensor _neg_view(const Tensor& self) {
  Tensor v = whole(self);
  v->keys ^= kKeyNeg;
  return v;
}

Tensor resolve_conj(const Tensor& self) {
  return self->keys & kKeyConj ? op::clone(self) : self;
}

Tensor resolve_neg(const Tensor& self) {
  return self->keys & kKeyNeg ? op::clone(self) : self;
}

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return whole(self);
  Tensor v = part(self, 0);
  v->keys &= uint8_t(~kKeyConj);
  return v;
}

Tensor imag(const Tensor& self) {
  if (!self.is_complex())
    runtime_error("imag is not implemented for tensors with non-complex dtypes, got ",
                  self.dtype());
  Tensor v = part(self, 1);
  if (v->keys & kKeyConj) v->keys ^= kKeyConj | kKeyNeg;
  return v;
}

Tensor view_as_real(const Tensor& self) {
  if (!self.is_complex())
    runtime_error("view_as_real is only supported for complex tensors, got ", self.dtype());
  if (self->keys & kKeyConj)
    runtime_error(
        "view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate "
        "tensor so you can view it as real, use self.resolve_conj(); however, be warned that the "
        "resulting tensor will NOT alias the original.");
  Dims sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Tensor v = make_view(self, sizes, strides, self.offset() * 2);
  v->dtype = to_real(self.dtype());
  return v;
}

Tensor view_as_complex(const Tensor& self) {
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64)
    runtime_error(
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
        "scalar type: ",
        legacy_dtype_name(self.dtype()));
  if (self.dim() == 0 || self.size(-1) != 2)
    runtime_error("Tensor must have a last dimension of size 2, got shape ", self.sizes());
  if (self.stride(-1) != 1) runtime_error("Tensor must have a last dimension with stride 1");
  if (self.offset() % 2) runtime_error("Tensor must have a storage_offset divisible by 2");
  Dims sizes(self.sizes()), strides(self.strides());
  sizes.resize(sizes.size() - 1);
  strides.resize(strides.size() - 1);
  for (int64_t& s : strides) {
    if (s % 2) runtime_error("Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  Tensor v = make_view(self, sizes, strides, self.offset() / 2);
  v->dtype = to_complex(self.dtype());
  return v;
}

Tensor complex(const Tensor& real, const Tensor& imag) {
  if (real.dtype() != imag.dtype() ||
      !(real.dtype() == DType::Float32 || real.dtype() == DType::Float64))
    runtime_error("Expected both inputs to be Half, Float or Double tensors of one dtype but got ",
                  legacy_dtype_name(real.dtype()), " and ", legacy_dtype_name(imag.dtype()));
  Dims shape = broadcast_shapes(real.sizes(), imag.sizes());
  const Tensor* in[] = {&real, &imag};
  Tensor out =
      empty_tensor(shape, result_strides(shape, in, 2), to_complex(real.dtype()), real.device());
  op::copy_(part(out, 0), real);
  op::copy_(part(out, 1), imag);
  return out;
}

}  // namespace facula::kernels
