// A boxed argument: 16 bytes, borrowed from the caller's stack for the length of one call.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace facula {

struct Generator;
using TensorSpan = std::span<const Tensor>;

class Value {
 public:
  enum class Tag : uint8_t {
    None,
    Tensor,
    Bool,
    Int,
    UInt,
    Float,
    Complex,
    Ints,
    Floats,
    Tensors,
    String,
    DType,
    Device,
    Format,
    Generator
  };

  constexpr Value() : i_(0), len_(0), tag_(Tag::None) {}
  constexpr Value(std::nullopt_t) : Value() {}
  Value(const Tensor& t)
      : tensor_(t.impl()), len_(0), tag_(t.defined() ? Tag::Tensor : Tag::None) {}
  constexpr Value(bool v) : Value() {
    i_ = v;
    tag_ = Tag::Bool;
  }
  constexpr Value(int v) : Value(int64_t(v)) {}
  constexpr Value(int64_t v) : Value() {
    i_ = v;
    tag_ = Tag::Int;
  }
  constexpr Value(double v) : Value() {
    f_ = v;
    tag_ = Tag::Float;
  }
  Value(const Scalar& s) : Value() { set(s); }
  Value(const Scalar* s) : Value() {
    if (s) set(*s);
  }
  constexpr Value(IntSpan v) : Value() {
    ints_ = v.data();
    len_ = uint32_t(v.size());
    tag_ = Tag::Ints;
  }
  Value(const Dims& v) : Value(IntSpan(v)) {}
  constexpr Value(std::optional<IntSpan> v) : Value() {
    if (v) *this = Value(*v);
  }
  constexpr Value(std::optional<int64_t> v) : Value() {
    if (v) *this = Value(*v);
  }
  constexpr Value(std::optional<double> v) : Value() {
    if (v) *this = Value(*v);
  }
  constexpr Value(std::optional<bool> v) : Value() {
    if (v) *this = Value(*v);
  }
  constexpr Value(std::span<const double> v) : Value() {
    floats_ = v.data();
    len_ = uint32_t(v.size());
    tag_ = Tag::Floats;
  }
  Value(TensorSpan v) : Value() {
    tensors_ = v.data();
    len_ = uint32_t(v.size());
    tag_ = Tag::Tensors;
  }
  constexpr Value(std::string_view v) : Value() {
    text_ = v.data();
    len_ = uint32_t(v.size());
    tag_ = Tag::String;
  }
  constexpr Value(DType d) : Value() {
    if (d != DType::None) {
      i_ = int(d);
      tag_ = Tag::DType;
    }
  }
  constexpr Value(Device d) : Value() {
    if (d.type != DeviceType::None) {
      device_ = d;
      tag_ = Tag::Device;
    }
  }
  constexpr Value(MemoryFormat m) : Value() {
    if (m != MemoryFormat::None) {
      i_ = int(m);
      tag_ = Tag::Format;
    }
  }
  Value(Generator* g) : Value() {
    if (g) {
      generator_ = g;
      tag_ = Tag::Generator;
    }
  }

  // A complex number on the heap, for values that outlive the call; its holder deletes it.
  static Value owned_complex(Complex<double> c) {
    Value v;
    v.complex_ = new Complex<double>(c);
    v.tag_ = Tag::Complex;
    return v;
  }
  const Complex<double>* complex_pointer() const { return complex_; }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_number() const { return tag_ >= Tag::Bool && tag_ <= Tag::Complex; }

  // A Tensor is one pointer, so the boxed pointer is the handle; none is the undefined tensor.
  const Tensor& tensor() const { return *reinterpret_cast<const Tensor*>(&tensor_); }
  Scalar scalar() const;
  int64_t to_int() const { return tag_ == Tag::Float ? int64_t(f_) : i_; }
  double to_double() const { return tag_ == Tag::Float ? f_ : scalar().to_double(); }
  bool to_bool() const { return i_ != 0; }
  IntSpan ints() const { return {ints_, len_}; }
  std::span<const double> floats() const { return {floats_, len_}; }
  TensorSpan tensors() const { return {tensors_, len_}; }
  std::string_view text() const { return {text_, len_}; }
  DType dtype() const { return is_none() ? DType::None : DType(i_); }
  Device device() const { return is_none() ? kNoDevice : device_; }
  MemoryFormat format() const { return is_none() ? MemoryFormat::None : MemoryFormat(i_); }
  Generator* generator() const { return is_none() ? nullptr : generator_; }
  std::optional<int64_t> optional_int() const {
    return is_none() ? std::nullopt : std::optional(to_int());
  }
  std::optional<double> optional_double() const {
    return is_none() ? std::nullopt : std::optional(to_double());
  }
  std::optional<bool> optional_bool() const {
    return is_none() ? std::nullopt : std::optional(to_bool());
  }
  std::optional<IntSpan> optional_ints() const {
    return is_none() ? std::nullopt : std::optional(ints());
  }

 private:
  void set(const Scalar& s);
  union {
    TensorImpl* tensor_;
    int64_t i_;
    double f_;
    const Complex<double>* complex_;
    const int64_t* ints_;
    const double* floats_;
    const Tensor* tensors_;
    const char* text_;
    Device device_;
    Generator* generator_;
  };
  uint32_t len_;
  Tag tag_;
};
static_assert(sizeof(Value) == 16 && sizeof(Tensor) == sizeof(void*));

}  // namespace facula
