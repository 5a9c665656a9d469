"""Losses: ``facula.nn.functional``, and those that also stand in ``facula`` itself with a number for the reduction.

What is one loop over pairs of elements is an elementwise row (its name begins with an underscore) with its
derivative below it; the public functions add weights and reduce.
"""

from gen.rows import composite, elementwise, kernel, op

# The functions of the package itself take numbers for reductions (0 none, 1 mean, 2 sum) and do not reduce
# unless asked: PyTorch's bindings read the name that is their default as 0.
_LEGACY = "bool? size_average=None, bool? reduce=None, str reduction='mean'"
_REDUCTION = (" ``reduction`` is 'mean', 'sum' or 'none'; ``size_average`` and ``reduce`` are its older form.")
_F = "facula.nn.functional"


def _loss(schema, words, call, shown, samples, before="", **options):
    name = schema.partition("(")[0].partition(".")[0]
    op(f"{schema} -> Tensor", composite(), python=f"nn.functional.{name}", out=False, samples=samples,
       doc=words + (_REDUCTION if "size_average" in schema else ""), example=f"{before}>>> {_F}.{name}({call})\n{shown}", **options)


_XY = ">>> x, y = facula.tensor([1., 2.]), facula.tensor([1., 4.])\n"

# ---- distances

_loss(f"mse_loss(Tensor input, Tensor target, {_LEGACY}, Tensor? weight=None)",
      "The mean of the squared differences.", "x, y", "tensor(2.)", "pair_weight", _XY, node="MseLossBackward0")
op("_mse(Tensor self, Tensor target) -> Tensor", elementwise("f"), f="square(a - b)",
   grad=dict(self="_mse_grad(grad, self, target)", target="_mse_grad(grad, target, self)"), node="MseLossBackward0")
op("_mse_grad(Tensor grad_out, Tensor self, Tensor target) -> Tensor", elementwise("f"), f="a * (b - c) * 2",
   grad=dict(grad_out="_mse_grad(grad, self, target)", self="grad * grad_out * 2", target="grad * grad_out * -2"))
_loss(f"l1_loss(Tensor input, Tensor target, {_LEGACY}, Tensor? weight=None)",
      "The mean of the absolute differences.", "x, y", "tensor(1.)", "pair_weight_complex", _XY)
op("_l1(Tensor self, Tensor target) -> Tensor", elementwise("f"), f="abs(a - b)",
   grad=dict(self="_l1_grad(grad, self, target)", target="_l1_grad(grad, target, self)"), node="L1LossBackward0")
op("_l1_grad(Tensor grad_out, Tensor self, Tensor target) -> Tensor", elementwise("f"), f="a * sign(b - c)",
   grad=dict(grad_out="_l1_grad(grad, self, target)", self="zeros_like(grad)", target="zeros_like(grad)"))
_loss(f"smooth_l1_loss(Tensor input, Tensor target, {_LEGACY}, float beta=1.0)",
      "``0.5 * d**2 / beta`` for differences d below ``beta``, else ``abs(d) - 0.5 * beta``.", "x, y", "tensor(0.7500)",
      "smooth_l1_loss", _XY, node="SmoothL1LossBackward0")
op("_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor", elementwise("f"), f="smooth_l1(a - b, beta)",
   grad=dict(self="_smooth_l1_grad(grad, self, target, beta)", target="_smooth_l1_grad(grad, target, self, beta)"),
   node="SmoothL1LossBackward0")
op("_smooth_l1_grad(Tensor grad_out, Tensor self, Tensor target, float beta) -> Tensor", elementwise("f"),
   f="a * (sign(b - c) if abs(b - c) >= beta else (b - c) / beta)",
   grad=dict(grad_out="_smooth_l1_grad(grad, self, target, beta)",
             self="where(lt(abs(self - target), beta), grad * grad_out / beta, 0)",
             target="where(lt(abs(self - target), beta), -(grad * grad_out) / beta, 0)"))
_loss("huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None)",
      "``0.5 * d**2`` for differences d up to ``delta``, else ``delta * (abs(d) - 0.5 * delta)``.", "x, y", "tensor(0.7500)",
      "huber_loss", _XY, node="HuberLossBackward0")
op("_huber(Tensor self, Tensor target, float delta) -> Tensor", elementwise("f"), f="huber(a - b, delta)",
   grad=dict(self="_huber_grad(grad, self, target, delta)", target="_huber_grad(grad, target, self, delta)"),
   node="HuberLossBackward0")
op("_huber_grad(Tensor grad_out, Tensor self, Tensor target, float delta) -> Tensor", elementwise("f"),
   f="a * (delta if b - c > delta else (-delta if b - c < -delta else b - c))",
   grad=dict(grad_out="_huber_grad(grad, self, target, delta)",
             self="where(le(abs(self - target), delta), grad * grad_out, 0)",
             target="where(le(abs(self - target), delta), -(grad * grad_out), 0)"))

