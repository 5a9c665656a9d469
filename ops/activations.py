"""Activations: ``facula.nn.functional``, and those that also stand in ``facula`` itself.

A function with ``inplace=`` chooses between an elementwise row, whose name begins with an underscore,
and its in-place form. Derivatives that are one loop stand below their function.
"""

from gen.rows import composite, elementwise, kernel, op

_IN_PLACE = " With ``inplace=True`` the result replaces the input."


def _function(schema, words, example, *, samples="activation", **options):
    """A public function of nn.functional that takes ``inplace``."""
    name = schema.partition("(")[0].partition(".")[0]
    op(f"{schema} -> Tensor", composite(), python=f"nn.functional.{name}", out=False, samples=samples,
       doc=words + _IN_PLACE, example=example, **options)


def _written(schema, words, example, python=None):
    """The form with an underscore, a function only."""
    name = schema.partition("(")[0]
    op(f"{schema} -> Tensor(a!)", composite(), python=python or f"nn.functional.{name}", function=True, method=False,
       samples="none", doc=words, example=example)


def _at(name, result, arguments="", given="-1., 2."):
    return f">>> facula.nn.functional.{name}(facula.tensor([{given}]){arguments})\ntensor([{result}])"


# ---- pieces of lines

_function("relu.functional(Tensor input, bool inplace=False)", "The larger of 0 and each element.",
          _at("relu", "0., 2."))
_function("relu6(Tensor input, bool inplace=False)", "Limits each element to [0, 6].",
          _at("relu6", "0., 6.", given="-1., 9."))
_function("hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False)",
          "Limits each element to [``min_val``, ``max_val``].", _at("hardtanh", "-1.0000,  0.5000", given="-3., 0.5"))
_written("hardtanh_(Tensor(a!) self, float min_val=-1.0, float max_val=1.0)", "``hardtanh`` in place.",
         _at("hardtanh_", "-1.,  1."))
# The derivatives of what is made of straight pieces depend on their argument by zero: second derivatives are
# zeros, and not missing, so that a program may ask for them.
op("_hardtanh(Tensor self, float min_val, float max_val) -> Tensor", elementwise("if", halves=True), inplace=True,
   f="limited(a, min_val, max_val)",
   grad="_hardtanh_grad(grad, self, min_val, max_val)", node="HardtanhBackward0")
op("_hardtanh_grad(Tensor grad_out, Tensor self_in, float min_val, float max_val) -> Tensor", elementwise("if", halves=True),
   f="0 if (b <= min_val) | (b >= max_val) else a",
   grad=dict(grad_out="_hardtanh_grad(grad, self_in, min_val, max_val)", self_in="zeros_like(grad)"))

op("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", composite(), method=False, samples="threshold",
   doc="Elements above ``threshold``, and ``value`` in place of the others.",
   example=">>> facula.threshold(facula.tensor([-1., 2.]), 0, 20)\ntensor([20.,  2.])")
_written("threshold_(Tensor(a!) self, Scalar threshold, Scalar value)", "``threshold`` in place.",
         ">>> facula.threshold_(facula.tensor([-1., 2.]), 0, 20)\ntensor([20.,  2.])", python="threshold_")
_function("threshold.functional(Tensor input, Scalar threshold, Scalar value, bool inplace=False)",
          "Elements above ``threshold``, and ``value`` in place of the others.",
          _at("threshold", "20.,  2.", ", 0, 20"), samples="threshold")
op("_threshold(Tensor self, float threshold, float value) -> Tensor", elementwise("if", halves=True), inplace=True,
   f="value if a <= threshold else a",
   grad="_threshold_grad(grad, self, threshold)", node="ThresholdBackward0")
op("_threshold_grad(Tensor grad_out, Tensor input, float threshold) -> Tensor", elementwise("f", halves=True),
   f="0 if b <= threshold else a",
   grad=dict(grad_out="_threshold_grad(grad, input, threshold)", input="zeros_like(grad)"))

_function("leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False)",
          "Each element, times ``negative_slope`` where it is negative.",
          _at("leaky_relu", "-0.0100,  2.0000"))
