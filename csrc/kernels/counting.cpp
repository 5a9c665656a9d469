// Binary search, membership and histograms.
#include <algorithm>
#include <cmath>

#include "cpu/index_count.h"
#include "cpu/index_loops.h"
#include "cpu/index_points.h"
#include "kernels/destination.h"
#include "op/hooks/indexing.h"
#include "op/kernels/indexing.h"
#include "op/ops/arithmetic.h"
#include "op/ops/comparison.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {
namespace {

void require_real(const Tensor& t) {
  if (t.is_complex())
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(t.dtype()),
         "': complex numbers have no order");
}

// Tensors of one contiguous dtype that the search has a loop for.
Tensor searchable(const Tensor& t, DType dtype) {
  DType wanted = dtype == DType::Bool ? DType::UInt8 : compute_dtype(dtype);
  return t.dtype() == wanted ? dense(t)
                             : op::_to_copy(t, wanted, kNoDevice, MemoryFormat::Contiguous);
}

void search_into(const Tensor& boundaries, const Value& input, const Tensor& sorter, bool right,
                 bool out_int32, Rets& rets) {
  GradGuard off(false);
  require_real(boundaries);
  const bool number = !input.is_tensor();
  const Device device = boundaries.device();
  Promotion promotion;
  promotion.add(boundaries);
  promotion.add(input);
  const DType dtype = promotion.result();
  Tensor values = !number ? input.tensor()
                  : device.is_cuda()
                      ? op::full(IntSpan(), input.scalar(), dtype, std::nullopt, device)
                      : number_tensor(input.scalar(), dtype);
  require_real(values);
  if (!number && values.device() != device) device_error(device, values.device());
  DType result = out_int32 ? DType::Int32 : DType::Int64;
  const int64_t n = boundaries.dim() ? boundaries.size(-1) : 1;
  if (out_int32 && n >= INT32_MAX)
    runtime_error("the size of boundaries' last dimension should be less than ", INT32_MAX,
                  ", but we got ", n);
  if (rets.t[0].defined() && rets.t[0].dtype() != result)
    runtime_error(
        "output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        "whether out_int32 flag is True, but we got output tensor's dtype ",
        rets.t[0].dtype(), " and out_int32 flag is ", out_int32 ? "True" : "False");
  Tensor& out = exact_result(rets, 0, values.sizes(), result, device);
  if (out.is_meta() || out.numel() == 0) return;
  Tensor edges = searchable(boundaries, dtype), wanted = searchable(values, dtype);
  const int64_t rows = boundaries.dim() > 1 && n ? edges.numel() / n : 1;
  Tensor target = out.is_contiguous() ? out : empty_tensor(out.sizes(), result, device);
  const int64_t columns = wanted.numel() / rows;
  Tensor order;
  if (sorter.defined()) order = op::reshape(dense(sorter), Dims{rows, n});
  const Tensor table = op::reshape(edges, Dims{rows, n});
  const Tensor asked = op::reshape(wanted, Dims{rows, columns});
  if (out.is_cuda()) device_indexing.searchsorted(table, asked, order, right, target);
  else cpu_searchsorted(table, asked, order, right, target);
  if (!target.is(out)) op::copy_(out, target);
}

}  // namespace

void searchsorted(const Tensor& sorted_sequence, Value self, bool out_int32, bool right,
                  std::string_view side, const Tensor& sorter, Rets& rets) {
  if (!side.empty()) {
    if (side != "left" && side != "right")
      runtime_error("side can only be 'left' or 'right' but got ", side);
    if (right && side == "left")
      runtime_error(
          "side and right can't be set to opposites, got side of left while right was True");
    right = side == "right";
  }
  const Tensor& edges = sorted_sequence;
  IntSpan shape = self.is_tensor() ? self.tensor().sizes() : IntSpan();
  if (edges.dim() == 0 || (shape.empty() && edges.dim() != 1))
    runtime_error(
        "input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        edges.dim(), ") and input value's dim(", shape.size(), ")");
  if (edges.dim() != 1 &&
      (edges.sizes().size() != shape.size() ||
       !same(edges.sizes().first(shape.size() - 1), shape.first(shape.size() - 1))))
    runtime_error(
        "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and input value tensor must match, but we got boundaries tensor ",
        edges.sizes(), " and input value tensor ", shape);
  if (sorter.defined()) {
    if (sorter.device() != edges.device()) device_error(edges.device(), sorter.device());
    if (!same(sorter.sizes(), edges.sizes()))
      runtime_error("boundary and sorter must have the same size, but got boundary tensor ",
                    edges.sizes(), " and got sorter tensor ", sorter.sizes());
    if (sorter.dtype() != DType::Int64)
      runtime_error("sorter must be a tensor of long dtype but got dtype ",
                    legacy_dtype_name(sorter.dtype()));
    if (sorter.is_cpu()) {
      Tensor flat = dense(sorter);
      if (find_bad_index(flat.data_as<int64_t>(), flat.numel(), edges.size(-1), false) >= 0)
        runtime_error("sorter index out of range; valid are 0 to ", edges.size(-1) - 1);
    }
  }
  search_into(edges, self, sorter, right, out_int32, rets);
}

