// Complex numbers and their parts.
#include "cpu/index_loops.h"
#include "cpu/iterate.h"
#include "kernels/destination.h"
#include "kernels/make_view.h"
#include "op/elementwise.h"
#include "op/kernels/lazy.h"
#include "op/kernels/mathematics.h"
#include "op/ops/copying.h"
#include "op/ops/mathematics.h"
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

static void check_parts(const Tensor& first, const Tensor& second) {
  auto has_complex = [](const Tensor& t) {
    return t.dtype() == DType::Float32 || t.dtype() == DType::Float64;
  };
  if (!has_complex(first) || !has_complex(second))
    runtime_error("Expected both inputs to be Half, Float or Double tensors but got ",
                  legacy_dtype_name(first.dtype()), " and ", legacy_dtype_name(second.dtype()));
  if (first.dtype() != second.dtype())
    runtime_error("Expected object of scalar type ", legacy_dtype_name(first.dtype()),
                  " but got scalar type ", legacy_dtype_name(second.dtype()),
                  " for second argument; convert one of them");
}

void complex(const Tensor& real, const Tensor& imag, Rets& rets) {
  check_parts(real, imag);
  if (rets.destination == Destination::Out && rets.t[0].dtype() != to_complex(real.dtype()))
    runtime_error("Expected object of scalar type ", legacy_dtype_name(to_complex(real.dtype())),
                  " but got scalar type ", legacy_dtype_name(rets.t[0].dtype()),
                  " for argument 'out'");
  Dims shape = broadcast_shapes(real.sizes(), imag.sizes());
  const Tensor* in[] = {&real, &imag};
  const Device device = common_device(in, 2);
  if (rets.destination == Destination::New)
    rets.t[0] = empty_tensor(shape, result_strides(shape, in, 2), to_complex(real.dtype()), device);
  Tensor& out = exact_result(rets, 0, shape, to_complex(real.dtype()), device);
  Tensor re = real, im = imag;
  if (rets.destination != Destination::New) {
    if (has_internal_overlap(out.sizes(), out.strides())) overlap_error();
    re = apart_from(out, real);
    im = apart_from(out, imag);
  }
  const int64_t item = int64_t(re.item_size());
  if (out.is_cpu() && out.is_contiguous() && re.is_contiguous() && im.is_contiguous() &&
      same(re.sizes(), shape) && same(im.sizes(), shape) && (im.data() - re.data()) % item == 0) {
    const auto interleave = index_loops().interleave[item == 8 ? 3 : 2];
    parallel_for(0, out.numel(), kGrain, [&](int64_t b, int64_t e) {
      interleave(out.data() + 2 * b * item, re.data() + b * item, im.data() - re.data(), 2, e - b);
    });
    return;
  }
  op::copy_(part(out, 0), re);
  op::copy_(part(out, 1), im);
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  check_parts(abs, angle);
  return op::complex(abs * op::cos(angle), abs * op::sin(angle));
}

void conj_physical_(const Tensor& self, Rets&) {
  op::_conj_physical_(self);
}

Tensor conj_physical(const Tensor& self) {
  return self.is_complex() ? op::_conj_physical(self) : self;
}

}  // namespace facula::kernels
