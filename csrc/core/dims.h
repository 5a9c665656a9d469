// Sizes or strides: a vector of int64 with room for five without the heap.
#pragma once
#include <cstring>
#include <initializer_list>

#include "core/error.h"

namespace facula {

constexpr int kMaxDims = 64;
// Tensors may have more dimensions; kernels that walk them one by one may not.
void check_rank(int64_t ndim);

class Dims {
 public:
  static constexpr uint32_t kInline = 5;

  Dims() : n_(0), cap_(kInline) {}
  explicit Dims(size_t n) : Dims() { resize(n); }
  Dims(size_t n, int64_t fill) : Dims(n) {
    for (size_t i = 0; i < n; ++i) data()[i] = fill;
  }
  Dims(IntSpan s) : Dims() { assign(s); }
  Dims(std::initializer_list<int64_t> l) : Dims(IntSpan(l.begin(), l.size())) {}
  Dims(const Dims& o) : Dims(IntSpan(o)) {}
  Dims(Dims&& o) noexcept : n_(o.n_), cap_(o.cap_) {
    std::memcpy(inline_, o.inline_, sizeof inline_);
    o.n_ = 0;
    o.cap_ = kInline;
  }
  Dims& operator=(const Dims& o) {
    if (this != &o) assign(o);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      if (cap_ > kInline) delete[] heap_;
      n_ = o.n_;
      cap_ = o.cap_;
      std::memcpy(inline_, o.inline_, sizeof inline_);
      o.n_ = 0;
      o.cap_ = kInline;
    }
    return *this;
  }
  ~Dims() {
    if (cap_ > kInline) delete[] heap_;
  }

  int64_t* data() { return cap_ > kInline ? heap_ : inline_; }
  const int64_t* data() const { return cap_ > kInline ? heap_ : inline_; }
  size_t size() const { return n_; }
  bool empty() const { return n_ == 0; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + n_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + n_; }
  int64_t back() const { return data()[n_ - 1]; }
  operator IntSpan() const { return {data(), n_}; }
  bool operator==(const Dims& o) const { return *this == IntSpan(o); }
  bool operator==(IntSpan o) const {
    return n_ == o.size() && (n_ == 0 || std::memcmp(data(), o.data(), n_ * sizeof(int64_t)) == 0);
  }

  void assign(IntSpan s) {
    resize(s.size());
    if (!s.empty()) std::memmove(data(), s.data(), s.size() * sizeof(int64_t));
  }
  void resize(size_t n) {  // keeps the first elements; new ones are unset
    if (n > cap_) grow(n);
    n_ = uint32_t(n);
  }
  void push_back(int64_t v) {
    resize(n_ + 1);
    data()[n_ - 1] = v;
  }
  void insert(size_t at, int64_t v) {
    resize(n_ + 1);
    int64_t* p = data();
    std::memmove(p + at + 1, p + at, (n_ - 1 - at) * sizeof(int64_t));
    p[at] = v;
  }
  void erase(size_t at) {
    int64_t* p = data();
    std::memmove(p + at, p + at + 1, (n_ - 1 - at) * sizeof(int64_t));
    --n_;
  }

 private:
  void grow(size_t n);
  uint32_t n_, cap_;
  union {
    int64_t inline_[kInline];
    int64_t* heap_;
  };
};

inline bool same(IntSpan a, IntSpan b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(int64_t)) == 0);
}

// ---- shape arithmetic
int64_t checked_numel(IntSpan sizes);  // refuses negative sizes and products beyond 2**63
Dims contiguous_strides(IntSpan sizes);
Dims strides_for(IntSpan sizes, MemoryFormat format);
Dims broadcast_shapes(IntSpan a, IntSpan b);
bool is_expandable(IntSpan from, IntSpan to);
int64_t wrap_dim(int64_t dim, int64_t ndim);    // scalars accept -1 and 0, as in PyTorch
uint64_t dim_mask(IntSpan dims, int64_t ndim);  // an empty list means every dimension
bool non_overlapping_and_dense(IntSpan sizes, IntSpan strides);
// Whether two indices reach the same element. Exact up to two dimensions that interleave and for
// small tensors; false where deciding would take long.
bool has_internal_overlap(IntSpan sizes, IntSpan strides);
// The strides of a view of `sizes` over the old geometry; false when a copy is needed.
bool view_strides(IntSpan old_sizes, IntSpan old_strides, IntSpan sizes, Dims& out);
Dims infer_size(IntSpan sizes, IntSpan from);  // resolves one -1 of a reshape of `from`

}  // namespace facula
