// One table-driven parser for the arguments of every operator.
#pragma once
#include <memory>

#include "op/registry.h"
#include "python/py.h"

namespace facula::python {

// Memory for parsed lists and complex numbers during one call.
class ParseArena {
 public:
  // Whether a 0-dim tensor may stand for an int or a number. Tried only after the overloads that
  // take a tensor in its place: max(x, other) against max(x, dim).
  bool tensors_as_numbers = true;
  int64_t layout = -1;  // as SparseLayout counts them, where the call names one

  int64_t* ints(size_t n) {
    if (used_ + n <= kInts) {
      int64_t* p = ints_ + used_;
      used_ += n;
      return p;
    }
    more_.push_back(std::make_unique<int64_t[]>(n));
    return more_.back().get();
  }
  double* floats(size_t n) { return reinterpret_cast<double*>(ints(n)); }
  std::vector<Tensor>& tensors() {
    lists_.push_back(std::make_unique<std::vector<Tensor>>());
    return *lists_.back();
  }
  const Scalar& keep(const Scalar& s) {
    scalars_.push_back(std::make_unique<Scalar>(s));
    return *scalars_.back();
  }
  Value number(const Scalar& s) { return s.is_complex() ? Value(keep(s)) : Value(s); }
  void reset() {
    layout = -1;
    used_ = 0;
    more_.clear();
    lists_.clear();
    scalars_.clear();
  }

 private:
  static constexpr size_t kInts = 48;
  int64_t ints_[kInts];
  size_t used_ = 0;
  std::vector<std::unique_ptr<int64_t[]>> more_;
  std::vector<std::unique_ptr<std::vector<Tensor>>> lists_;
  std::vector<std::unique_ptr<Scalar>> scalars_;
};

constexpr int kMaxArgs = 16;

struct Parsed {
  Value args[kMaxArgs];
  PyObject* out = nullptr;  // borrowed
};

// Fills `parsed` when the arguments fit the operator; otherwise says why (when `why` is given), as
// the rest of a sentence that begins with the operator's name. `bound` arguments (the self of a
// method) do not count as positions.
bool parse_arguments(const OpDef& op, bool accepts_out, PyObject* const* args, Py_ssize_t count,
                     PyObject* names, ParseArena& arena, Parsed& parsed, std::string* why,
                     int bound = 0);

std::string signature_text(const OpDef& op);
const char* type_text(const ArgDef& arg);
const char* argument_name(const ArgDef& arg);  // "input" for self, as users know it

}  // namespace facula::python
