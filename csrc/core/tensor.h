// The tensor: a geometry over a storage, with the few bits that the dispatch call looks at.
#pragma once
#include <utility>

#include "core/dims.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace facula {

struct AutogradMeta;  // autograd/node.h
struct Wrapper;       // transform/wrapper.h

// What `call` must look at before it may run the kernel (OR-ed over the arguments).
enum Key : uint8_t {
  kKeyGrad = 1,  // requires grad or has a grad_fn
  kKeyCuda = 2,
  kKeyMeta = 4,
  kKeyOverride = 8,  // a Python subclass with its own __torch_function__
  kKeyWrapped = 16,  // stands for another tensor inside a function transform
  kKeyConj = 32,     // the conjugate of its memory, to be computed when it is read
  kKeyNeg = 64,      // the negative of its memory
  kLazyKeys = kKeyConj | kKeyNeg,
};

enum TensorFlag : uint8_t {
  kContiguous = 1,
  kWeak = 2,              // a Python number in tensor form: takes part in promotion as a number
  kInference = 4,         // made in inference mode: no version counter, no autograd
  kUntracked = 8,         // made by `.data`: writes through it do not count as versions
  kNoGradView = 16,       // a view made under no_grad of a base that requires grad
  kMultiOutputView = 32,  // one of several views returned by one call (split, unbind)
  kOwnsPython = 64,       // the tensor keeps its Python object alive, not the other way round
  kSpreadGrad = 128,      // a gradient whose repetitions are written out before a program sees them
};

struct TensorImpl {
  std::atomic<uint32_t> refs{1};
  DType dtype;
  uint8_t keys = 0;
  uint8_t flags = kContiguous;
  Device device;
  uint32_t made_at = 0;  // the version of the memory when a kNoGradView was made
  uint32_t born;         // the innermost transform level when the tensor was made, 0 outside of any
  Storage* storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 1;
  Dims sizes, strides;
  TensorImpl* base = nullptr;  // the tensor that this one is a view of (owned), never itself a view
  AutogradMeta* autograd = nullptr;
  Wrapper* wrapper = nullptr;  // owned; set when kKeyWrapped is
  void* python = nullptr;      // the Python object, borrowed unless kOwnsPython

  ~TensorImpl();
  void set_geometry(IntSpan sizes, IntSpan strides);
  void refresh_contiguous();
};

// The innermost live transform level of the calling thread.
extern thread_local constinit uint32_t current_level;

// Called when a tensor dies that owns its Python object or its autograd data.
extern void (*release_python_object)(void* object);
void release_autograd(AutogradMeta* meta);
void retain_wrapper(Wrapper* wrapper);
void release_wrapper(Wrapper* wrapper);

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : p_(o.p_) {
    if (p_) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Tensor& operator=(const Tensor& o) {
    Tensor copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    if (this != &o) {
      reset();
      p_ = std::exchange(o.p_, nullptr);
    }
    return *this;
  }
  ~Tensor() { reset(); }

  static Tensor adopt(TensorImpl* p) {  // takes over the caller's reference
    Tensor t;
    t.p_ = p;
    return t;
  }
  static Tensor share(TensorImpl* p) {
    if (p) p->refs.fetch_add(1, std::memory_order_relaxed);
    return adopt(p);
  }
  TensorImpl* release() { return std::exchange(p_, nullptr); }
  void reset() {
    if (p_) drop(std::exchange(p_, nullptr));
  }

  bool defined() const { return p_ != nullptr; }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return p_; }
  TensorImpl* operator->() const { return p_; }
  bool is(const Tensor& o) const { return p_ == o.p_; }

  DType dtype() const { return p_->dtype; }
  Device device() const { return p_->device; }
  bool is_cpu() const { return !(p_->keys & (kKeyCuda | kKeyMeta)); }
  bool is_cuda() const { return p_->keys & kKeyCuda; }
  bool is_meta() const { return p_->keys & kKeyMeta; }
  int64_t dim() const { return int64_t(p_->sizes.size()); }
  int64_t numel() const { return p_->numel; }
  IntSpan sizes() const { return p_->sizes; }
  IntSpan strides() const { return p_->strides; }
  int64_t size(int64_t d) const { return p_->sizes[wrap_dim(d, dim())]; }
  int64_t stride(int64_t d) const { return p_->strides[wrap_dim(d, dim())]; }
  int64_t offset() const { return p_->offset; }
  size_t item_size() const { return facula::item_size(p_->dtype); }
  bool is_contiguous() const { return p_->flags & kContiguous; }
  bool is_contiguous(MemoryFormat format) const;
  bool is_wrapped() const { return p_->keys & kKeyWrapped; }
  bool is_lazy() const { return p_->keys & kLazyKeys; }
  bool is_weak() const { return p_->flags & kWeak; }
  bool is_complex() const { return facula::is_complex(p_->dtype); }
  bool is_floating() const { return facula::is_floating(p_->dtype); }
  bool needs_grad() const { return p_->keys & kKeyGrad; }
  uint32_t version() const { return p_->storage->version.load(std::memory_order_relaxed); }
  void bump_version(const char* writer = nullptr) const;

  char* data() const {
    return static_cast<char*>(p_->storage->data) + p_->offset * int64_t(item_size());
  }
  template <class T>
  T* data_as() const {
    return reinterpret_cast<T*>(data());
  }

 private:
  static void drop(TensorImpl* p) noexcept;
  TensorImpl* p_ = nullptr;
};

// ---- making tensors (no dispatch, no autograd)
Tensor empty_tensor(IntSpan sizes, DType dtype, Device device);
Tensor empty_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device);
Tensor tensor_on_storage(Storage* storage, IntSpan sizes, IntSpan strides, int64_t offset,
                         DType dtype);
// Shares the storage; the result has no autograd history.
Tensor alias_tensor(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset);
Tensor alias_tensor(const Tensor& t);
Tensor number_tensor(const Scalar& value, DType dtype);  // 0-dim, on the CPU
Tensor weak_number_tensor(const Scalar& value);
Scalar item_of(const Tensor& t);  // one element, CPU memory

// True when the memory ranges of the two tensors may share bytes.
bool may_share_memory(const Tensor& a, const Tensor& b);
// Changes the geometry of an `out=` tensor, growing the storage when needed.
void resize_tensor(const Tensor& t, IntSpan sizes);

}  // namespace facula