_written("leaky_relu_(Tensor(a!) self, float negative_slope=0.01)", "``leaky_relu`` in place.",
         _at("leaky_relu_", "-0.0100,  2.0000"))
op("_leaky_relu(Tensor self, float negative_slope) -> Tensor", elementwise("f", halves=True), inplace=True,
   f="a if a > 0 else a * negative_slope", grad="_leaky_relu_grad(grad, self, negative_slope)",
   node="LeakyReluBackward0")
op("_leaky_relu_negative(Tensor self, float negative_slope) -> Tensor", elementwise("f", halves=True), inplace=True,
   f="a if a > 0 else a * negative_slope", grad="_refuse_slope(grad, 'leakyReLu')", node="LeakyReluBackward1")
op("_refuse_slope(Tensor grad, str name) -> Tensor", composite())
op("_leaky_relu_grad(Tensor grad_out, Tensor input, float negative_slope) -> Tensor", elementwise("f", halves=True),
   f="a if b > 0 else a * negative_slope",
   grad=dict(grad_out="_leaky_relu_grad(grad, input, negative_slope)", input="zeros_like(grad)"))

op("prelu(Tensor self, Tensor weight) -> Tensor", composite(), aliases=("nn.functional.prelu",), out=False,
   samples="prelu",
   doc="Each element, times ``weight`` where it is negative: one number for all, or one for each channel, which is\n"
       "dimension 1.",
   example=">>> facula.prelu(facula.tensor([-1., 2.]), facula.tensor([0.5]))\ntensor([-0.5000,  2.0000])")
op("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", elementwise("f", halves=True), f="a if a > 0 else a * b",
   grad=dict(self="_prelu_grad(grad, self, weight)", weight="_prelu_weight_grad(grad, self)"))
op("_prelu_grad(Tensor grad_out, Tensor input, Tensor weight) -> Tensor", elementwise("f"), f="a if b > 0 else a * c",
   grad=dict(grad_out="_prelu_grad(grad, input, weight)", input="zeros_like(grad)",
             weight="where(gt(input, 0), 0, grad * grad_out)"))
op("_prelu_weight_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f"), f="0 if b > 0 else a * b",
   grad=dict(grad_out="_prelu_weight_grad(grad, input)", input="where(gt(input, 0), 0, grad * grad_out)"))

_RRELU = "float lower=0.125, float upper=0.3333333333333333, bool training=False"
_RANDOM = ("Each element, times a slope where it is negative: a random one from [``lower``, ``upper``] for each while\n"
           "``training``, else the middle.")
op(f"rrelu(Tensor self, {_RRELU}, Generator? generator=None) -> Tensor", composite(), method=False, out=False,
   samples="in_order", doc=_RANDOM, example=">>> facula.rrelu(facula.tensor([-1., 2.]), 0.1, 0.3)\ntensor([-0.2000,  2.0000])")
_written(f"rrelu_(Tensor(a!) self, {_RRELU}, Generator? generator=None)", "``rrelu`` in place.",
         ">>> facula.rrelu_(facula.tensor([-1., 2.]), 0.1, 0.3)\ntensor([-0.2000,  2.0000])", python="rrelu_")
_function(f"rrelu.functional(Tensor input, {_RRELU}, bool inplace=False)", _RANDOM,
          _at("rrelu", "-0.2000,  2.0000", ", 0.1, 0.3"), samples="in_order")
# 1 where the element is positive, else a random slope.
op("_rrelu_slopes(Tensor self, float lower, float upper, *, Generator? generator=None) -> Tensor", kernel(), out=False,
   samples="none")

op("hardshrink(Tensor self, float lambd=0.5) -> Tensor", elementwise("f"), inplace=False,
   f="0 if a >= -lambd and a <= lambd else a", grad="_shrink_grad(grad, self, lambd)",
   aliases=("nn.functional.hardshrink",), samples="shrink",
   doc="0 for elements within [-``lambd``, ``lambd``], the others as they are.",
   example=">>> facula.hardshrink(facula.tensor([-1., 0.4]))\ntensor([-1.,  0.])")
