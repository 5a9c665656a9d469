// Activations: the choice between a new result and the input's memory, and what is no single loop.
#include <limits>

#include "autograd/node.h"
#include "kernels/random_stream.h"
#include "op/elementwise.h"
#include "op/kernels/activations.h"
#include "op/ops/activations.h"
#include "op/ops/copying.h"
#include "op/ops/creation.h"
#include "op/ops/indexing.h"
#include "op/ops/joining.h"
#include "op/ops/mathematics.h"
#include "op/ops/random.h"
#include "op/ops/reductions.h"
#include "op/ops/views.h"
#include "op/tensor_operators.h"

namespace facula::kernels {

// ---- pieces of lines

Tensor relu_functional(const Tensor& input, bool inplace) {
  return inplace ? op::relu_(input) : op::relu(input);
}

static void check_hardtanh(DType dtype, double min_val, double max_val) {
  if (dtype == DType::Bool) runtime_error("Bool inputs not supported for hardtanh");
  const bool is_unsigned = dtype == DType::UInt8 || dtype == DType::UInt16 ||
                           dtype == DType::UInt32 || dtype == DType::UInt64;
  if (is_unsigned && (min_val < 0 || max_val < 0))
    runtime_error("cannot do hardtanh on an unsigned type with negative limits, got min_val=",
                  min_val, " and max_val=", max_val, " for ", dtype);
  if (min_val > max_val)
    value_error("min_val cannot be greater than max_val, got min_val=", min_val,
                " and max_val=", max_val);
}
Tensor relu6(const Tensor& input, bool inplace) {
  check_hardtanh(input.dtype(), 0, 6);
  return inplace ? op::_hardtanh_(input, 0, 6) : op::_hardtanh(input, 0, 6);
}
Tensor hardtanh(const Tensor& input, double min_val, double max_val, bool inplace) {
  check_hardtanh(input.dtype(), min_val, max_val);
  return inplace ? op::_hardtanh_(input, min_val, max_val) : op::_hardtanh(input, min_val, max_val);
}
void hardtanh_(const Tensor& self, double min_val, double max_val, Rets&) {
  check_hardtanh(self.dtype(), min_val, max_val);
  op::_hardtanh_(self, min_val, max_val);
}

Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  return op::_threshold(self, threshold.to_double(), value.to_double());
}
void threshold_(const Tensor& self, const Scalar& threshold, const Scalar& value, Rets&) {
  op::_threshold_(self, threshold.to_double(), value.to_double());
}
Tensor threshold_functional(const Tensor& input, const Scalar& threshold, const Scalar& value,
                            bool inplace) {
  return inplace ? op::_threshold_(input, threshold.to_double(), value.to_double())
                 : op::_threshold(input, threshold.to_double(), value.to_double());
}

// Where a slope is negative, PyTorch cannot tell the input's sign from the result that replaced it
// and refuses the derivative; programs that run on both are better told here, too.
static Tensor leaky_in_place(const Tensor& self, double slope) {
  return slope < 0 ? op::_leaky_relu_negative_(self, slope) : op::_leaky_relu_(self, slope);
}
static Tensor elu_in_place(const Tensor& self, double alpha, double scale, double input_scale) {
  return alpha < 0 ? op::_elu_negative_(self, alpha, scale, input_scale)
                   : op::_elu_(self, alpha, scale, input_scale);
}
Tensor _refuse_slope(const Tensor&, std::string_view name) {
  runtime_error("In-place ", name,
                " backward calculation is triggered with a negative slope which is not supported. "
                "This is caused by calling in-place forward function with a negative slope, please "
                "call out-of-place version instead.");
}

