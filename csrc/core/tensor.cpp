#include "core/tensor.h"

#include <new>

#include "core/device_read.h"
#include "core/host_allocator.h"
#include "core/sparse.h"

namespace facula {

void (*release_python_object)(void*) = nullptr;
thread_local constinit uint32_t current_level = 0;

namespace {

uint8_t device_keys(Device d) {
  return d.is_cpu() ? 0 : d.is_cuda() ? kKeyCuda : kKeyMeta;
}

TensorImpl* new_impl(Storage* storage, DType dtype) {
  auto* p = new (host_allocate(sizeof(TensorImpl))) TensorImpl;
  p->dtype = dtype;
  p->device = storage->device;
  p->keys = device_keys(storage->device);
  p->storage = storage;
  p->born = current_level;
  return p;
}

// Bytes from the first to one past the last element.
int64_t span_of(IntSpan sizes, IntSpan strides) {
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    span += (sizes[i] - 1) * strides[i];
  }
  return span;
}

}  // namespace

TensorImpl::~TensorImpl() {
  if (autograd) release_autograd(autograd);
  if (base) Tensor::adopt(base);
  if (wrapper) release_wrapper(wrapper);
  storage->unref();
}

void TensorImpl::refresh_contiguous() {
  int64_t expect = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1) {
      contiguous &= strides[i] == expect;
      expect *= sizes[i];
    }
  }
  contiguous |= numel == 0;
  flags = uint8_t((flags & ~kContiguous) | (contiguous ? kContiguous : 0));
}

void TensorImpl::set_geometry(IntSpan new_sizes, IntSpan new_strides) {
  sizes.assign(new_sizes);
  strides.assign(new_strides);
  numel = 1;
  for (int64_t s : new_sizes) numel *= s;
  refresh_contiguous();
}

void Tensor::drop(TensorImpl* p) noexcept {
  if (p->refs.load(std::memory_order_acquire) != 1 &&
      p->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (p->flags & kOwnsPython) {
    // The Python object holds the tensor's attributes and dies with it; it no longer points here.
    p->flags &= uint8_t(~kOwnsPython);
    release_python_object(std::exchange(p->python, nullptr));
  }
  p->~TensorImpl();
  host_free(p, sizeof(TensorImpl));
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
    if (sizes().size() != rank) return false;
    if (numel() == 0) return true;
    Dims want = strides_for(sizes(), format);
    for (size_t i = 0; i < rank; ++i)
      if (p_->sizes[i] != 1 && p_->strides[i] != want[i]) return false;
    return true;
  }
  return is_contiguous();
}

void Tensor::bump_version(const char* writer) const {
  if (p_->flags & (kInference | kUntracked)) return;
  Storage* s = p_->storage;
  s->version.fetch_add(1, std::memory_order_relaxed);
  if (s->saved_for_backward && capture_location && track_locations) {
    s->last_write = capture_location();
    s->last_writer = writer;
  }
}

Tensor empty_tensor(IntSpan sizes, DType dtype, Device device) {
  int64_t n = checked_numel(sizes);
  auto* p = new_impl(allocate_storage(size_t(n) * item_size(dtype), device), dtype);
  p->numel = n;
  size_t d = sizes.size();
  p->sizes.assign(sizes);
  p->strides.resize(d);
  int64_t s = 1;
  for (size_t i = d; i-- > 0;) {
    p->strides[i] = s;
    s *= sizes[i] ? sizes[i] : 1;
  }
  return Tensor::adopt(p);
}

Tensor empty_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  checked_numel(sizes);
  size_t bytes = size_t(span_of(sizes, strides)) * item_size(dtype);
  auto* p = new_impl(allocate_storage(bytes, device), dtype);
  p->set_geometry(sizes, strides);
  return Tensor::adopt(p);
}

Tensor tensor_on_storage(Storage* storage, IntSpan sizes, IntSpan strides, int64_t offset,
                         DType dtype) {
  auto* p = new_impl(storage, dtype);
  p->offset = offset;
  p->set_geometry(sizes, strides);
  return Tensor::adopt(p);
}

Tensor alias_tensor(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset) {
  t->storage->retain();
  auto* p = new_impl(t->storage, t.dtype());
  p->device = t->device;
  p->offset = offset;
  p->set_geometry(sizes, strides);
  p->flags |= t->flags & (kWeak | kInference | kUntracked);
  p->keys |= t->keys & (kLazyKeys | kKeySparse);
  return Tensor::adopt(p);
}

Tensor alias_tensor(const Tensor& t) {
  Tensor alias = alias_tensor(t, t.sizes(), t.strides(), t.offset());
  if (t->wrapper) {
    retain_wrapper(t->wrapper);
    alias->wrapper = t->wrapper;
    alias->keys |= kKeyWrapped;
  }
  return alias;
}

Tensor number_tensor(const Scalar& value, DType dtype) {
  Tensor t = empty_tensor({}, dtype, Device{});
  value.store(dtype, t.data());
  return t;
}

Tensor weak_number_tensor(const Scalar& value) {
  Tensor t = number_tensor(value, value.dtype());
  t->flags |= kWeak;
  return t;
}

void (*read_device_memory)(void* host, const void* memory, size_t bytes, int device) = nullptr;

Scalar item_of(const Tensor& t) {
  if (!t.is_cuda()) return Scalar::load(t.dtype(), t.data());
  alignas(16) char element[16];
  read_device_memory(element, t.data(), t.item_size(), t.device().index);
  return Scalar::load(t.dtype(), element);
}

bool may_share_memory(const Tensor& a, const Tensor& b) {
  if (a->storage != b->storage && a->storage->data != b->storage->data) {
    // Different storages may still borrow the same outside memory (NumPy, DLPack).
    if (a->storage->resizable && b->storage->resizable) return false;
  }
  if (a.is_meta() || b.is_meta() || !a.numel() || !b.numel()) return false;
  const char* a0 = a.data();
  const char* b0 = b.data();
  int64_t an = span_of(a.sizes(), a.strides()) * int64_t(a.item_size());
  int64_t bn = span_of(b.sizes(), b.strides()) * int64_t(b.item_size());
  return a0 < b0 + bn && b0 < a0 + an;
}

void resize_tensor(const Tensor& t, IntSpan sizes) {
  // The storage first: when memory runs out the tensor stays as it was.
  size_t need = size_t(t.offset() + checked_numel(sizes)) * t.item_size();
  if (need > t->storage->nbytes) t->storage->resize(need);
  t->set_geometry(sizes, contiguous_strides(sizes));
}

}  // namespace facula
