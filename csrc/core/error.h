// The one exception type of the core, and the catalogue of what can go wrong.
// A message names what was given, what is accepted and, where known, the fix; `call` puts the
// operator's name in front, so no site repeats it.
#pragma once
#include <cstdint>
#include <exception>
#include <initializer_list>
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
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  // Puts "op(): " in front; the outermost operator, the one the user called, wins.
  void name_operator(const char* op);

 private:
  ErrorKind kind_;
  size_t prefix_ = 0;
  std::string message_;
};

// A part of a text, borrowed: DType, Device and shapes print as Python shows them. Texts are put
// together out of line from a list of parts, so that a place that may fail costs little code.
class TextPart {
 public:
  constexpr TextPart(const char* s) : TextPart(std::string_view(s)) {}
  constexpr TextPart(std::string_view s)
      : text_(s.data()), size_(uint32_t(s.size())), kind_(Kind::Text) {}
  constexpr TextPart(IntSpan s) : ints_(s.data()), size_(uint32_t(s.size())), kind_(Kind::Shape) {}
  constexpr TextPart(char c) : int_(c), kind_(Kind::Char) {}
  constexpr TextPart(DType d) : int_(int(d)), kind_(Kind::DType) {}
  constexpr TextPart(Device d) : device_(d), kind_(Kind::Device) {}
  template <class T>
  constexpr TextPart(const T& v) : TextPart(simplest(v)) {}

  void append_to(std::string& s) const;

 private:
  enum class Kind : uint8_t { Text, Shape, Char, Int, UInt, Float, DType, Device };
  template <class T>
  static constexpr TextPart simplest(const T& v) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      return std::string_view(v);
    } else if constexpr (std::is_convertible_v<const T&, IntSpan>) {
      return IntSpan(v);
    } else if constexpr (std::is_floating_point_v<T>) {
      TextPart p(Kind::Float);
      p.float_ = double(v);
      return p;
    } else {
      TextPart p(std::is_unsigned_v<T> ? Kind::UInt : Kind::Int);
      p.int_ = int64_t(v);
      return p;
    }
  }
  explicit constexpr TextPart(Kind kind) : int_(0), kind_(kind) {}
  union {
    const char* text_;
    const int64_t* ints_;
    int64_t int_;
    double float_;
    facula::Device device_;
  };
  uint32_t size_ = 0;
  Kind kind_;
};

// No streams: their locales may be those of another C++ library that a package brought into the
// process.
std::string join_text(std::initializer_list<TextPart> parts);
[[noreturn]] void throw_error(ErrorKind kind, std::initializer_list<TextPart> parts);

template <class... A>
FACULA_INLINE std::string text(const A&... parts) {
  return join_text({TextPart(parts)...});
}
template <class... A>
[[noreturn]] FACULA_INLINE void fail(ErrorKind kind, const A&... parts) {
  throw_error(kind, {TextPart(parts)...});
}
template <class... A>
[[noreturn]] FACULA_INLINE void runtime_error(const A&... parts) {
  throw_error(ErrorKind::Runtime, {TextPart(parts)...});
}
template <class... A>
[[noreturn]] FACULA_INLINE void index_error(const A&... parts) {
  throw_error(ErrorKind::Index, {TextPart(parts)...});
}
template <class... A>
[[noreturn]] FACULA_INLINE void type_error(const A&... parts) {
  throw_error(ErrorKind::Type, {TextPart(parts)...});
}
template <class... A>
[[noreturn]] FACULA_INLINE void value_error(const A&... parts) {
  throw_error(ErrorKind::Value, {TextPart(parts)...});
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