op("softshrink(Tensor input, float lambd=0.5) -> Tensor", composite(), python="nn.functional.softshrink", samples="shrink",
   doc="Moves each element towards 0 by ``lambd``, at most to 0.", example=_at("softshrink", "-0.5000,  1.5000"))
op("_softshrink(Tensor self, float lambd) -> Tensor", elementwise("f"),
   f="a - lambd if a > lambd else (a + lambd if a < -lambd else a * 0)", grad="_shrink_grad(grad, self, lambd)",
   node="SoftshrinkBackward0")
op("_shrink_grad(Tensor grad_out, Tensor input, float lambd) -> Tensor", elementwise("f"),
   f="0 if b >= -lambd and b <= lambd else a",
   grad=dict(grad_out="_shrink_grad(grad, input, lambd)", input="zeros_like(grad)"))

_function("hardsigmoid(Tensor input, bool inplace=False)", "``(x + 3) / 6``, limited to [0, 1].",
          _at("hardsigmoid", "0.3333, 0.8333"))
op("_hardsigmoid(Tensor self) -> Tensor", elementwise("f", halves=True), inplace=True,
   f="limited(a + 3, 6) / 6",
   grad="_hardsigmoid_grad(grad, self)", node="HardsigmoidBackward0")
op("_hardsigmoid_grad(Tensor grad_out, Tensor self_in) -> Tensor", elementwise("f", halves=True),
   f="a / 6 if (b > -3) & (b < 3) else 0",
   grad=dict(grad_out="_hardsigmoid_grad(grad, self_in)", self_in="zeros_like(grad)"))
_function("hardswish(Tensor input, bool inplace=False)", "``x * hardsigmoid(x)``.", _at("hardswish", "-0.3333,  1.6667"))
op("_hardswish(Tensor self) -> Tensor", elementwise("f", halves=True), inplace=True, f="a * limited(a + 3, 6) / 6",
   grad="_hardswish_grad(grad, self)", node="HardswishBackward0")
op("_hardswish_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f", halves=True),
   f="0 if b <= -3 else (a * (b + b + 3) / 6 if b < 3 else a)",
   grad=dict(grad_out="_hardswish_grad(grad, input)", input="where(lt(abs(input), 3), grad * grad_out / 3, 0)"))

# ---- exponentials

_function("elu(Tensor input, float alpha=1.0, bool inplace=False)", "Positive elements, and ``alpha * (exp(x) - 1)`` for the others.",
          _at("elu", "-0.6321,  2.0000"))
_written("elu_(Tensor(a!) self, float alpha=1.0)", "``elu`` in place.", _at("elu_", "-0.6321,  2.0000"))
op("_elu(Tensor self, float alpha, float scale, float input_scale) -> Tensor", elementwise("f"), inplace=True,
   f="expm1(a * input_scale) * (alpha * scale) if a < 0 else a * scale",
   grad="_elu_grad(grad, self, alpha, scale, input_scale)", node="EluBackward0")
op("_elu_negative(Tensor self, float alpha, float scale, float input_scale) -> Tensor", elementwise("f"), inplace=True,
   f="expm1(a * input_scale) * (alpha * scale) if a < 0 else a * scale", grad="_refuse_slope(grad, 'elu')",
   node="EluBackward1")
op("_elu_grad(Tensor grad_out, Tensor input, float alpha, float scale, float input_scale) -> Tensor", elementwise("f"),
   f="a * (exp(b * input_scale) * (alpha * scale * input_scale)) if b <= 0 else a * scale",
   grad=dict(grad_out="_elu_grad(grad, input, alpha, scale, input_scale)",
             input="where(le(input, 0), grad * grad_out * exp(input * input_scale) * (alpha * scale * input_scale * input_scale), 0)"))
