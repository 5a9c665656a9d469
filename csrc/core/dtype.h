// Element types: the list, their sizes and categories. Everything that varies by dtype
// is generated from FACULA_DTYPES so that no second list exists.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/numeric.h"

namespace facula {

// X(enumerator, C++ type, Python name, category)
// Categories order promotion: bool < integral < floating < complex.
#define FACULA_DTYPES(X)                          \
  X(Bool, bool, "bool", 0)                        \
  X(UInt8, uint8_t, "uint8", 1)                   \
  X(Int8, int8_t, "int8", 1)                      \
  X(Int16, int16_t, "int16", 1)                   \
  X(Int32, int32_t, "int32", 1)                   \
  X(Int64, int64_t, "int64", 1)                   \
  X(UInt16, uint16_t, "uint16", 1)                \
  X(UInt32, uint32_t, "uint32", 1)                \
  X(UInt64, uint64_t, "uint64", 1)                \
  X(Float16, Half, "float16", 2)                  \
  X(BFloat16, BFloat16, "bfloat16", 2)            \
  X(Float32, float, "float32", 2)                 \
  X(Float64, double, "float64", 2)                \
  X(Complex64, Complex<float>, "complex64", 3)    \
  X(Complex128, Complex<double>, "complex128", 3) \
  X(Float8E4M3, Float8E4M3, "float8_e4m3fn", 2)   \
  X(Float8E5M2, Float8E5M2, "float8_e5m2", 2)

enum class DType : uint8_t {
#define X(e, t, n, c) e,
  FACULA_DTYPES(X)
#undef X
      Count,
  None = 255
};
constexpr int kDTypes = int(DType::Count);

enum class Category : uint8_t { Bool = 0, Integral = 1, Floating = 2, Complex = 3 };

namespace detail {
constexpr uint8_t kItemSize[] = {
#define X(e, t, n, c) sizeof(t),
    FACULA_DTYPES(X)
#undef X
};
constexpr uint8_t kCategory[] = {
#define X(e, t, n, c) c,
    FACULA_DTYPES(X)
#undef X
};
constexpr const char* kDTypeName[] = {
#define X(e, t, n, c) n,
    FACULA_DTYPES(X)
#undef X
};
}  // namespace detail

constexpr size_t item_size(DType d) {
  return detail::kItemSize[int(d)];
}
constexpr Category category(DType d) {
  return Category(detail::kCategory[int(d)]);
}
constexpr const char* dtype_name(DType d) {
  return d < DType::Count ? detail::kDTypeName[int(d)] : "none";
}
constexpr bool is_complex(DType d) {
  return category(d) == Category::Complex;
}
constexpr bool is_floating(DType d) {
  return category(d) == Category::Floating;
}
constexpr bool is_integral(DType d, bool with_bool = false) {
  return category(d) == Category::Integral || (with_bool && d == DType::Bool);
}
constexpr bool is_unsigned(DType d) {
  return d == DType::UInt8 || d == DType::UInt16 || d == DType::UInt32 || d == DType::UInt64;
}
constexpr bool is_reduced_float(DType d) {  // computed through float32
  return d == DType::Float16 || d == DType::BFloat16 || d == DType::Float8E4M3 ||
         d == DType::Float8E5M2;
}

// The C++ type of a DType, and the DType of a C++ type.
template <DType D>
struct TypeOf;
template <class T>
struct DTypeOf;
#define X(e, t, n, c)                        \
  template <>                                \
  struct TypeOf<DType::e> {                  \
    using type = t;                          \
  };                                         \
  template <>                                \
  struct DTypeOf<t> {                        \
    static constexpr DType value = DType::e; \
  };
FACULA_DTYPES(X)
#undef X

// Calls f(TypeTag<T>{}) with the C++ type of d.
template <class T>
struct TypeTag {
  using type = T;
};
template <class F>
decltype(auto) dispatch_dtype(DType d, F&& f) {
  switch (d) {
#define X(e, t, n, c) \
  case DType::e: return f(TypeTag<t>{});
    FACULA_DTYPES(X)
#undef X
    default: __builtin_unreachable();
  }
}

// The real type of a complex one and the reverse; other types give themselves.
constexpr DType to_real(DType d) {
  return d == DType::Complex64 ? DType::Float32 : d == DType::Complex128 ? DType::Float64 : d;
}
constexpr DType to_complex(DType d) {
  return d == DType::Float64 || d == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

// The largest finite number of a floating type, or of the parts of a complex one; other types have
// that of doubles.
double largest_finite(DType d);

DType promote_types(DType a, DType b);
bool can_cast(DType from, DType to);

}  // namespace facula
