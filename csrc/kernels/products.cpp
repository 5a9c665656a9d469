// Matrix products: shapes and promotion here, arithmetic in cpu/gemm.
#include "op/kernels/products.h"
#include "autograd/node_names.h"
#include "core/type_names.h"
#include "cpu/gemm.h"
#include "op/elementwise.h"
#include "op/hooks/products.h"
#include "op/ops/arithmetic.h"
#include "op/ops/copying.h"
#include "op/ops/products.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

static void check_operands(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    runtime_error("expected mat1 and mat2 to have the same dtype, but got: ",
                  legacy_dtype_name(a.dtype()), " != ", legacy_dtype_name(b.dtype()), " (",
                  a.dtype(), " and ", b.dtype(), "). Convert one of them with .to(...)");
  if (a.device() != b.device()) device_error(a.device(), b.device());
  if (a.dtype() == DType::Bool)
    fail(ErrorKind::NotImplemented,
         "\"addmm_impl_cpu_\" not implemented for 'Bool'; convert to an integer or floating-point "
         "dtype");
}

// out = alpha a @ b + beta out, all (batch, rows, columns); batch stride 0 broadcasts.
static void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
                     const Scalar& beta) {
  if (out.is_meta() || out.numel() == 0) return;
  if (out.is_cuda()) return device_products.multiply(a, b, out, alpha, beta);
  auto batch_stride = [](const Tensor& t) {
    return t.dim() == 3 && t.sizes()[0] > 1 ? t.strides()[0] : 0;
  };
  Complex<double> al = alpha.to_complex(), be = beta.to_complex();
  Gemm g;
  g.dtype = out.dtype();
  g.batch = out.dim() == 3 ? out.sizes()[0] : 1;
  g.m = out.size(-2);
  g.n = out.size(-1);
  g.k = a.size(-1);
  g.a = a.data(), g.a_batch = batch_stride(a), g.a_row = a.stride(-2), g.a_col = a.stride(-1);
  g.b = b.data(), g.b_batch = batch_stride(b), g.b_row = b.stride(-2), g.b_col = b.stride(-1);
  g.c = out.data(), g.c_batch = batch_stride(out), g.c_row = out.stride(-2),
  g.c_col = out.stride(-1);
  g.alpha_re = al.re, g.alpha_im = al.im, g.beta_re = be.re, g.beta_im = be.im;
  gemm(g);
}

// "2x3", as PyTorch's messages have it.
static std::string sizes_text(const Tensor& matrix) {
  return text(matrix.size(0), "x", matrix.size(1));
}

[[noreturn]] static void inner_size_error(const Tensor& a, const Tensor& b) {
  runtime_error("mat1 and mat2 shapes cannot be multiplied (", sizes_text(a), " and ",
                sizes_text(b), "): the ", a.size(1), " columns of the first, of shape ", a.sizes(),
                ", must equal the ", b.size(0), " rows of the second, of shape ", b.sizes(),
                a.size(1) == b.size(1) ? "; did you mean mat2.t()?" : "");
}

// The dtype of out= is not a wish that a product could fulfil by converting.
static void check_out(const Rets& rets, DType dtype) {
  if (rets.destination != Destination::New && rets.t[0].dtype() != dtype)
    runtime_error("Expected out tensor to have dtype ", cpp_type_name(dtype), ", but got ",
                  cpp_type_name(rets.t[0].dtype()), " instead (", dtype, " and ", rets.t[0].dtype(),
                  ")");
}

static void product_into(const Tensor& a, const Tensor& b, IntSpan shape, Rets& rets) {
  check_operands(a, b);
  check_out(rets, a.dtype());
  prepare_result(rets, 0, shape, a.dtype(), a.device());
  Tensor& out = rets.t[0];
  bool apart = rets.destination == Destination::New ||
               (!may_share_memory(out, a) && !may_share_memory(out, b));
  Tensor target = apart ? out : empty_tensor(shape, a.dtype(), a.device());
  multiply(a, b, target, Scalar(1), Scalar(0));
  if (!apart) op::copy_(out, target);
}

void mm(const Tensor& self, const Tensor& mat2, Rets& rets) {
  if (self.dim() != 2) runtime_error("self must be a matrix, got shape ", self.sizes());
  if (mat2.dim() != 2) runtime_error("mat2 must be a matrix, got shape ", mat2.sizes());
  if (self.size(1) != mat2.size(0)) inner_size_error(self, mat2);
  product_into(self, mat2, Dims{self.size(0), mat2.size(1)}, rets);
}

