// A Python number: bool, integer, float or complex, without a dtype of its own ("weak").
#pragma once
#include "core/dtype.h"

namespace facula {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, UInt, Float, Complex };  // UInt only above INT64_MAX

  Scalar() : Scalar(0) {}
  Scalar(bool v) : kind_(Kind::Bool) { i_ = v; }
  Scalar(int v) : Scalar(int64_t(v)) {}
  Scalar(int64_t v) : kind_(Kind::Int) { i_ = v; }
  Scalar(uint64_t v) : kind_(v >> 63 ? Kind::UInt : Kind::Int) { i_ = int64_t(v); }
  Scalar(double v) : kind_(Kind::Float) { c_ = {v, 0}; }
  Scalar(Complex<double> v) : kind_(Kind::Complex) { c_ = v; }

  Kind kind() const { return kind_; }
  bool is_complex() const { return kind_ == Kind::Complex; }
  bool is_float() const { return kind_ == Kind::Float; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::UInt; }
  Category category() const {
    switch (kind_) {
      case Kind::Bool: return Category::Bool;
      case Kind::Float: return Category::Floating;
      case Kind::Complex: return Category::Complex;
      default: return Category::Integral;
    }
  }
  // The dtype with which a Python number enters promotion at full precision.
  DType dtype() const {
    switch (kind_) {
      case Kind::Bool: return DType::Bool;
      case Kind::Float: return DType::Float64;
      case Kind::Complex: return DType::Complex128;
      case Kind::UInt: return DType::UInt64;
      default: return DType::Int64;
    }
  }

  template <class T>
  T to() const {
    switch (kind_) {
      case Kind::Float: return convert<T>(c_.re);
      case Kind::Complex: return convert<T>(c_);
      case Kind::UInt: return convert<T>(uint64_t(i_));
      default: return convert<T>(i_);
    }
  }
  double to_double() const;
  int64_t to_int() const;
  const Complex<double>* complex_pointer() const { return &c_; }
  Complex<double> to_complex() const;
  // Writes the value as dtype d at p.
  void store(DType d, void* p) const;
  // Whether the value has a place in dtype d. Fractions may be cut and bits rounded, infinities
  // stay what they are, and negative integers (no fractions) wrap around in unsigned dtypes, as in
  // PyTorch.
  bool fits(DType d) const;
  void check_fits(DType d) const;  // raises the overflow error
  static Scalar load(DType d, const void* p);
  bool equals(double v) const {
    return kind_ == Kind::Complex ? c_.re == v && c_.im == 0 : to_double() == v;
  }

 private:
  Kind kind_;
  union {
    int64_t i_;
    Complex<double> c_;
  };
};

}  // namespace facula