Tensor leaky_relu(const Tensor& input, double negative_slope, bool inplace) {
  return inplace ? leaky_in_place(input, negative_slope) : op::_leaky_relu(input, negative_slope);
}
void leaky_relu_(const Tensor& self, double negative_slope, Rets&) {
  leaky_in_place(self, negative_slope);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  if (weight.dim() > 1)
    runtime_error("Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim(),
                  ", shape ", weight.sizes());
  if (weight.dtype() != self.dtype())
    runtime_error("Type promoting not supported: input has dtype ", self.dtype(),
                  " and weight has dtype ", weight.dtype());
  if (weight.numel() == 1) return op::_prelu_kernel(self, op::reshape(weight, IntSpan()));
  if (self.dim() == 0)
    runtime_error("Not allow zero-dim input tensor with ", weight.numel(),
                  " weights: it has no channels");
  const int64_t channels = self.dim() >= 2 ? self.size(1) : 1;
  if (channels != weight.numel())
    runtime_error(
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
        weight.numel(), " and channel size = ", channels, "; the input has shape ", self.sizes());
  Dims shape(size_t(self.dim()), 1);
  shape[1] = channels;
  return op::_prelu_kernel(self, op::reshape(weight, shape));
}

static void check_slopes(double lower, double upper) {
  if (!(lower <= upper))
    runtime_error("Lower bound should be less than or equal to the upper bound, got lower=", lower,
                  " and upper=", upper);
}
Tensor _rrelu_slopes(const Tensor& self, double lower, double upper, Generator* generator) {
  if (!self.is_floating()) dtype_error(self.dtype(), "the floating-point types");
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (!begins_writing(out)) return out;
  GradGuard off(false);
  if (out.is_cuda()) {
    device_random.draw(out, {.kind = Drawn::Uniform, .a = lower, .b = upper}, generator);
    op::masked_fill_(out, op::gt(self, 0), 1);
    return out;
  }
  const Tensor x = op::_to_copy(self, DType::Float64, kNoDevice, MemoryFormat::Contiguous);
  const double* in = x.data_as<double>();
  RandomStream stream(generator, self.device());
  fill_in_memory_order<double>(out, [&](double* to, int64_t n) {
    // One draw for each element that is not positive, in order.
    for (int64_t i = 0; i < n; ++i)
      to[i] = in[i] <= 0 ? stream.uniform() * (upper - lower) + lower : 1.0;
    in += n;
  });
  return out;
}
Tensor rrelu(const Tensor& self, double lower, double upper, bool training, Generator* generator) {
  check_slopes(lower, upper);
  const Tensor x = op::contiguous(self);  // PyTorch's results lie in order
  if (!training) return op::_leaky_relu(x, (lower + upper) / 2);
  return x * op::_rrelu_slopes(x, lower, upper, generator);
}
void rrelu_(const Tensor& self, double lower, double upper, bool training, Generator* generator,
            Rets&) {
  check_slopes(lower, upper);
  if (!training) leaky_in_place(self, (lower + upper) / 2);
  else op::mul_(self, op::_rrelu_slopes(self, lower, upper, generator));
}
Tensor rrelu_functional(const Tensor& input, double lower, double upper, bool training,
                        bool inplace) {
  return inplace ? op::rrelu_(input, lower, upper, training)
                 : op::rrelu(input, lower, upper, training);
}

Tensor softshrink(const Tensor& input, double lambd) {
  const double most = input.dtype() == DType::Float64 ? std::numeric_limits<double>::max()
                                                      : double(std::numeric_limits<float>::max());
  if (!(lambd >= 0 && lambd <= most))
    runtime_error("lambda must be in range [0, ", most, "] for input dtype ",
                  legacy_dtype_name(input.dtype()), ", but found ", lambd);
  return op::_softshrink(input, lambd);
}
Tensor hardsigmoid(const Tensor& input, bool inplace) {
  return inplace ? op::_hardsigmoid_(input) : op::_hardsigmoid(input);
}
Tensor hardswish(const Tensor& input, bool inplace) {
  return inplace ? op::_hardswish_(input) : op::_hardswish(input);
}

// ---- exponentials

