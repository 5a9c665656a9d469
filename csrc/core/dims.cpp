#include "core/dims.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace facula {

void Dims::grow(size_t n) {
  auto* p = new int64_t[n];
  if (n_) std::memcpy(p, data(), n_ * sizeof(int64_t));
  if (cap_ > kInline) delete[] heap_;
  heap_ = p;
  cap_ = uint32_t(n);
}

int64_t checked_numel(IntSpan sizes) {
  int64_t n = 1;
  bool overflow = false, zero = false;
  for (int64_t s : sizes) {
    if (s < 0) runtime_error("Trying to create tensor with negative dimension ", s, ": ", sizes);
    zero |= s == 0;
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  if (zero) return 0;
  if (overflow || n > (int64_t(1) << 60))
    runtime_error("Storage size calculation overflowed with sizes=", sizes,
                  "; a tensor cannot hold more than 2**60 elements");
  return n;
}

Dims contiguous_strides(IntSpan sizes) {
  Dims st(sizes.size());
  int64_t s = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    st[i] = s;
    s *= std::max<int64_t>(sizes[i], 1);
  }
  return st;
}

Dims strides_for(IntSpan sizes, MemoryFormat format) {
  size_t spatial = format == MemoryFormat::ChannelsLast ? 2 : 3;
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d)
    return contiguous_strides(sizes);
  if (sizes.size() != spatial + 2)
    runtime_error("required rank ", spatial + 2, " tensor to use ",
                  spatial == 2 ? "channels_last" : "channels_last_3d", " format, but the shape is ",
                  sizes);
  Dims st(sizes.size());
  st[1] = 1;
  int64_t s = std::max<int64_t>(sizes[1], 1);
  for (size_t i = sizes.size(); i-- > 2;) {
    st[i] = s;
    s *= std::max<int64_t>(sizes[i], 1);
  }
  st[0] = s;
  return st;
}

Dims broadcast_shapes(IntSpan a, IntSpan b) {
  size_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (size_t i = 0; i < n; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) broadcast_error(a, b, int64_t(n - 1 - i), x, y);
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

bool is_expandable(IntSpan from, IntSpan to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t f = from[from.size() - 1 - i];
    if (f != 1 && f != to[to.size() - 1 - i]) return false;
  }
  return true;
}

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t n = ndim ? ndim : 1;
  if (dim < -n || dim >= n) dim_error(dim, ndim);
  return dim < 0 ? dim + n : dim;
}

void check_rank(int64_t ndim) {
  if (ndim > kMaxDims)
    runtime_error("only tensors with up to ", kMaxDims, " dims are supported, but this one has ",
                  ndim);
}

uint64_t dim_mask(IntSpan dims, int64_t ndim) {
  check_rank(ndim);
  if (dims.empty()) return ndim ? ~uint64_t(0) >> (64 - ndim) : 0;
  uint64_t mask = 0;
  for (int64_t d : dims) {
    int64_t at = wrap_dim(d, ndim);
    if (mask >> at & 1)
      runtime_error("dim ", at, " appears multiple times in the list of dims ", dims);
    mask |= uint64_t(1) << at;
  }
  return mask;
}