# ---- probabilities of two outcomes

_loss(f"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {_LEGACY})",
      "``-(t * log(p) + (1 - t) * log(1 - p))`` for probabilities p, with logarithms of no less than -100.",
      "facula.tensor([0.5]), facula.tensor([1.])", "tensor(0.6931)", "binary_cross_entropy", node="BinaryCrossEntropyBackward0")
op("_binary_cross_entropy(Tensor self, Tensor target) -> Tensor", elementwise("f", check="probabilities"),
   f="binary_cross_entropy(a, b)", grad=dict(self="_binary_cross_entropy_grad(grad, self, target)", target="-(grad * logit(self))"),
   node="BinaryCrossEntropyBackward0")
op("_binary_cross_entropy_grad(Tensor grad_out, Tensor self, Tensor target) -> Tensor", elementwise("f"),
   f="a * binary_cross_entropy_derivative(b, c)",
   grad=dict(grad_out="_binary_cross_entropy_grad(grad, self, target)",
             self="grad * grad_out * (self * self - self * target * 2 + target) / square(self * (1 - self))",
             target="-(grad * grad_out) / (self * (1 - self))"))
_WITH_LOGITS = ("``binary_cross_entropy(sigmoid(x), t)`` without loss of digits; the terms of positive targets are multiplied with\n"
                "``pos_weight``.")
op("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=0) -> Tensor",
   composite(), method=False, out=False, samples="none", doc=_WITH_LOGITS,
   example=">>> facula.binary_cross_entropy_with_logits(facula.zeros(1), facula.ones(1))\ntensor([0.6931])", node="BinaryCrossEntropyWithLogitsBackward0")
_loss(f"binary_cross_entropy_with_logits.functional(Tensor input, Tensor target, Tensor? weight=None, {_LEGACY}, Tensor? pos_weight=None)",
      _WITH_LOGITS, "facula.zeros(1), facula.ones(1)", "tensor(0.6931)", "binary_cross_entropy_with_logits",
      node="BinaryCrossEntropyWithLogitsBackward0")
op("_logit_cross_entropy(Tensor self, Tensor target) -> Tensor", elementwise("f"), f="(1 - b) * a + softplus(-a)",
   grad=dict(self="_logit_cross_entropy_grad(grad, self, target)", target="-(grad * self)"),
   node="BinaryCrossEntropyWithLogitsBackward0")
op("_logit_cross_entropy_grad(Tensor grad_out, Tensor self, Tensor target) -> Tensor", elementwise("f"), f="a * (sigmoid(b) - c)",
   grad=dict(grad_out="_logit_cross_entropy_grad(grad, self, target)", self="_sigmoid_grad(grad * grad_out, sigmoid(self))",
             target="-(grad * grad_out)"))

# ---- classes

_loss("cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0)",
      "The negative logarithm of the softmax over dimension 1 at the classes in ``target``; or, with probabilities in\n"
      "``target``, its mean under them. ``weight`` has one number for each class; 'mean' divides by the weights that\n"
      "were used. Targets of ``ignore_index`` do not count. ``label_smoothing`` mixes the uniform distribution in.",
      "facula.zeros(1, 4), facula.tensor([2])", "tensor(1.3863)", "cross_entropy")
# The loss of every sample before the reduction, (largest logit, logarithm of the sum of exponentials above it), and the sum of
# the weights.
op("_cross_entropy(Tensor self, Tensor target, Tensor? weight, int ignore_index, float label_smoothing) -> (Tensor loss, Tensor sums, Tensor total_weight)",
   kernel(), grad=dict(self="_cross_entropy_grad(grad_loss, self, target, sums, weight, ignore_index, label_smoothing)"),
   nondifferentiable=("sums", "total_weight"), batch="cross_entropy", samples="none", node="NllLossBackward0")
op("_cross_entropy_grad(Tensor grad_out, Tensor self, Tensor target, Tensor sums, Tensor? weight, int ignore_index, float label_smoothing) -> Tensor",
   kernel(), grad={"grad_out, self": "_cross_entropy_grad_grad(grad, grad_out, self, target, sums, weight, ignore_index, label_smoothing)"},
   batch="cross_entropy_grad", samples="none")
op("_cross_entropy_grad_grad(Tensor grad, Tensor grad_out, Tensor self, Tensor target, Tensor sums, Tensor? weight, int ignore_index, float label_smoothing) -> (Tensor, Tensor)",
   composite(), samples="none")
_loss("nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean')",
      "The negative of ``input``, logarithms of probabilities, at the classes (dimension 1) in ``target``. ``weight`` has one\n"
      "number for each class; 'mean' divides by the weights that were used. Targets of ``ignore_index`` do not count.",
      "facula.tensor([[-1., -2.]]), facula.tensor([1])", "tensor(2.)", "nll_loss")
