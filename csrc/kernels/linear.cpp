// Layers that multiply with a weight: the product and its bias in one pass.
#include "op/kernels/linear.h"
#include "cpu/gemm.h"
#include "kernels/destination.h"
#include "op/hooks/products.h"
#include "op/ops/copying.h"
#include "op/ops/linear.h"
#include "op/ops/mathematics.h"
#include "op/ops/products.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

namespace {

int64_t rows_of(const Tensor& t) {  // what is left without the last dimension
  return checked_numel(t.sizes().first(size_t(t.dim() - 1)));
}

void check_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (input.dim() == 0)
    runtime_error(
        "both arguments to matmul need to be at least 1D: input has no dimensions, "
        "expected (*, in_features)");
  if (weight.dim() != 1 && weight.dim() != 2)
    runtime_error("weight must be (out_features, in_features) or (in_features,), got shape ",
                  weight.sizes());
  if (input.dtype() != weight.dtype())
    runtime_error("mat1 and mat2 must have the same dtype, but got ",
                  legacy_dtype_name(input.dtype()), " and ", legacy_dtype_name(weight.dtype()),
                  " (input is ", input.dtype(), ", weight ", weight.dtype(),
                  "). Convert one of them with .to(...)");
  if (input.dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented,
         "\"addmm_impl_cpu_\" not implemented for 'Bool'; convert input and weight to an integer "
         "or floating-point dtype");
  if (input.device() != weight.device()) device_error(input.device(), weight.device());
  if (input.size(-1) != weight.size(-1))
    runtime_error("mat1 and mat2 shapes cannot be multiplied (", rows_of(input), "x",
                  input.size(-1), " and ", weight.size(-1), "x",
                  weight.dim() == 2 ? weight.size(0) : 1,
                  "): the last dimension of input, of shape ", input.sizes(),
                  ", must be the in_features of weight, of shape ", weight.sizes());
  if (!bias.defined()) return;
  if (bias.dtype() != input.dtype())
    runtime_error("self and mat2 must have the same dtype, but got ",
                  legacy_dtype_name(bias.dtype()), " and ", legacy_dtype_name(input.dtype()),
                  " (bias is ", bias.dtype(), ", input ", input.dtype(), ")");
  if (bias.device() != input.device()) device_error(bias.device(), input.device());
  const int64_t features = weight.dim() == 2 ? weight.size(0) : 1;
  if (bias.numel() != 1 && (bias.dim() != 1 || bias.numel() != features))
    runtime_error("bias must be (out_features,) = (", features, ",), got shape ", bias.sizes());
}

Dims output_shape(const Tensor& input, const Tensor& weight) {
  Dims shape(input.sizes().first(size_t(input.dim() - 1)));
  if (weight.dim() == 2) shape.push_back(weight.size(0));
  return shape;
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_linear(input, weight, bias);
  const Dims shape = output_shape(input, weight);
  Tensor out = empty_tensor(shape, input.dtype(), input.device());
  if (out.is_meta() || out.numel() == 0) return out;
  // Rows of a matrix; a tensor with more dimensions must be dense to be one.
  const Tensor x = input.dim() <= 2 ? input : dense(input);
  const bool matrix = weight.dim() == 2;
  if (input.is_cuda()) {
    const int64_t rows = rows_of(input), features = matrix ? weight.size(0) : 1;
    const Tensor flat = op::reshape(x, Dims{rows, input.size(-1)}),
                 columns = op::t(matrix ? weight : op::unsqueeze(weight, 0)),
                 result = alias_tensor(out, Dims{rows, features}, Dims{features, 1}, out.offset());
    if (bias.defined())
      device_products.multiply_biased(
          flat, columns, op::contiguous(op::expand(op::reshape(bias, Dims{-1}), Dims{features})),
          result);
    else device_products.multiply(flat, columns, result, Scalar(1), Scalar(0));
    return out;
  }
  Gemm g;
  g.dtype = input.dtype();
  g.batch = 1;
  g.m = rows_of(input), g.n = matrix ? weight.size(0) : 1, g.k = input.size(-1);
  g.a = x.data(), g.a_batch = 0;
  g.a_row = x.dim() == 1 ? 0 : x.dim() == 2 ? x.stride(0) : g.k, g.a_col = x.stride(-1);
  g.b = weight.data(), g.b_batch = 0;
  g.b_row = weight.stride(-1), g.b_col = matrix ? weight.stride(0) : 0;
  g.c = out.data(), g.c_batch = 0, g.c_row = g.n, g.c_col = 1;
  if (bias.defined()) {
    if (bias.numel() == g.n && bias.is_contiguous()) {
      g.bias = bias.data();
    } else {
      op::copy_(out, bias);
      g.beta_re = 1;
    }
  }
  gemm(g);
  return out;
}

