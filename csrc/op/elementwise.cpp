#include "op/elementwise.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "cpu/cast.h"
#include "cpu/iterate.h"
#include "cpu/join_rows.h"
#include "cpu/row_runs.h"
#include "cpu/stream.h"
#include "cpu/strided_copy.h"
#include "op/device_hooks.h"
#include "op/half_tables.h"
#include "op/ops/copying.h"
#include "op/tensor_operators.h"

namespace facula {

void (*warn)(const char*) = nullptr;

std::string dtype_set_text(uint32_t mask) {
  std::string s;
  for (int d = 0; d < kDTypes; ++d)
    if (mask >> d & 1) s += (s.empty() ? "" : ", ") + std::string(dtype_name(DType(d)));
  return s;
}

Dims result_strides(IntSpan shape, const Tensor* const* inputs, int n) {
  int ndim = int(shape.size());
  bool contiguous = true, equal = true;
  const Tensor* first = nullptr;
  for (int i = 0; i < n; ++i) {
    const Tensor& t = *inputs[i];
    if (!same(t.sizes(), shape)) {
      // A 0-dim input says nothing about the layout; another shape is decided by the sort below.
      if (t.dim() > 0) contiguous = contiguous && t.is_contiguous(), equal = false;
      continue;
    }
    contiguous = contiguous && t.is_contiguous();
    if (!first) first = &t;
    else equal = equal && same(t.strides(), first->strides());
  }
  if (contiguous || ndim < 2) return contiguous_strides(shape);
  if (equal && first && non_overlapping_and_dense(first->sizes(), first->strides()))
    return Dims(first->strides());

  check_rank(ndim);
  int perm[kMaxDims];  // perm[0] is the fastest dimension
  for (int i = 0; i < ndim; ++i) perm[i] = ndim - 1 - i;
  auto stride_at = [&](const Tensor& t, int d) -> int64_t {
    int k = d - (ndim - int(t.dim()));
    return k < 0 || (t.sizes()[k] == 1 && shape[d] != 1) ? 0 : t.strides()[k];
  };
  auto compare = [&](int a, int b) {
    for (int i = 0; i < n; ++i) {
      int64_t x = stride_at(*inputs[i], a), y = stride_at(*inputs[i], b);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (shape[a] > shape[b]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < ndim; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      int c = compare(perm[j], perm[at]);
      if (c > 0) {
        std::swap(perm[j], perm[at]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  Dims strides(ndim);
  int64_t s = 1;
  for (int i = 0; i < ndim; ++i) {
    strides[perm[i]] = s;
    s *= std::max<int64_t>(shape[perm[i]], 1);
  }
  return strides;
}

Device common_device(const Tensor* const* tensors, int n) {
  Device device{DeviceType::CPU, -1};
  bool fixed = false;
  for (int i = 0; i < n; ++i) {
    const Tensor& t = *tensors[i];
    bool loose = t.dim() == 0 && t.is_cpu();
    if (!fixed && !loose) {
      device = t.device();
      fixed = true;
    } else if (!loose && t.device() != device) {
      device_error(device, t.device());
    }
  }
  return device;
}

bool check_overlap(const Tensor& out, const Tensor& in) {
  if (out.is(in) || !may_share_memory(out, in)) return false;
  if (out.data() == in.data() && out.item_size() == in.item_size() &&
      same(out.sizes(), in.sizes()) && same(out.strides(), in.strides()))
    return false;
  if (non_overlapping_and_dense(out.sizes(), out.strides()) &&
      non_overlapping_and_dense(in.sizes(), in.strides()))
    aliasing_error();
  // Interleaved views (x[::2] and x[1::2]) share a range but no element: all places of both are a
  // multiple of `step` apart, and the distance of the first ones is none.
  if (out.item_size() == in.item_size()) {
    int64_t step = 0, item = int64_t(out.item_size());
    for (const Tensor* t : {&out, &in})
      for (int64_t d = 0; d < t->dim(); ++d)
        if (t->sizes()[d] > 1) step = std::gcd(step, t->strides()[d]);
    int64_t distance = out.data() - in.data();
    if (distance % item == 0 && step && distance / item % step != 0) return false;
  }
  return true;
}

void prepare_result(Rets& rets, int i, IntSpan shape, DType dtype, Device device) {
  Tensor& out = rets.t[i];
  if (!out.defined()) {
    out = empty_tensor(shape, dtype, device);
    return;
  }
  if (out.device() != device) device_error(device, out.device());
  if (!can_cast(dtype, out.dtype())) cast_error(dtype, out.dtype());
  if (!same(out.sizes(), shape)) {
    if (rets.destination == Destination::InPlace)
      runtime_error("output with shape ", out.sizes(), " doesn't match the broadcast shape ", shape,
                    ": an in-place operation cannot change the shape of its tensor");
    if (out.numel() != 0 && warn)
      warn(text("An output with one or more elements was resized since it had shape ", out.sizes(),
                ", which does not match the required output shape ", shape,
                ". Pass an empty tensor, or one of the right shape, as out=.")
               .c_str());
    resize_tensor(out, shape);
  }
  if (!out.is_contiguous() && has_internal_overlap(out.sizes(), out.strides())) overlap_error();
}

namespace {

struct Operand {
  char* data;
  const Tensor* tensor;  // null for numbers
  DType dtype;
  alignas(16) char number[16];
};

// Whether a result of that much work is written past the cache. That costs a little for each block,
// which only pays where memory is the limit: for costly formulas, when many processors share it.
bool pays_to_stream(const ElementwiseDef& d, int64_t bytes) {
  constexpr int kMany = 8;
  return exceeds_cache(bytes) && (!d.costly || num_threads() >= kMany);
}

[[noreturn]] void refuse_dtype(const OpDef& op, DType dtype) {
  const std::string accepted = dtype_set_text(op.elementwise->dtypes);
  const Refusal& r = op.elementwise->refusal;
  if (r.words && category(dtype) == r.category)
    fail(r.kind, r.words, " Got ", dtype, "; accepted are ", accepted);
  dtype_error(dtype, accepted);
}

// What alpha and beta may be for a result of that dtype.
void check_factor(const char* name, const Scalar& factor, DType result) {
  if (factor.is_bool() && result != DType::Bool)
    runtime_error("Boolean ", name, " only supported for Boolean results. The result is ", result);
  if (category(result) <= Category::Integral && factor.category() >= Category::Floating)
    runtime_error("For integral input tensors, argument ", name,
                  " must not be a floating point number.");
}

bool repeats(const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return true;
  return false;
}

bool has_hazard(const Tensor& out, const Tensor* const* inputs, int n) {
  bool found = false;
  for (int i = 0; i < n; ++i) found |= check_overlap(out, *inputs[i]);
  return found;
}

// Runs the operator on copies of the inputs that the destination may overwrite too early.
void without_hazard(const OpDef& op, const Value* args, Rets& rets) {
  Tensor copies[kMaxInputs];
  std::vector<Value> safe(args, args + op.arg_count);
  GradGuard off(false);
  for (int i = 0; i < op.elementwise->inputs; ++i) {
    Value& v = safe[op.elementwise->operands[i]];
    if (!v.is_tensor() || !check_overlap(rets.t[0], v.tensor())) continue;
    copies[i] = op::clone(v.tensor());
    v = Value(copies[i]);
  }
  elementwise_kernel(op, safe.data(), rets);
}

// Half precision for an out= of another dtype is rounded to what it would be without it.
void by_way_of_halves(const OpDef& op, const Value* args, Rets& rets) {
  Rets halves;
  elementwise_kernel(op, args, halves);
  GradGuard off(false);
  op::copy_(rets.t[0], halves.t[0]);
}

// An operand that is repeated (a bias of another type) is converted once, not each time.
void convert_repeated(Operand& o, Tensor& to, DType dtype) {
  const Tensor& from = *o.tensor;
  to = empty_tensor(from.sizes(), dtype, from.device());
  Iteration it;
  it.begin(from.sizes());
  it.add(to.data(), to.sizes(), to.strides(), int64_t(to.item_size()));
  it.add(from.data(), from.sizes(), from.strides(), int64_t(from.item_size()));
  it.finish();
  const CastLoop cast = cast_loop(from.dtype(), dtype);
  it.run(0, it.numel,
         [&](char* const* p, const int64_t* s, int64_t n) { cast(p[0], s[0], p[1], s[1], n); });
  o.tensor = &to;
  o.dtype = dtype;
  o.data = to.data();
}

// Whether an operand is better brought into the layout of the result first. It may have its
// neighbours along another dimension, and be so large that each element read in the result's order
// would come with a line of memory of its own; or it has the shape of the result, but is all that
// keeps many short rows apart.
bool pays_to_turn(const Iteration& it, const Tensor& t, const Tensor& out) {
  constexpr int64_t kFewest = int64_t(1) << 20, kMost = int64_t(1) << 28, kLine = 64, kShort = 16,
                    kManyRows = 256;
  const int64_t item = int64_t(t.item_size()), bytes = t.numel() * item;
  if (bytes > kMost || !same(t.sizes(), out.sizes()) || same(t.strides(), out.strides()) ||
      !non_overlapping_and_dense(out.sizes(), out.strides()))
    return false;
  if (it.ndim < 2) return false;
  if (it.sizes[0] < kShort && it.numel / it.sizes[0] >= kManyRows) return true;
  if (bytes < kFewest) return false;
  auto is_run = [kShort](const Tensor& x, int64_t d) {
    return x.strides()[d] == 1 && x.sizes()[d] >= kShort;
  };
  bool turned = false, runs = false;
  for (int64_t d = 0; d < t.dim(); ++d) {
    turned |= is_run(out, d) && t.strides()[d] * item >= kLine;
    runs |= is_run(t, d);
  }
  return turned && runs;
}

// Such an operand is copied first, which is done by tiles.
void turn_round(Operand& o, Tensor& to, const Tensor& out) {
  const Tensor& from = *o.tensor;
  to = empty_tensor(out.sizes(), out.strides(), from.dtype(), from.device());
  const int64_t item = int64_t(from.item_size());
  Iteration it;
  it.begin(out.sizes());
  it.add(to.data(), to.sizes(), to.strides(), item);
  it.add(from.data(), from.sizes(), from.strides(), item);
  it.finish();
  copy_strided_operands(it, cast_loop(from.dtype(), from.dtype()), item, item, true);
  o.tensor = &to;
  o.data = to.data();
}

constexpr int64_t kChunk = 512;  // elements converted at a time: fits the first-level cache

// Runs a loop whose operands are not all of the compute type, through small buffers.
struct CastingLoop {
  Loop loop;
  const void* params;
  int operands;
  CastLoop casts[kMaxOperands];  // null where no conversion is needed; [0] converts the result
  int64_t items[kMaxOperands];   // item size within the loop
  Loop of_halves;  // reads and writes half precision itself where it is dense; may be null

  void operator()(char* const* p, const int64_t* s, int64_t n) const {
    if (of_halves && runs_as_halves(p, s, n)) return;
    alignas(64) char memory[kMaxOperands * (kChunk * 16 + 64)];
    char* buffers[kMaxOperands];  // one after the other, not at the same places of their pages
    buffers[0] = memory;
    for (int o = 1; o < operands; ++o) buffers[o] = buffers[o - 1] + kChunk * items[o - 1] + 64;
    char* q[kMaxOperands];
    int64_t step[kMaxOperands];
    for (int64_t done = 0; done < n; done += kChunk) {
      int64_t m = std::min(kChunk, n - done);
      for (int o = 0; o < operands; ++o) {
        char* at = p[o] + done * s[o];
        q[o] = casts[o] ? buffers[o] : at;
        step[o] = casts[o] ? items[o] : s[o];
        if (!casts[o] || o == 0) continue;
        if (s[o] == 0) {
          casts[o](buffers[o], items[o], at, 0, 1);
          step[o] = 0;
        } else {
          casts[o](buffers[o], items[o], at, s[o], m);
        }
      }
      loop(q, step, m, params);
      if (casts[0]) casts[0](p[0] + done * s[0], s[0], buffers[0], items[0], m);
    }
  }

 private:
  bool runs_as_halves(char* const* p, const int64_t* s, int64_t n) const {
    if (s[0] != 2) return false;  // a single element may have any stride
    for (int o = 1; o < operands; ++o)
      if (s[o] != 2 && (s[o] != 0 || operands == 2)) return false;
    char* q[kMaxOperands];
    float numbers[kMaxOperands];
    q[0] = p[0];
    for (int o = 1; o < operands; ++o) {
      q[o] = p[o];
      if (s[o] != 0 || !casts[o]) continue;
      q[o] = reinterpret_cast<char*>(numbers + o);
      casts[o](q[o], 4, p[o], 0, 1);
    }
    of_halves(q, s, n, params);
    return true;
  }
};

}  // namespace

void elementwise_kernel(const OpDef& op, const Value* args, Rets& rets) {
  const ElementwiseDef& d = *op.elementwise;
  int n = d.inputs;
  const Tensor* tensors[kMaxInputs];
  int count = 0;
  Promotion promotion;
  bool same_shape = true;
  uint8_t keys = 0;
  for (int i = 0; i < n; ++i) {
    const Value& v = args[d.operands[i]];
    if (!(d.bool_operands >> i & 1)) promotion.add(v);
    if (!v.is_tensor()) continue;
    const Tensor& t = v.tensor();
    keys |= t->keys;
    if (count) same_shape = same_shape && same(t.sizes(), tensors[0]->sizes());
    tensors[count++] = &t;
  }
  for (int i = 0; i < n; ++i)
    if (d.bool_operands >> i & 1 && d.promote != Promote::First) {
      const Value& v = args[d.operands[i]];
      if (v.is_tensor() && v.tensor().dtype() != DType::Bool && v.tensor().dtype() != DType::UInt8)
        runtime_error(op.name, " expected ", op.args[d.operands[i]].name,
                      " to be a boolean tensor, but got a tensor with dtype ",
                      legacy_dtype_name(v.tensor().dtype()));
    }

  DType result = promotion.result();
  if (d.promote == Promote::Float && category(result) < Category::Floating)
    result = default_dtype();
  for (int i = 0; i < d.params; ++i)  // numbers of a higher category than the result fail
    if (d.param_kinds[i] == ParamKind::Compute) {
      const char* name = op.args[d.param_args[i]].name;
      const Scalar factor = args[d.param_args[i]].scalar();
      if (d.promote == Promote::First || factor.category() == Category::Integral) continue;
      if (std::strcmp(name, "value") != 0) check_factor(name, factor, result);
      if (factor.is_complex() && !is_complex(result))
        runtime_error("For non-complex input tensors, argument ", name,
                      " must not be a complex number.");
    }
  if (!count && category(result) >= Category::Floating)  // numbers alone keep full precision
    result = is_complex(result) ? DType::Complex128 : DType::Float64;
  if (d.promote == Promote::First) result = args[d.operands[0]].tensor().dtype();
  DType compute = compute_dtype(result);
  if (d.check) d.check(args, compute);
  if (!(d.dtypes >> int(compute) & 1)) refuse_dtype(op, result);
  if (d.out == OutKind::Real && is_complex(result) && rets.destination == Destination::InPlace)
    runtime_error("In-place ", op.name, " is not supported for complex tensors.");
  DType loop_out = d.out == OutKind::Bool   ? DType::Bool
                   : d.out == OutKind::Real ? to_real(compute)
                                            : compute;
  DType out_dtype = d.out == OutKind::Bool   ? DType::Bool
                    : d.out == OutKind::Real ? to_real(result)
                                             : result;

  // Shape and device.
  Dims broadcast;
  IntSpan shape;
  if (count) shape = tensors[0]->sizes();
  if (!same_shape) {
    broadcast = Dims(shape);
    for (int i = 1; i < count; ++i) broadcast = broadcast_shapes(broadcast, tensors[i]->sizes());
    shape = broadcast;
  }
  Device device;
  if (keys & (kKeyCuda | kKeyMeta) || (rets.t[0].defined() && !rets.t[0].is_cpu()))
    device = common_device(tensors, count);

  Tensor& out = rets.t[0];
  bool fresh = !out.defined();
  if (fresh) {
    bool dense = same_shape;
    for (int i = 0; i < count; ++i) dense = dense && tensors[i]->is_contiguous();
    // What a mask fills (masked_fill) is a contiguous copy in PyTorch, which programs then view.
    if (d.promote == Promote::First && d.bool_operands) dense = true;
    out = dense ? empty_tensor(shape, out_dtype, device)
                : empty_tensor(shape, result_strides(shape, tensors, count), out_dtype, device);
    if (!count) out->flags |= kWeak;
  } else {
    const bool resized = rets.destination == Destination::Out && !same(out.sizes(), shape);
    for (int i = 0; resized && i < count; ++i)
      if (tensors[i]->is(out))
        runtime_error("output with shape ", out.sizes(), " doesn't match the broadcast shape ",
                      shape, ": out= is an operand too, so it cannot be resized");
    if (d.into_repeated && rets.destination == Destination::InPlace && repeats(out) &&
        same(out.sizes(), shape))
      return d.into_repeated(args, out);
    prepare_result(rets, 0, shape, out_dtype, device);
    if (resized) out->set_geometry(shape, result_strides(shape, tensors, count));
    if (has_hazard(out, tensors, count)) return without_hazard(op, args, rets);
    if (is_reduced_float(out_dtype) && out.dtype() != out_dtype)
      return by_way_of_halves(op, args, rets);
  }
  if (out.numel() == 0 || device.is_meta()) return;

  // Parameters and numbers in the compute type.
  alignas(16) char params[kMaxInputs * 16];
  for (int i = 0; i < d.params; ++i) {
    const Value& v = args[d.param_args[i]];
    switch (d.param_kinds[i]) {
      case ParamKind::Compute: v.scalar().store(compute, params + 16 * i); break;
      case ParamKind::Real:
        *reinterpret_cast<double*>(params + 16 * i) =
            v.is_none() ? std::numeric_limits<double>::quiet_NaN() : v.to_double();
        break;
      case ParamKind::Int: *reinterpret_cast<int64_t*>(params + 16 * i) = v.to_int(); break;
      case ParamKind::Bool: *reinterpret_cast<bool*>(params + 16 * i) = v.to_bool(); break;
    }
  }
  const ElementwiseDef* quick = d.shortcut ? d.shortcut(args, compute) : nullptr;
  if (device.is_cuda()) {
    if (!quick) return device_hooks().elementwise(op, d, args, out, compute, loop_out, params);
    ElementwiseDef chosen = *quick;
    std::copy(std::begin(d.operands), std::end(d.operands), chosen.operands);
    return device_hooks().elementwise(op, chosen, args, out, compute, loop_out, params);
  }
  if (quick) n = quick->inputs;
  Loop loop = (quick ? quick : &d)->loops[isa_level()][int(compute)];
  Loop of_halves = (quick ? quick : &d)->loops[isa_level()][int(result)];
  if (d.costly && is_reduced_float(result) && !quick && count == n &&
      std::all_of(tensors, tensors + n, [&](const Tensor* t) { return t->dtype() == result; }))
    if (const Loop look_up = half_table_loop(d, result, out.numel(), params)) of_halves = look_up;
  Operand operands[kMaxInputs];
  bool equal_halves = is_reduced_float(result) && out.dtype() == result && of_halves;
  bool casting = out.dtype() != loop_out, all_dense = same_shape && out.is_contiguous();
  for (int i = 0; i < n; ++i) {
    const Value& v = args[d.operands[i]];
    Operand& o = operands[i];
    DType wanted = d.bool_operands >> i & 1 ? DType::Bool : compute;
    if (!v.is_tensor()) {
      o.data = o.number;
      o.tensor = nullptr;
      o.dtype = wanted;
      v.scalar().store(wanted, o.number);
      continue;
    }
    const Tensor& t = v.tensor();
    o.tensor = &t;
    o.dtype = t.dtype();
    o.data = t.data();
    if (t.numel() == 1 && out.numel() != 1) {  // read once, as a number
      cast_loop(t.dtype(), wanted)(o.number, 16, t.data(), 0, 1);
      o.data = o.number;
      o.tensor = nullptr;
      o.dtype = wanted;
      continue;
    }
    casting |= t.dtype() != wanted;
    equal_halves = equal_halves && t.dtype() == result;
    all_dense = all_dense && t.is_contiguous();
  }

  const int64_t numel = out.numel();
  if (all_dense && equal_halves) {
    loop = of_halves;
    casting = false;
  }
  if (all_dense && !casting) {
    int64_t strides[kMaxOperands];
    char* pointers[kMaxOperands];
    pointers[0] = out.data();
    strides[0] = int64_t(out.item_size());
    for (int i = 0; i < n; ++i) {
      pointers[i + 1] = operands[i].data;
      strides[i + 1] = operands[i].tensor ? int64_t(item_size(operands[i].dtype)) : 0;
    }
    if (numel <= kGrain) return loop(pointers, strides, numel, params);
    int64_t bytes = strides[0];  // for each element; what is given twice is read once
    for (int i = 1; i <= n; ++i)
      if (std::find(pointers + 1, pointers + i, pointers[i]) == pointers + i) bytes += strides[i];
    const bool streamed = fresh && pays_to_stream(d, numel * bytes);
    parallel_for(0, numel, kGrain, [&](int64_t b, int64_t e) {
      char* q[kMaxOperands];
      if (!streamed) {
        for (int o = 0; o <= n; ++o) q[o] = pointers[o] + b * strides[o];
        return loop(q, strides, e - b, params);
      }
      stream_blocks(pointers[0] + b * strides[0], strides[0], e - b,
                    [&](char* to, int64_t first, int64_t m) {
                      for (int o = 1; o <= n; ++o) q[o] = pointers[o] + (b + first) * strides[o];
                      q[0] = to;
                      loop(q, strides, m, params);
                    });
      finish_streams();
    });
    return;
  }

  Tensor converted[kMaxInputs];
  if (casting && !equal_halves && numel > kChunk) {
    constexpr int64_t kTimes = 4;
    casting = out.dtype() != loop_out;
    for (int i = 0; i < n; ++i) {
      Operand& o = operands[i];
      const DType wanted = d.bool_operands >> i & 1 ? DType::Bool : compute;
      if (!o.tensor || o.dtype == wanted) continue;
      if (o.tensor->numel() * kTimes <= numel) convert_repeated(o, converted[i], wanted);
      else casting = true;
    }
  }

  auto iteration = [&] {
    Iteration all;
    all.begin(shape);
    all.add(out.data(), out.sizes(), out.strides(), int64_t(out.item_size()));
    for (int i = 0; i < n; ++i) {
      const Operand& o = operands[i];
      if (o.tensor)
        all.add(o.data, o.tensor->sizes(), o.tensor->strides(), int64_t(o.tensor->item_size()));
      else all.add(o.data, {}, {}, 1);
    }
    all.finish();
    return all;
  };
  Iteration it = iteration();
  bool turned = false;
  for (int i = 0; i < n; ++i)
    if (Operand& o = operands[i]; o.tensor && pays_to_turn(it, *o.tensor, out)) {
      turn_round(o, converted[i], out);
      turned = true;
    }
  if (turned) it = iteration();
  int64_t items[kMaxOperands] = {int64_t(out.item_size())};
  int64_t bytes = numel * items[0];
  for (int i = 0; i < n; ++i) {
    items[i + 1] = int64_t(item_size(operands[i].dtype));
    if (operands[i].tensor) bytes += operands[i].tensor->numel() * items[i + 1];
  }
  const bool streamed = fresh && pays_to_stream(d, bytes);
  const JoinedRows joined(it, items);
  auto run = [&](auto&& body) {
    if (streamed && joined)
      joined.run_parallel(streamed_body(it.operands, items[0], body), finish_streams);
    else if (streamed) run_streamed(it, items[0], body);
    else if (joined) joined.run_parallel(body, [] {});
    else it.run_parallel(body);
  };
  const RowsLoop* rows = (quick ? quick : &d)->rows[isa_level()];
  if (rows && !casting && !streamed && !joined)
    if (const RowRuns runs(it, items); runs) return runs.run_parallel(rows[int(compute)], params);
  if (!casting)
    return run([&](char* const* p, const int64_t* s, int64_t m) { loop(p, s, m, params); });
  CastingLoop cl{loop, params, n + 1, {}, {}, equal_halves ? of_halves : nullptr};
  cl.casts[0] = out.dtype() == loop_out ? nullptr : cast_loop(loop_out, out.dtype());
  cl.items[0] = int64_t(item_size(loop_out));
  for (int i = 0; i < n; ++i) {
    DType wanted = d.bool_operands >> i & 1 ? DType::Bool : compute;
    cl.casts[i + 1] = operands[i].dtype == wanted ? nullptr : cast_loop(operands[i].dtype, wanted);
    cl.items[i + 1] = int64_t(item_size(wanted));
  }
  run(cl);
}

}  // namespace facula