Tensor elu(const Tensor& input, double alpha, bool inplace) {
  return inplace ? elu_in_place(input, alpha, 1, 1) : op::_elu(input, alpha, 1, 1);
}
void elu_(const Tensor& self, double alpha, Rets&) {
  elu_in_place(self, alpha, 1, 1);
}

// The fixed point of mean 0 and variance 1 (Klambauer and others 2017).
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;
Tensor selu(const Tensor& self) {
  return op::_elu(self, kSeluAlpha, kSeluScale, 1);
}
void selu_(const Tensor& self, Rets&) {
  op::_elu_(self, kSeluAlpha, kSeluScale, 1);
}
Tensor selu_functional(const Tensor& input, bool inplace) {
  return inplace ? op::selu_(input) : op::selu(input);
}

static double inverse_of(double alpha) {
  if (alpha == 0) runtime_error("ZeroDivisionError: alpha cannot be 0 for CELU");
  return 1 / alpha;
}
Tensor celu(const Tensor& self, double alpha) {
  return op::_elu(self, alpha, 1, inverse_of(alpha));
}
void celu_(const Tensor& self, double alpha, Rets&) {
  elu_in_place(self, alpha, 1, inverse_of(alpha));
}
Tensor celu_functional(const Tensor& input, double alpha, bool inplace) {
  return inplace ? op::celu_(input, alpha) : op::celu(input, alpha);
}

Tensor gelu(const Tensor& input, std::string_view approximate) {
  if (approximate == "none") return op::_gelu(input);
  if (approximate == "tanh") return op::_gelu_tanh(input);
  runtime_error("approximate argument must be either none or tanh, got '", approximate, "'");
}
// The second derivative. With u = r (x + c x^3) and t = tanh(u):
// (1 - t^2) (u' + x (u'' / 2 - t u'^2)).
Tensor _gelu_tanh_curvature(Value self) {
  constexpr double r = 0.7978845608028654, c = 0.044715;
  const Tensor square = self * self;
  const Tensor t = op::tanh(self * (square * (r * c) + r));
  const Tensor slope = square * (3 * r * c) + r;
  return (1 - t * t) * (slope + self * (self * (3 * r * c) - t * slope * slope));
}

Tensor silu(const Tensor& input, bool inplace) {
  return inplace ? op::_silu_(input) : op::_silu(input);
}
// By the input of silu's derivative s (1 + x (1 - s)).
Tensor _silu_curve(const Tensor& grad, Value grad_out, Value input) {
  const Tensor s = op::sigmoid(input);
  const Tensor curvature = s * (1 - s) * (2 + input * (1 - s * 2));
  return op::conj(grad * curvature) * grad_out;
}

Tensor mish(const Tensor& input, bool inplace) {
  return inplace ? op::_mish_(input) : op::_mish(input);
}
// With t = tanh(softplus(x)), s = sigmoid(x) and d = 1 - t^2: t' = d s, and the second derivative
// is d s (2 + x (1 - s) - 2 x t s).
Tensor _mish_curvature(Value self) {
  const Tensor t = op::tanh(op::softplus(self)), s = op::sigmoid(self);
  return (1 - t * t) * s * (2 + self * (1 - s) - self * t * s * 2);
}

// The result is contiguous, whatever the input is, as in PyTorch.
Tensor logsigmoid(const Tensor& input) {
  return op::_logsigmoid(op::contiguous(input));
}

Tensor tanhshrink(const Tensor& input) {
  return input - op::tanh(input);
}
Tensor softsign(const Tensor& input) {
  return input / (op::abs(input) + 1);
}

Tensor glu(const Tensor& input, int64_t dim) {
  if (input.dim() == 0)
    runtime_error("glu does not support scalars because halving size must be even");
  const int64_t at = wrap_dim(dim, input.dim()), size = input.size(at);
  if (size % 2 != 0)
    runtime_error("Halving dimension must be even, but dimension ", at, " is size ", size,
                  " in an input of shape ", input.sizes());
  return op::_glu_of_halves(input, at);
}

