// Arguments of a call that is passed on in another form.
#pragma once
#include <memory>
#include <vector>

#include "op/def.h"

namespace facula {

// Arguments with some tensors replaced, and what keeps the replacements alive.
class Arguments {
 public:
  Arguments(const OpDef& op, const Value* args) : values_(args, args + op.arg_count) {
    held_.reserve(size_t(op.arg_count));
  }
  const Value* data() const { return values_.data(); }
  Value& operator[](int i) { return values_[size_t(i)]; }
  template <class F>  // f(tensor) -> tensor, for every defined tensor
  void map(F&& f) {
    for (Value& v : values_) {
      if (v.is_tensor()) {
        set(v, f(v.tensor()));
      } else if (v.tag() == Value::Tag::Tensors) {
        std::vector<Tensor> list(v.tensors().begin(), v.tensors().end());
        for (Tensor& t : list)
          if (t.defined()) t = f(t);
        set(v, std::move(list));
      }
    }
  }
  void set(Value& v, Tensor t) {
    held_.push_back(std::move(t));
    v = Value(held_.back());
  }
  void set(Value& v, std::vector<Tensor> list) {
    lists_.push_back(std::make_unique<std::vector<Tensor>>(std::move(list)));
    v = Value(TensorSpan(*lists_.back()));
  }
  void set(Value& v, Dims d) {
    dims_.push_back(std::make_unique<Dims>(std::move(d)));
    v = Value(*dims_.back());
  }

 private:
  std::vector<Value> values_;
  std::vector<Tensor> held_;
  std::vector<std::unique_ptr<std::vector<Tensor>>> lists_;
  std::vector<std::unique_ptr<Dims>> dims_;
};

template <class F>  // f(tensor) for every defined tensor among the arguments
void for_each_tensor(const OpDef& op, const Value* args, F&& f) {
  for (int i = 0; i < op.arg_count; ++i) {
    if (args[i].is_tensor()) f(args[i].tensor());
    else if (args[i].tag() == Value::Tag::Tensors)
      for (const Tensor& t : args[i].tensors())
        if (t.defined()) f(t);
  }
}

}  // namespace facula