static void check_batches(const Tensor& a, const Tensor& b) {
  if (a.dim() != 3 || b.dim() != 3)
    runtime_error("batch1 and batch2 must be 3D tensors, got shapes ", a.sizes(), " and ",
                  b.sizes());
  if (a.size(0) != b.size(0) || a.size(2) != b.size(1))
    runtime_error("Expected size for first two dimensions of batch2 tensor to be: [", a.size(0),
                  ", ", a.size(2), "] but got: [", b.size(0), ", ", b.size(1), "] (shapes ",
                  a.sizes(), " and ", b.sizes(), ").");
}

void bmm(const Tensor& self, const Tensor& mat2, Rets& rets) {
  check_batches(self, mat2);
  product_into(self, mat2, Dims{self.size(0), self.size(1), mat2.size(2)}, rets);
}

static Tensor matrix_view(const Tensor& v, bool column) {
  Dims sizes(v.sizes()), strides(v.strides());
  sizes.insert(column ? 1 : 0, 1);
  strides.insert(column ? 1 : 0, column ? 1 : v.size(0));
  return alias_tensor(v, sizes, strides, v.offset());
}

static void vector_product(const Tensor& a, const Tensor& b, IntSpan shape, Rets& rets) {
  Rets inner;
  product_into(a, b, Dims{a.size(0), b.size(1)}, inner);
  Tensor out = alias_tensor(inner.t[0], shape, contiguous_strides(shape), inner.t[0].offset());
  if (rets.destination == Destination::New) {
    rets.t[0] = out;
    return;
  }
  check_out(rets, out.dtype());
  prepare_result(rets, 0, shape, out.dtype(), out.device());
  op::copy_(rets.t[0], out);
}

void mv(const Tensor& self, const Tensor& vec, Rets& rets) {
  if (self.dim() != 2 || vec.dim() != 1)
    runtime_error("vector + matrix @ vector expected, got ", self.dim(), ", ", vec.dim(),
                  " (shapes ", self.sizes(), " and ", vec.sizes(), ")");
  if (self.size(1) != vec.size(0))
    runtime_error("size mismatch, got input (", self.size(0), "), mat (", sizes_text(self),
                  "), vec (", vec.size(0), "): a matrix of shape ", self.sizes(),
                  " cannot be multiplied with a vector of shape ", vec.sizes());
  vector_product(self, matrix_view(vec, true), Dims{self.size(0)}, rets);
}

void dot(const Tensor& self, const Tensor& tensor, Rets& rets) {
  if (self.dim() != 1 || tensor.dim() != 1)
    runtime_error("1D tensors expected, but got ", self.dim(), "D and ", tensor.dim(), "D tensors");
  if (self.dtype() != tensor.dtype())
    runtime_error("dot : expected both vectors to have same dtype, but found ",
                  legacy_dtype_name(self.dtype()), " and ", legacy_dtype_name(tensor.dtype()));
  if (self.numel() != tensor.numel())
    runtime_error("inconsistent tensor size, expected tensor ", self.sizes(), " and src ",
                  tensor.sizes(), " to have the same number of elements, but got ", self.numel(),
                  " and ", tensor.numel(), " elements respectively");
  vector_product(matrix_view(self, false), matrix_view(tensor, true), {}, rets);
}

static void add_product(const Tensor& self, const Tensor& a, const Tensor& b, IntSpan shape,
                        Scalar beta, Scalar alpha, Rets& rets) {
  check_operands(a, b);
  if (self.device() != a.device()) device_error(self.device(), a.device());
  if (self.dtype() != a.dtype())
    runtime_error("self and mat2 must have the same dtype, but got ",
                  legacy_dtype_name(self.dtype()), " and ", legacy_dtype_name(a.dtype()));
  if (!is_expandable(self.sizes(), shape))
    runtime_error("The expanded size of the tensor (", shape.empty() ? 0 : shape.back(),
                  ") must match the existing size: input of shape ", self.sizes(),
                  " cannot be broadcast to the product's shape ", shape);
  if (category(a.dtype()) <= Category::Integral) {  // factors of integers are cut to integers
    beta = Scalar(beta.to_int());
    alpha = Scalar(alpha.to_int());
  }
  if (rets.destination == Destination::InPlace && !same(rets.t[0].sizes(), shape))
    runtime_error("The input tensor of shape ", rets.t[0].sizes(), " must match the output shape ",
                  shape);
  Tensor target = empty_tensor(shape, a.dtype(), a.device());
  const bool bias = a.is_cuda() && self.dim() == 1 && a.dim() == 2 && self.size(0) == shape[1] &&
                    alpha.equals(1) && beta.equals(1);
  if (bias && target.numel() != 0) {
    device_products.multiply_biased(a, b, op::contiguous(self), target);
  } else {
    if (!beta.equals(0)) op::copy_(target, self);
    multiply(a, b, target, alpha, beta);
  }
  if (rets.destination == Destination::New) {
    rets.t[0] = target;
    return;
  }
  check_out(rets, a.dtype());
  prepare_result(rets, 0, shape, a.dtype(), a.device());
  op::copy_(rets.t[0], target);
}