static std::pair<Tensor, Tensor> halves_of(const Tensor& t, int64_t dim) {
  Dims sizes(t.sizes());
  const int64_t half = sizes[size_t(dim)] /= 2;
  const int64_t second = t.offset() + half * t.strides()[size_t(dim)];
  return {alias_tensor(t, sizes, t.strides(), t.offset()),
          alias_tensor(t, sizes, t.strides(), second)};
}

Tensor _glu_of_halves(const Tensor& self, int64_t dim) {
  const auto [values, gate] = halves_of(self, dim);
  return op::_glu(values, gate);
}

// Both gradients are written where they belong, unless the derivative is to be differentiated or
// transformed.
Tensor _glu_of_halves_grad(const Tensor& grad_out, const Tensor& self, int64_t dim) {
  auto plain = [](const Tensor& t) {
    return !(t->keys & ~(kKeyCuda | kKeyGrad)) && !(grad_enabled() && t.needs_grad());
  };
  if (!plain(grad_out) || !plain(self)) {
    const int64_t half = self.size(dim) / 2;
    const std::vector<Tensor> halves = op::split_with_sizes(self, Dims{half, half}, dim);
    const Tensor both[] = {op::_glu(grad_out, halves[1]),
                           op::_glu_gate_grad(grad_out, halves[0], halves[1])};
    return op::cat(both, dim);
  }
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  const auto [values, gate] = halves_of(self, dim);
  const auto [to_values, to_gate] = halves_of(out, dim);
  const Value first[] = {Value(grad_out), Value(gate)};
  const Value second[] = {Value(grad_out), Value(values), Value(gate)};
  GradGuard off(false);
  Rets rets;
  rets.destination = Destination::Out;
  rets.t[0] = to_values;
  call(defs::_glu, first, rets);
  rets.t[0] = to_gate;
  call(defs::_glu_gate_grad, second, rets);
  return out;
}

// ---- along a dimension

static int64_t implicit_dim(const Tensor& input, std::optional<int64_t> dim, const char* name) {
  if (dim) return *dim;
  if (warn)
    warn(text("Implicit dimension choice for ", name,
              " has been deprecated. Change the call to include dim=X as an argument.")
             .c_str());
  return input.dim() == 0 || input.dim() == 1 || input.dim() == 3 ? 0 : 1;
}
Tensor softmax_functional(const Tensor& input, std::optional<int64_t> dim, int64_t, DType dtype) {
  return op::softmax(input, implicit_dim(input, dim, "softmax"), dtype);
}
Tensor log_softmax_functional(const Tensor& input, std::optional<int64_t> dim, int64_t,
                              DType dtype) {
  return op::log_softmax(input, implicit_dim(input, dim, "log_softmax"), dtype);
}
Tensor softmin_functional(const Tensor& input, std::optional<int64_t> dim, int64_t, DType dtype) {
  return op::softmax(-input, implicit_dim(input, dim, "softmin"), dtype);
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, double eps, int64_t dim) {
  if (eps != 1e-10 && warn) warn("`eps` parameter is deprecated and has no effect.");
  Tensor noise;
  {
    GradGuard off(false);
    noise =
        -op::log(op::exponential_(op::empty_like(logits, DType::None, std::nullopt, kNoDevice,
                                                 std::nullopt, false, MemoryFormat::Contiguous)));
  }
  const Tensor soft = op::softmax((logits + noise) / tau, dim);
  if (!hard) return soft;
  Tensor one_hot;
  {
    GradGuard off(false);
    const Tensor largest = op::argmax(soft, dim, true);
    one_hot = op::scatter_value(op::zeros_like(logits), dim, largest, 1.0);
  }
  return one_hot - op::detach(soft) + soft;
}

}  // namespace facula::kernels
