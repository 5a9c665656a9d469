// The one exception type of the core, and the catalogue of what can go wrong.
// A message names what was given, what is accepted and, where known, the fix; `call` puts the
// operator's name in front, so no site repeats it.
#pragma once
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/device.h"
#include "core/dtype.h"

namespace facula {

using IntSpan = std::span<const int64_t>;

enum class ErrorKind : uint8_t {
  Runtime,
  Index,
  Type,
  Value,
  NotImplemented,
  LinAlg,
  OutOfMemory,
  Memory,
  Buffer
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  // Puts "op(): " in front; the outermost operator, the one the user called, wins.
  void name_operator(const char* op);

 private:
  ErrorKind kind_;
  size_t prefix_ = 0;
  std::string message_;
};

// Text from parts; DType, Device and shapes print as Python shows them. No streams: their locales
// may be those of another C++ library that a package brought into the process.
void put(std::string& s, int64_t v);
void put(std::string& s, uint64_t v);
void put(std::string& s, double v);
void put(std::string& s, IntSpan shape);
inline void put(std::string& s, DType d) {
  (s += "facula.") += dtype_name(d);
}
inline void put(std::string& s, Device d) {
  s += to_string(d);
}
template <class T>
void put(std::string& s, const T& v) {
  if constexpr (std::is_same_v<T, char>) s += v;
  else if constexpr (std::is_convertible_v<const T&, std::string_view>) s += std::string_view(v);
  else if constexpr (std::is_convertible_v<const T&, IntSpan>) put(s, IntSpan(v));
  else if constexpr (std::is_floating_point_v<T>) put(s, double(v));
  else if constexpr (std::is_unsigned_v<T>) put(s, uint64_t(v));
  else put(s, int64_t(v));
}
template <class... A>
std::string text(const A&... parts) {
  std::string s;
  (put(s, parts), ...);
  return s;
}

template <class... A>
[[noreturn]] void fail(ErrorKind kind, const A&... parts) {
  throw Error(kind, text(parts...));
}
template <class... A>
[[noreturn]] void runtime_error(const A&... parts) {
  fail(ErrorKind::Runtime, parts...);
}
template <class... A>
[[noreturn]] void index_error(const A&... parts) {
  fail(ErrorKind::Index, parts...);
}
template <class... A>
[[noreturn]] void type_error(const A&... parts) {
  fail(ErrorKind::Type, parts...);
}
template <class... A>
[[noreturn]] void value_error(const A&... parts) {
  fail(ErrorKind::Value, parts...);
}

// ---- the catalogue
[[noreturn]] void broadcast_error(IntSpan a, IntSpan b, int64_t dim, int64_t size_a,
                                  int64_t size_b);
[[noreturn]] void expand_error(IntSpan from, IntSpan to);
[[noreturn]] void dim_error(int64_t dim, int64_t ndim);
[[noreturn]] void dtype_error(DType given, const std::string& accepted);
[[noreturn]] void device_error(Device a, Device b);
[[noreturn]] void cast_error(DType result, DType wanted);
[[noreturn]] void index_range_error(int64_t index, int64_t dim, int64_t size);
[[noreturn]] void overlap_error();   // the destination overlaps with itself
[[noreturn]] void aliasing_error();  // the destination overlaps with an input
[[noreturn]] void overflow_error(const std::string& value, DType d);

// Capitalised names as PyTorch's messages use them: Float, Long, ComplexFloat.
const char* legacy_dtype_name(DType d);

}  // namespace facula