void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha, Rets& rets) {
  if (mat1.dim() != 2 || mat2.dim() != 2)
    runtime_error("mat1 and mat2 must be matrices, got shapes ", mat1.sizes(), " and ",
                  mat2.sizes());
  if (mat1.size(1) != mat2.size(0)) inner_size_error(mat1, mat2);
  add_product(self, mat1, mat2, Dims{mat1.size(0), mat2.size(1)}, beta, alpha, rets);
}

void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha, Rets& rets) {
  check_batches(batch1, batch2);
  add_product(self, batch1, batch2, Dims{batch1.size(0), batch1.size(1), batch2.size(2)}, beta,
              alpha, rets);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  if (self.dim() != 1 || vec2.dim() != 1)
    runtime_error("outer: Expected 1-D arguments, but got ", self.dim(), "-D and ", vec2.dim(),
                  "-D");
  return op::unsqueeze(self, 1) * op::unsqueeze(vec2, 0);
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  int64_t a = self.dim(), b = other.dim();
  if (a == 0 || b == 0)
    runtime_error("both arguments to matmul need to be at least 1D, but they are ", a, "D and ", b,
                  "D");
  if (a == 1 && b == 1) return op::dot(self, other);
  if (a == 2 && b == 1) return op::mv(self, other);
  if (a == 1 && b == 2) return op::squeeze_dim(op::mm(op::unsqueeze(self, 0), other), Dims{0});
  if (a == 2 && b == 2) return op::mm(self, other);
  int64_t rows = a == 1 ? 1 : self.size(-2), columns = b == 1 ? 1 : other.size(-1),
          k = self.size(-1);
  if (k != other.size(b == 1 ? 0 : -2))
    runtime_error("mat1 and mat2 shapes cannot be multiplied: ", self.sizes(), " and ",
                  other.sizes(), " (inner sizes ", k, " and ", other.size(b == 1 ? 0 : -2), ")");
  Dims result;
  Tensor out;
  if (a >= 3 && b <= 2) {  // fold the batch into the rows
    Dims batch(IntSpan(self.sizes().data(), size_t(a - 1)));
    Tensor folded = op::reshape(
        self, Dims{-1 * (self.numel() != 0) + (self.numel() == 0) * checked_numel(batch), k});
    Tensor right = b == 1 ? op::unsqueeze(other, 1) : other;
    result = batch;
    if (b == 2) result.push_back(columns);
    return unsafe_view(op::mm(folded, right), result);
  }
  Tensor left = a == 1 ? op::unsqueeze(self, 0) : self,
         right = b == 1 ? op::unsqueeze(other, 1) : other;
  const IntSpan left_batch = left.sizes().first(size_t(left.dim() - 2)),
                right_batch = right.sizes().first(size_t(right.dim() - 2));
  Dims batch;
  try {
    batch = broadcast_shapes(left_batch, right_batch);
  } catch (const Error& e) {
    runtime_error(e.what(), ". These are the batch dimensions of ", self.sizes(), " and ",
                  other.sizes());
  }
  Dims left_shape(batch), right_shape(batch);
  left_shape.push_back(rows), left_shape.push_back(k);
  right_shape.push_back(k), right_shape.push_back(columns);
  int64_t count = checked_numel(batch);
  out = op::bmm(op::reshape(op::expand(left, left_shape), Dims{count, rows, k}),
                op::reshape(op::expand(right, right_shape), Dims{count, k, columns}));
  result = batch;
  if (a != 1) result.push_back(rows);
  if (b != 1) result.push_back(columns);
  return unsafe_view(out, result);
}

}  // namespace facula::kernels