op("_nll_loss(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> (Tensor loss, Tensor total_weight)", kernel(),
   grad=dict(self="_nll_loss_grad(grad_loss, self.sizes(), target, weight, ignore_index)"), nondifferentiable=("total_weight",),
   batch="nll_loss", samples="none", node="NllLossBackward0", constant_slope=True)
op("_nll_loss_grad(Tensor grad_out, int[] sizes, Tensor target, Tensor? weight, int ignore_index) -> Tensor", kernel(),
   grad=dict(grad_out="_nll_loss_only(grad, target, weight, ignore_index)"), batch="nll_loss_grad", samples="none")
op("_nll_loss_only(Tensor self, Tensor target, Tensor? weight, int ignore_index) -> Tensor", composite(), samples="none")
_loss(f"multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, {_LEGACY})",
      "The mean over classes of ``max(0, margin - x[y] + x[i])**p``, for all i but the class y itself.",
      "facula.tensor([[0.1, 0.2, 0.8]]), facula.tensor([2])", "tensor(0.2333)", "multi_margin_loss",
      node="MultiMarginLossBackward0")
_loss(f"multilabel_margin_loss(Tensor input, Tensor target, {_LEGACY})",
      "The mean over classes of ``max(0, 1 - (x[y] - x[i]))``, for all classes y in ``target``, up to the first -1, and all i\n"
      "that are not among them.", "facula.tensor([[0.1, 0.2, 0.8]]), facula.tensor([[2, -1, 0]])", "tensor(0.2333)",
      "multilabel_margin_loss", node="MultilabelMarginLossBackward0")
op("_multilabel_margin(Tensor self, Tensor target) -> Tensor", kernel(), grad="_multilabel_margin_grad(grad, self, target)",
   batch="core 1 1", samples="none", node="MultilabelMarginLossBackward0")
op("_multilabel_margin_grad(Tensor grad_out, Tensor self, Tensor target) -> Tensor", kernel(),
   grad=dict(grad_out="_multilabel_margin_along(grad, grad_out, self, target)"), batch="core 0 1 1", samples="none")
op("_multilabel_margin_along(Tensor direction, Tensor grad_out, Tensor self, Tensor target) -> Tensor", composite(), samples="none")
_loss(f"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, {_LEGACY})",
      "The mean over classes, the last dimension, of ``binary_cross_entropy_with_logits``.",
      "facula.zeros(1, 2), facula.ones(1, 2)", "tensor(0.6931)", "multilabel_soft_margin_loss")

# ---- distributions

_KL = "``t * (log(t) - x)`` for logarithms x of probabilities; with ``log_target`` t is given by its logarithm."
op("kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor", composite(), method=False, out=False,
   samples="none", doc=_KL, example=">>> facula.kl_div(facula.zeros(1), facula.ones(1))\ntensor([0.])")
_loss(f"kl_div.functional(Tensor input, Tensor target, {_LEGACY}, bool log_target=False)",
      _KL + " ``reduction='batchmean'`` divides the sum by the size of dimension 0.", "facula.zeros(1), facula.ones(1), reduction='sum'",
      "tensor(0.)", "kl_div")
_POISSON = ("``exp(x) - t * x``, or with ``log_input=False`` ``x - t * log(x + eps)``; ``full`` adds Stirling's approximation of\n"
            "``log(t!)``.")
op("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor", composite(),
   out=False, samples="none", doc=_POISSON,
   example=">>> facula.poisson_nll_loss(facula.zeros(1), facula.ones(1), True, False, 1e-8, 1)\ntensor(1.)")
_loss("poisson_nll_loss.functional(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean')",
      _POISSON, "facula.zeros(1), facula.ones(1)", "tensor(1.)", "poisson_nll_loss")
_loss("gaussian_nll_loss(Tensor input, Tensor target, Operand var, bool full=False, float eps=1e-06, str reduction='mean')",
      "``0.5 * (log(var) + (x - t)**2 / var)``, with variances of no less than ``eps``; ``full`` adds ``0.5 * log(2 * pi)``.",
      "facula.zeros(1), facula.ones(1), facula.ones(1)", "tensor(0.5000)", "gaussian_nll_loss")
# Limited from below, with the gradient of what was given.
op("_variances(Tensor self, float eps) -> Tensor", elementwise("f", check="variances"), f="eps if a < eps else a", grad="grad")

# ---- pairs and triplets

_HINGE = "``x`` where the target is 1, ``max(0, margin - x)`` where it is -1."
op("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor", composite(), method=False, out=False,
   samples="none", doc=_HINGE, example=">>> facula.hinge_embedding_loss(facula.tensor([2.]), facula.tensor([1.]))\ntensor([2.])")