void bucketize(Value self, const Tensor& boundaries, bool out_int32, bool right, Rets& rets) {
  if (boundaries.dim() != 1)
    runtime_error("boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  search_into(boundaries, self, Tensor(), right, out_int32, rets);
}

Tensor isin(Value elements, Value test_elements, bool, bool invert) {
  GradGuard off(false);
  if (!elements.is_tensor() && !test_elements.is_tensor())
    type_error("at least one of elements and test_elements must be a tensor");
  for (const Value& v : {elements, test_elements}) {
    const DType given = v.is_tensor()             ? v.tensor().dtype()
                        : v.scalar().is_bool()    ? DType::Bool
                        : v.scalar().is_complex() ? DType::Complex128
                                                  : DType::None;
    if (given == DType::Bool || (given != DType::None && is_complex(given)))
      runtime_error("Unsupported input type encountered for isin(): ", legacy_dtype_name(given),
                    given == DType::Bool ? "; convert to facula.uint8" : "; it has no order");
  }
  Promotion promotion;
  promotion.add(elements);
  promotion.add(test_elements);
  const DType dtype = promotion.result();
  const Device device = (elements.is_tensor() ? elements : test_elements).tensor().device();
  auto typed = [&](const Value& v) {
    if (!v.is_tensor()) return op::full(IntSpan(), v.scalar(), dtype, std::nullopt, device);
    return v.tensor().dtype() == dtype ? v.tensor() : op::_to_copy(v.tensor(), dtype);
  };
  Tensor x = typed(elements), tests = op::reshape(typed(test_elements), Dims{-1});
  require_real(x);
  if (tests.numel() == 0 || x.is_meta() || tests.is_meta())
    return op::full(x.sizes(), invert, DType::Bool, std::nullopt, x.device());
  Tensor sorted = std::get<0>(op::sort(tests, 0, false));
  Tensor at = op::searchsorted(sorted, x);
  Tensor found = op::take(sorted, op::clamp_max(at, sorted.numel() - 1));
  return invert ? op::ne(found, x) : op::eq(found, x);
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  if (minlength < 0) runtime_error("minlength should be >= 0, got ", minlength);
  if (!is_integral(self.dtype()))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; the input must have an integer dtype");
  if (self.is_meta())
    fail(ErrorKind::NotImplemented,
         "cannot run on the meta device: the shape of the result depends on the data");
  if (self.dim() == 1 && self.numel() == 0)
    return op::zeros(Dims{minlength}, DType::Int64, std::nullopt, self.device());
  const bool weighted = weights.defined();
  if (self.dim() != 1)
    runtime_error("bincount only supports 1-d non-negative integral inputs, got shape ",
                  self.sizes());
  if (weighted && (weights.dim() != 1 || weights.numel() != self.numel()))
    runtime_error("weights should be 1-d and have the same length as input, but got shapes ",
                  weights.sizes(), " and ", self.sizes());
  GradGuard off(false);
  Tensor values = dense_int64(self);
  int64_t low = 0, high = 0;
  if (self.is_cuda()) {
    low = item_of(op::min(values)).to_int();
    high = item_of(op::max(values)).to_int();
  } else {
    const int64_t* v = values.data_as<int64_t>();
    low = high = v[0];
    index_loops().extremes(v, values.numel(), &low, &high);
  }
  if (low < 0)
    runtime_error("bincount only supports 1-d non-negative integral inputs, but the input holds ",
                  low);
  DType dtype = !weighted                           ? DType::Int64
                : weights.dtype() == DType::Float32 ? DType::Float32
                                                    : DType::Float64;
  Tensor counts =
      op::zeros(Dims{std::max(high + 1, minlength)}, dtype, std::nullopt, self.device());
  Tensor amounts;
  if (weighted)
    amounts = weights.dtype() == dtype
                  ? dense(weights)
                  : op::_to_copy(weights, dtype, kNoDevice, MemoryFormat::Contiguous);
  if (self.is_cuda()) {
    if (!weighted)
      amounts = op::expand(op::ones(Dims{1}, dtype, std::nullopt, self.device()), values.sizes());
    return op::index_add_(counts, 0, values, amounts);
  }
  cpu_bincount(values, amounts, counts);
  return counts;
}

void histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max, Rets& rets) {
  if (!is_floating(self.dtype()))
    fail(ErrorKind::NotImplemented, "not implemented for '", legacy_dtype_name(self.dtype()),
         "'; convert the input to a floating-point dtype");
  if (bins <= 0) runtime_error("bins must be > 0, but got ", bins);
  double low = min.to_double(), high = max.to_double();
  GradGuard off(false);
  if (low == high && self.numel() && !self.is_meta()) {
    low = item_of(op::_to_copy(op::min(self), DType::Float64)).to_double();
    high = item_of(op::_to_copy(op::max(self), DType::Float64)).to_double();
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(low) || !std::isfinite(high))
    runtime_error("range of [", low, ", ", high, "] is not finite");
  if (low > high) runtime_error("max must be larger than min, got min=", low, " and max=", high);
  Tensor& out = exact_result(rets, 0, Dims{bins}, self.dtype(), self.device());
  if (out.is_meta()) return;
  const DType wide = compute_dtype(self.dtype());
  Tensor x = self.dtype() == wide ? dense(self)
                                  : op::_to_copy(self, wide, kNoDevice, MemoryFormat::Contiguous);
  Tensor counts = op::zeros(Dims{bins}, wide, std::nullopt, self.device());
  if (self.is_cuda()) {
    // The last bin includes its upper end; what lies outside, or is NaN, adds nothing to the first.
    const Tensor flat = op::reshape(x, Dims{-1});
    const Tensor inside = op::logical_and(op::ge(flat, low), op::le(flat, high));
    const double width = wide == DType::Float32 ? double(float(high) - float(low)) : high - low;
    const Tensor at = op::_to_copy((flat - low) * double(bins) / width, DType::Int64);
    op::index_add_(counts, 0, op::where(inside, op::clamp_max(at, bins - 1), 0),
                   op::_to_copy(inside, wide));
  } else {
    cpu_histogram(x, low, high, counts);
  }
  op::copy_(out, counts);
}

}  // namespace facula::kernels