Tensor _linear_input_gradient(const Tensor& grad, const Tensor& weight) {
  const Tensor w = op::conj(weight);
  return weight.dim() == 2 ? op::matmul(grad, w) : op::unsqueeze(grad, -1) * w;
}

Tensor _linear_weight_gradient(const Tensor& grad, const Tensor& input, IntSpan weight_size) {
  const Tensor x = op::conj(input);
  if (weight_size.size() == 2 && x.dim() == 2) return op::mm(op::t(grad), x);
  const int64_t rows = rows_of(x), features = weight_size.size() == 2 ? weight_size[0] : 1;
  const Tensor gradient = op::mm(op::t(op::reshape(grad, Dims{rows, features})),
                                 op::reshape(x, Dims{rows, x.size(-1)}));
  return op::reshape(gradient, weight_size);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  if (input1.dim() != input2.dim())
    runtime_error("bilinear(): input dimensions do not match: got ", input1.dim(), " and ",
                  input2.dim());
  if (input1.dim() == 0) runtime_error("inputs must have at least one dimension: (*, features)");
  for (int64_t d = 0; d < input1.dim() - 1; ++d)
    if (input1.size(d) != input2.size(d))
      runtime_error("bilinear(): input batch dimensions do not match at dim ", d, ": got ",
                    input1.size(d), " and ", input2.size(d), " (shapes ", input1.sizes(), " and ",
                    input2.sizes(), ")");
  if (weight.dim() != 3)
    runtime_error("weight must be (out_features, in1_features, in2_features), got shape ",
                  weight.sizes());
  if (input1.size(-1) != weight.size(1))
    runtime_error("bilinear(): input1 size does not match weight size: got ", input1.size(-1),
                  " but expected ", weight.size(1));
  if (input2.size(-1) != weight.size(2))
    runtime_error("bilinear(): input2 size does not match weight size: got ", input2.size(-1),
                  " but expected ", weight.size(2));
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != weight.size(0)))
    runtime_error("bilinear(): bias size does not match weight size: got ", bias.sizes(),
                  " but expected ", weight.size(0), " elements");
  const DType dtype = input1.dtype();
  if (is_reduced_float(dtype)) {  // rounded once, not after each product
    auto wide = [](const Tensor& t) { return t.defined() ? op::_to_copy(t, DType::Float32) : t; };
    return op::_to_copy(op::bilinear(wide(input1), wide(input2), wide(weight), wide(bias)), dtype);
  }
  const int64_t rows = rows_of(input1), features = weight.size(0), in1 = weight.size(1),
                in2 = weight.size(2);
  // (rows, in1) with (in1, features in2), then each (features, in2) with its second input.
  const Tensor by_first =
      op::reshape(op::permute(weight, Dims{1, 0, 2}), Dims{in1, features * in2});
  const Tensor halves = op::reshape(op::mm(op::reshape(input1, Dims{rows, in1}), by_first),
                                    Dims{rows, features, in2});
  const Tensor out = op::bmm(halves, op::reshape(input2, Dims{rows, in2, 1}));
  Dims shape(input1.sizes().first(size_t(input1.dim() - 1)));
  shape.push_back(features);
  const Tensor result = op::reshape(out, shape);
  return bias.defined() ? result + bias : result;
}

}  // namespace facula::kernels