_loss(f"hinge_embedding_loss.functional(Tensor input, Tensor target, float margin=1.0, {_LEGACY})", _HINGE,
      "facula.tensor([2.]), facula.tensor([1.])", "tensor(2.)", "hinge_embedding_loss")
_COSINE = "``1 - cos(x1, x2)`` where the target is 1, ``max(0, cos(x1, x2) - margin)`` where it is -1."
op("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor", composite(),
   out=False, samples="none", doc=_COSINE,
   example=">>> facula.cosine_embedding_loss(facula.ones(1, 2), -facula.ones(1, 2), facula.ones(1))\ntensor([2.])")
_loss(f"cosine_embedding_loss.functional(Tensor input1, Tensor input2, Tensor target, float margin=0, {_LEGACY})", _COSINE,
      "facula.ones(1, 2), -facula.ones(1, 2), facula.ones(1)", "tensor(2.)", "cosine_embedding_loss")
_RANKING = "``max(0, -target * (x1 - x2) + margin)``."
op("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor", composite(),
   out=False, samples="none", doc=_RANKING,
   example=">>> facula.margin_ranking_loss(facula.zeros(1), facula.ones(1), facula.ones(1))\ntensor([1.])")
_loss(f"margin_ranking_loss.functional(Tensor input1, Tensor input2, Tensor target, float margin=0, {_LEGACY})", _RANKING,
      "facula.zeros(1), facula.ones(1), facula.ones(1)", "tensor(1.)", "margin_ranking_loss")
_loss(f"soft_margin_loss(Tensor input, Tensor target, {_LEGACY})", "``log(1 + exp(-t * x))`` for targets 1 and -1.",
      "facula.zeros(1), facula.ones(1)", "tensor(0.6931)", "pair", node="SoftMarginLossBackward0")
_TRIPLET = ("``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the distance of order ``p``; with ``swap`` the\n"
            "negative may be compared with the positive instead, where that is nearer.")
op("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, int reduction=0) -> Tensor",
   composite(), out=False, samples="none", doc=_TRIPLET,
   example=">>> x = facula.zeros(1, 2)\n>>> facula.triplet_margin_loss(x, x, x)\ntensor([1.])")
_loss(f"triplet_margin_loss.functional(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, {_LEGACY})",
      _TRIPLET, "x, x, x", "tensor(1.)", "triplet_margin_loss", before=">>> x = facula.zeros(1, 2)\n")

# ---- sequences

_CTC = ("The connectionist temporal classification loss of ``log_probs`` (T, N, C) for label sequences ``targets``, (N, S) or one\n"
        "after the other in one dimension, that appear in order among ``blank`` labels. ``zero_infinity`` replaces losses of\n"
        "sequences that do not fit.")
_CTC_AT = ">>> p = facula.log_softmax(facula.zeros(3, 1, 2), 2)\n"
_REST = "int blank=0, int reduction=0, bool zero_infinity=False"
op(f"ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_REST}) -> Tensor", composite(),
   out=False, samples="none", doc=_CTC,
   example=f"{_CTC_AT}>>> facula.ctc_loss(p, facula.tensor([[1]]), facula.tensor([3]), facula.tensor([1]))\ntensor([0.2877])")
op(f"ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_REST}) -> Tensor", composite(),
   out=False, samples="none", doc=_CTC,
   example=f"{_CTC_AT}>>> facula.ctc_loss(p, facula.tensor([[1]]), (3,), (1,))\ntensor([0.2877])")
_REST = "int blank=0, str reduction='mean', bool zero_infinity=False"
_loss(f"ctc_loss.functional(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_REST})", _CTC,
      "p, facula.tensor([[1]]), facula.tensor([3]), facula.tensor([1])", "tensor(0.2877)", "ctc_loss", before=_CTC_AT)
op(f"ctc_loss.functional_ints(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_REST}) -> Tensor",
   composite(), python="nn.functional.ctc_loss", out=False, samples="none", doc=_CTC,
   example=f"{_CTC_AT}>>> facula.nn.functional.ctc_loss(p, facula.tensor([[1]]), (3,), (1,))\ntensor(0.2877)")
op("_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool zero_infinity) -> (Tensor neg_log_likelihood, Tensor log_alpha)",
   kernel(), grad=dict(log_probs="_ctc_loss_grad(grad_neg_log_likelihood, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity)"),
   nondifferentiable=("log_alpha",), batch="ctc_loss", samples="none", node="CtcLossBackward0")
op("_ctc_loss_grad(Tensor grad_out, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity) -> Tensor",
   kernel(), grad=dict(grad_out='_no_derivative("ctc_loss", "gradient")', log_probs='_no_derivative("ctc_loss", "gradient")'),
   batch="ctc_loss", samples="none")