for _name, _words, _shown in (
    ("selu", "``elu`` with the scales that keep mean 0 and variance 1 through a deep network.", "-1.1113,  2.1014"),
    ("celu", "Positive elements, and ``alpha * (exp(x / alpha) - 1)`` for the others.", "-0.6321,  2.0000"),
):
    _alpha = ", float alpha=1.0" if _name == "celu" else ""
    op(f"{_name}(Tensor self{_alpha}) -> Tensor", composite(), method=False, out=False, samples="activation", doc=_words,
       node="CeluBackward0" if _name == "celu" else "EluBackward0",
       example=f">>> facula.{_name}(facula.tensor([-1., 2.]))\ntensor([{_shown}])")
    _written(f"{_name}_(Tensor(a!) self{_alpha})", f"``{_name}`` in place.",
             f">>> facula.{_name}_(facula.tensor([-1., 2.]))\ntensor([{_shown}])", python=f"{_name}_")
    _function(f"{_name}.functional(Tensor input{_alpha}, bool inplace=False)", _words, _at(_name, _shown))

op("gelu(Tensor input, *, str approximate='none') -> Tensor", composite(), python="nn.functional.gelu", samples="gelu",
   doc="``x`` times the normal distribution function at ``x``; with ``approximate='tanh'``, by a formula with tanh.",
   example=_at("gelu", "-0.1587,  1.9545"))
op("_gelu(Tensor self) -> Tensor", elementwise("f", halves=True), f="gelu(a)", grad="_gelu_grad(grad, self)", node="GeluBackward0")
op("_gelu_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f"), f="a * gelu_derivative(b)",
   grad=dict(grad_out="_gelu_grad(grad, input)",
             input="grad * grad_out * exp(input * input * -0.5) * (2 - input * input) * 0.3989422804014327"))
op("_gelu_tanh(Tensor self) -> Tensor", elementwise("f"), f="gelu_tanh(a)", grad="_gelu_tanh_grad(grad, self)",
   node="GeluBackward0")
op("_gelu_tanh_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f"), f="a * gelu_tanh_derivative(b)",
   grad=dict(grad_out="_gelu_tanh_grad(grad, input)", input="grad * grad_out * _gelu_tanh_curvature(input)"))
op("_gelu_tanh_curvature(Operand self) -> Tensor", composite())

_function("silu(Tensor input, bool inplace=False)", "``x * sigmoid(x)``.", _at("silu", "-0.2689,  1.7616"),
          samples="silu")
op("_silu(Tensor self) -> Tensor", elementwise("fc"), inplace=True, f="silu(a)", grad="_silu_grad(grad, self)",
   node="SiluBackward0")
op("_silu_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("fc"), jvp="by vjp if complex",
   f=dict(f="a * silu_derivative(b)", c="a * conj(sigmoid(b) * (1 + b * (1 - sigmoid(b))))"),
   grad=dict(grad_out="_silu_grad(grad, conj(input))", input="_silu_curve(grad, grad_out, input)"))
op("_silu_curve(Tensor grad, Operand grad_out, Operand input) -> Tensor", composite())
_function("mish(Tensor input, bool inplace=False)", "``x * tanh(log(1 + exp(x)))``.", _at("mish", "-0.3034,  1.9440"))
op("_mish(Tensor self) -> Tensor", elementwise("f"), inplace=True, f="mish(a)", grad="_mish_grad(grad, self)",
   node="MishBackward0")
op("_mish_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f"), f="a * mish_derivative(b)",
   grad=dict(grad_out="_mish_grad(grad, input)", input="grad * grad_out * _mish_curvature(input)"))
op("_mish_curvature(Operand self) -> Tensor", composite())
op("softplus(Tensor input, float beta=1, float threshold=20) -> Tensor", elementwise("f", numbers=False), python="nn.functional.softplus",
   f="scaled_softplus(a, beta, threshold)", grad=dict(input="_softplus_grad(grad, input, beta, threshold)"),
   samples="softplus",
   doc="``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above ``threshold``.",
   example=_at("softplus", "0.3133, 2.1269"))
op("_softplus_grad(Tensor grad_out, Tensor input, float beta, float threshold) -> Tensor", elementwise("f"),
   f="a if b * beta > threshold else a * sigmoid(b * beta)",
   grad=dict(grad_out="_softplus_grad(grad, input, beta, threshold)",
             input="where(gt(input * beta, threshold), 0, _sigmoid_grad(grad * grad_out * beta, sigmoid(input * beta)))"))
