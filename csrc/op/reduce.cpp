#include "op/reduce.h"

#include <algorithm>
#include <cstring>

#include "cpu/reduce.h"
#include "op/device_hooks.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula {

Dims reduced_shape(IntSpan sizes, uint64_t mask, bool keepdim) {
  Dims out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool gone = mask >> d & 1;
    if (!gone) out.push_back(sizes[d]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

uint64_t dims_of(const Value& dim, int64_t ndim) {
  check_rank(ndim);
  if (dim.is_none()) return dim_mask({}, ndim);
  if (dim.tag() == Value::Tag::Ints) return dim_mask(dim.ints(), ndim);
  return ndim ? uint64_t(1) << wrap_dim(dim.to_int(), ndim) : (wrap_dim(dim.to_int(), 0), 0);
}

// any and all over no dimensions say of each element whether it is true; other reductions take an
// empty list for every dimension. Both as in PyTorch.
static bool over_none(const ReduceDef& d, const Value* args) {
  return d.result == DType::Bool && d.dim_arg >= 0 && args[d.dim_arg].tag() == Value::Tag::Ints &&
         args[d.dim_arg].ints().empty();
}

static void truth_of_each(const Tensor& self, Rets& rets) {
  const DType result = self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  const Tensor truth = op::_to_copy(op::ne(self, 0), result);
  if (rets.destination == Destination::New) {
    rets.t[0] = truth;
    return;
  }
  prepare_result(rets, 0, self.sizes(), result, self.device());
  op::copy_(rets.t[0], truth);
}

static void check_out_dtype(const OpDef& op, DType input, DType out) {
  if (op.reduce->result == DType::Bool && out != DType::Bool && out != DType::UInt8)
    runtime_error(op.name, " only supports bool tensor for result, got: ", legacy_dtype_name(out));
  if (input != out && (std::strcmp(op.name, "amax") == 0 || std::strcmp(op.name, "amin") == 0))
    runtime_error("Expected the dtype for input and out to match, but got ",
                  legacy_dtype_name(input), " for input's dtype and ", legacy_dtype_name(out),
                  " for out's dtype.");
}

void reduce_kernel(const OpDef& op, const Value* args, Rets& rets) {
  const ReduceDef& d = *op.reduce;
  const Tensor& self = args[0].tensor();
  if (rets.destination == Destination::Out) check_out_dtype(op, self.dtype(), rets.t[0].dtype());
  if (over_none(d, args)) return truth_of_each(self, rets);
  const Value none;
  uint64_t mask = dims_of(d.dim_arg >= 0 ? args[d.dim_arg] : none, self.dim());
  bool keepdim = d.keepdim_arg >= 0 && args[d.keepdim_arg].to_bool();
  DType asked = d.dtype_arg >= 0 ? args[d.dtype_arg].dtype() : DType::None;

  DType result = asked;
  if (result == DType::None && rets.destination == Destination::Out && d.result == DType::None)
    result = d.integers != DType::None ? rets.t[0].dtype() : self.dtype();
  if (result == DType::None) {
    if (d.result != DType::None) result = self.dtype() == DType::UInt8 ? DType::UInt8 : d.result;
    else if (is_integral(self.dtype(), true) && d.integers != DType::None) result = d.integers;
    else result = self.dtype();
  }
  DType acc = d.result != DType::None ? d.result : compute_dtype(result);
  if (!(d.dtypes >> int(acc) & 1)) dtype_error(self.dtype(), dtype_set_text(d.dtypes));
  const bool over_all =
      d.dim_arg < 0 || args[d.dim_arg].is_none() ||
      (args[d.dim_arg].tag() == Value::Tag::Ints && args[d.dim_arg].ints().empty());
  if (!d.has_init && self.numel() == 0 && over_all)
    runtime_error(
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
        "dim with the 'dim' argument; the input has shape ",
        self.sizes());
  if (!d.has_init)
    for (int64_t i = 0; i < self.dim(); ++i)
      if (mask >> i & 1 && self.sizes()[i] == 0)
        index_error("Expected reduction dim ", i, " to have non-zero size, since '", op.name,
                    "' has no value for zero elements; the input has shape ", self.sizes());

  Dims shape = reduced_shape(self.sizes(), mask, keepdim);
  prepare_result(rets, 0, shape, result, self.device());
  Tensor& out = rets.t[0];
  if (rets.destination != Destination::New && check_overlap(out, self)) {
    GradGuard off(false);
    Tensor copy = op::clone(self);
    std::vector<Value> safe(args, args + op.arg_count);
    safe[0] = Value(copy);
    return reduce_kernel(op, safe.data(), rets);
  }
  if (out.is_meta() || out.numel() == 0) return;
  if (out.is_cuda()) return device_hooks().reduce(op, d, self, mask, out);
  cpu_reduce(d, self, mask, keepdim, acc, out);
}

}  // namespace facula