bool non_overlapping_and_dense(IntSpan sizes, IntSpan strides) {
  // There is room for those that count: 64 dimensions of two elements would be too many elements.
  int order[kMaxDims];
  int n = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] > 1) order[n++] = int(i);
  }
  std::sort(order, order + n, [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t expect = 1;
  for (int i = 0; i < n; ++i) {
    if (strides[order[i]] != expect) return false;
    expect *= sizes[order[i]];
  }
  return true;
}

bool has_internal_overlap(IntSpan sizes, IntSpan strides) {
  struct Dim {
    int64_t size, stride;
  } dims[kMaxDims];
  int n = 0;
  bool zero_stride = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return false;
    if (sizes[i] == 1) continue;
    zero_stride |= strides[i] == 0;
    dims[n++] = {sizes[i], std::abs(strides[i])};
  }
  if (zero_stride) return true;
  std::sort(dims, dims + n, [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  // A dimension whose stride exceeds the reach of all smaller ones separates its slices: two equal
  // places must agree in it, so it can be left out.
  int64_t reach[kMaxDims + 1];
  reach[0] = 0;
  for (int i = 0; i < n; ++i) reach[i + 1] = reach[i] + (dims[i].size - 1) * dims[i].stride;
  while (n > 0 && dims[n - 1].stride > reach[n - 1]) --n;
  if (n < 2) return false;
  if (n == 2) {  // the smallest step that brings both dimensions to one place
    int64_t g = std::gcd(dims[0].stride, dims[1].stride);
    return dims[1].stride / g < dims[0].size && dims[0].stride / g < dims[1].size;
  }
  constexpr int64_t kSmall = 1 << 16;
  int64_t places = 1;
  for (int i = 0; i < n; ++i) {
    places *= dims[i].size;
    if (places > kSmall) return false;
  }
  if (places > reach[n] + 1) return true;  // more indices than elements in reach
  if (reach[n] >= 64 * kSmall) return false;
  std::vector<bool> seen(size_t(reach[n]) + 1);
  for (int64_t k = 0; k < places; ++k) {
    int64_t at = 0, rest = k;
    for (int i = 0; i < n; ++i) {
      at += rest % dims[i].size * dims[i].stride;
      rest /= dims[i].size;
    }
    if (seen[size_t(at)]) return true;
    seen[size_t(at)] = true;
  }
  return false;
}

bool view_strides(IntSpan old_sizes, IntSpan old_strides, IntSpan sizes, Dims& out) {
  int64_t numel = 1;
  for (int64_t s : old_sizes) numel *= s;
  out.resize(sizes.size());
  if (numel == 0) {
    if (same(old_sizes, sizes)) out.assign(old_strides);
    else out = contiguous_strides(sizes);
    return true;
  }
  // Walk chunks of old dimensions that are contiguous among themselves, from the right; each chunk
  // must be covered exactly by consecutive new dimensions.
  int64_t v = int64_t(sizes.size()) - 1;
  int64_t chunk_stride = old_strides.empty() ? 1 : old_strides.back();
  int64_t old_n = 1, new_n = 1;
  for (int64_t d = int64_t(old_sizes.size()) - 1; d >= 0; --d) {
    old_n *= old_sizes[d];
    if (d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != old_n * chunk_stride)) {
      while (v >= 0 && (new_n < old_n || sizes[v] == 1)) {
        out[v] = new_n * chunk_stride;
        new_n *= sizes[v];
        --v;
      }
      if (new_n != old_n) return false;
      if (d > 0) {
        chunk_stride = old_strides[d - 1];
        old_n = new_n = 1;
      }
    }
  }
  for (; v >= 0; --v) {  // a 0-dim source: only ones can remain
    if (sizes[v] != 1) return false;
    out[v] = 1;
  }
  return true;
}

Dims infer_size(IntSpan sizes, IntSpan from) {
  Dims out(sizes);
  int64_t numel = 1;
  for (int64_t s : from) numel *= s;
  int64_t known = 1, at = -1;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (at >= 0) runtime_error("only one dimension can be inferred (-1), got the shape ", sizes);
      at = int64_t(i);
    } else if (sizes[i] < 0) {
      runtime_error("invalid shape dimension ", sizes[i], " at index ", i, " of shape ", sizes);
    } else {
      overflow |= __builtin_mul_overflow(known, sizes[i], &known);
    }
  }
  if (at >= 0 && known == 0 && numel == 0)
    runtime_error("cannot reshape tensor of 0 elements into shape ", sizes,
                  " because the unspecified dimension size -1 can be any value and is ambiguous");
  bool fits = !overflow && (at < 0 ? known == numel : known && numel % known == 0);
  if (!fits)
    runtime_error("shape '", sizes, "' is invalid for input of size ", numel, " (its shape is ",
                  from, ")");
  if (at >= 0) out[at] = numel / known;
  return out;
}

}  // namespace facula
