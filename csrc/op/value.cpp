#include "op/value.h"

namespace facula {

Scalar Value::scalar() const {
  switch (tag_) {
    case Tag::Bool: return Scalar(i_ != 0);
    case Tag::UInt: return Scalar(uint64_t(i_));
    case Tag::Float: return Scalar(f_);
    case Tag::Complex: return Scalar(*complex_);
    default: return Scalar(i_);
  }
}

void Value::set(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      i_ = s.to_int();
      tag_ = Tag::Bool;
      break;
    case Scalar::Kind::Int:
      i_ = s.to_int();
      tag_ = Tag::Int;
      break;
    case Scalar::Kind::UInt:
      i_ = int64_t(s.to<uint64_t>());
      tag_ = Tag::UInt;
      break;
    case Scalar::Kind::Float:
      f_ = s.to_double();
      tag_ = Tag::Float;
      break;
    case Scalar::Kind::Complex:
      complex_ = s.complex_pointer();
      tag_ = Tag::Complex;
      break;
  }
}

}  // namespace facula
