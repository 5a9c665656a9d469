// Type promotion: the lattice of PyTorch 2.13, with the unsigned types completed
// (PyTorch refuses uint16/32/64 with signed types; here they go to the next wider signed type).
#include "core/dtype.h"

namespace facula {
namespace {

DType promote_integers(DType a, DType b) {
  bool ua = is_unsigned(a), ub = is_unsigned(b);
  size_t sa = item_size(a), sb = item_size(b);
  if (ua == ub) return sa >= sb ? a : b;
  DType u = ua ? a : b, s = ua ? b : a;
  size_t su = item_size(u), ss = item_size(s);
  if (ss > su) return s;
  switch (su) {  // the signed type that holds both; uint64 has none, so the widest signed is taken
    case 1: return DType::Int16;
    case 2: return DType::Int32;
    default: return DType::Int64;
  }
}

DType promote_floats(DType a, DType b) {
  auto small = [](DType d) { return d == DType::Float8E4M3 || d == DType::Float8E5M2; };
  if (small(a) && small(b)) return DType::Float32;
  if (small(a)) return b;
  if (small(b)) return a;
  if (item_size(a) == 2 && item_size(b) == 2) return DType::Float32;  // Half with BFloat16
  return item_size(a) > item_size(b) ? a : b;
}

}  // namespace

double largest_finite(DType d) {
  return dispatch_dtype(to_real(d), []<class T>(TypeTag<T>) -> double {
    if constexpr (is_small_float_v<T> || std::is_same_v<T, float>)
      return float(std::numeric_limits<T>::max());
    else return std::numeric_limits<double>::max();
  });
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::None) return b;
  if (b == DType::None) return a;
  Category ca = category(a), cb = category(b);
  if (ca < cb) return promote_types(b, a);
  if (ca == cb) {
    if (ca == Category::Integral) return promote_integers(a, b);
    if (ca == Category::Floating) return promote_floats(a, b);
    return DType::Complex128;  // the two complex types differ
  }
  if (ca == Category::Complex && b == DType::Float64) return DType::Complex128;
  return a;
}

bool can_cast(DType from, DType to) {
  // PyTorch's rule: a category may only go up.
  return category(from) <= category(to);
}

}  // namespace facula