op("_logsigmoid(Tensor input) -> Tensor", elementwise("f", numbers=False), f="log_sigmoid(a)",
   grad=dict(input="_logsigmoid_grad(grad, input)"), node="LogSigmoidBackward0")
op("logsigmoid(Tensor input) -> Tensor", composite(), python="nn.functional.logsigmoid", samples="in_order",
   doc="The logarithm of ``sigmoid``, computed without loss.", example=_at("logsigmoid", "-1.3133, -0.1269"))
op("_logsigmoid_grad(Tensor grad_out, Tensor input) -> Tensor", elementwise("f"), f="a * quick_sigmoid(-b)",
   grad=dict(grad_out="_logsigmoid_grad(grad, input)",
             input="-_sigmoid_grad(grad * grad_out, sigmoid(input))"))
op("tanhshrink(Tensor input) -> Tensor", composite(), python="nn.functional.tanhshrink", out=False, samples="activation",
   doc="``x - tanh(x)``.", example=_at("tanhshrink", "-0.2384,  1.0360"))
op("softsign(Tensor input) -> Tensor", composite(), python="nn.functional.softsign", out=False, samples="activation",
   doc="``x / (1 + abs(x))``.", example=_at("softsign", "-0.5000,  0.6667"))
op("glu(Tensor input, int dim=-1) -> Tensor", composite(), python="nn.functional.glu", out=False, samples="glu",
   doc="The first half along ``dim``, times ``sigmoid`` of the second half.",
   example=_at("glu", "-0.5000", given="-1., 0."))
op("_glu_of_halves(Tensor self, int dim) -> Tensor", kernel(), batch="dims", grad="_glu_of_halves_grad(grad, self, dim)",
   node="GluBackward0")
op("_glu_of_halves_grad(Tensor grad_out, Tensor self, int dim) -> Tensor", composite())
op("_glu(Tensor self, Tensor gate) -> Tensor", elementwise("f"), f="a * sigmoid(b)", inplace=False,
   grad=dict(self="_glu(grad, gate)", gate="_glu_gate_grad(grad, self, gate)"), node="GluBackward0")
op("_glu_gate_grad(Tensor grad_out, Tensor self, Tensor gate) -> Tensor", elementwise("f"),
   f="a * b * sigmoid_derivative(c)", inplace=False,
   grad=dict(grad_out="_glu_gate_grad(grad, self, gate)", self="_glu_gate_grad(grad, grad_out, gate)",
             gate="_glu_gate_grad(grad * grad_out, self, gate) * (1 - sigmoid(gate) * 2)"))

# ---- along a dimension

_STACK = "``_stacklevel`` is accepted and unused."
for _name, _words, _shown in (
    ("softmax", "Exponentials that sum to 1 along a dimension.", "0.5000, 0.5000"),
    ("log_softmax", "The logarithm of ``softmax``, computed without loss.", "-0.6931, -0.6931"),
    ("softmin", "``softmax(-x)``.", "0.5000, 0.5000"),
):
    op(f"{_name}.functional(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor", composite(),
       python=f"nn.functional.{_name}", out=False, samples="softmax_functional",
       doc=f"{_words} The input is converted to ``dtype`` first where that is given. {_STACK}",
       example=_at(_name, _shown, ", dim=0", given="1., 1."))
op("gumbel_softmax(Tensor logits, float tau=1, bool hard=False, float eps=1e-10, int dim=-1) -> Tensor", composite(),
   python="nn.functional.gumbel_softmax", out=False, samples="none",
   doc="Samples from the Gumbel-softmax distribution with temperature ``tau``. With ``hard=True`` the result is one-hot,\n"
       "with the gradient of the soft sample. ``eps`` has no effect.",
   example=">>> _ = facula.manual_seed(0)\n>>> facula.nn.functional.gumbel_softmax(facula.zeros(3), hard=True)\n"
           "tensor([0., 0., 1.])")
