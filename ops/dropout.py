"""Dropout: random zeros. For a seed the zeros are PyTorch's."""

from gen.rows import composite, elementwise, kernel, op

_KEPT = "elements are set to 0 with probability ``p``, the others divided by ``1 - p``"
_SEED = ">>> _ = facula.manual_seed(0)\n"
# What is kept, times `scale`; 0 times the rest, so that infinities show.
op("_keep_scaled(Tensor self, Tensor mask, float scale) -> Tensor", elementwise("fc", masks=("mask",)), inplace=True,
   f="a * select(b, scale, scale * 0)", grad="_keep_scaled(grad, mask, scale)", node="MulBackward0")

# Mask and result in one pass, for devices. scale is 1 / (1 - p) as the dtype has it.
op("_masked_dropout(Tensor self, float p, float scale, *, Generator? generator=None) -> (Tensor output, Tensor mask)",
   kernel(), out=False, samples="none", nondifferentiable=("mask",), grad="_keep_scaled(grad_output, mask, scale)",
   node="MulBackward0")

for _name, _words, _flat in (
    ("dropout", f"While training, {_KEPT}.", True),
    ("feature_dropout", f"While training, channels (dimension 1) are dropped as a whole: {_KEPT}.", False),
    ("alpha_dropout", "While training, elements are set, with probability ``p``, to the value that ``selu`` has far below 0, and all are\n"
                      "scaled and shifted so that mean and variance stay.", True),
    ("feature_alpha_dropout", "``alpha_dropout`` of channels (dimension 1) as a whole.", False),
):
    _x = "facula.ones(4)" if _flat else "facula.ones(1, 4)"
    _at = f"{_SEED}>>> facula.{_name}({_x}, 0.5, %s)\n"
    _ones = "tensor([1., 1., 1., 1.])" if _flat else "tensor([[1., 1., 1., 1.]])"
    op(f"{_name}(Tensor input, float p, bool train) -> Tensor", composite(), out=False, samples="none", doc=_words,
       example=_at % "False" + _ones)
    op(f"{_name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", composite(), function=True, method=False, samples="none",
       doc=f"``{_name}`` in place.", example=f">>> facula.{_name}_({_x}, 0.5, False)\n{_ones}")
op("native_dropout(Tensor input, float p, bool? train) -> (Tensor output, Tensor mask)", composite(), out=False, samples="none",
   doc="``dropout`` together with what was kept.",
   example=f"{_SEED}>>> facula.native_dropout(facula.ones(4), 0.5, True).mask\ntensor([False, False,  True, False])")


def _function(name, words, training, example):
    op(f"{name}.functional(Tensor input, float p=0.5, bool training={training}, bool inplace=False) -> Tensor", composite(),
       python=f"nn.functional.{name}", out=False, samples="none",
       doc=f"{words} With ``inplace=True`` the result replaces the input.", example=example)


_function("dropout", f"While ``training``, {_KEPT}.", True,
          f"{_SEED}>>> facula.nn.functional.dropout(facula.ones(4), 0.5)\ntensor([0., 0., 2., 0.])")
for _n, _shape in ((1, "(N, C, L) or (C, L)"), (2, "(N, C, H, W) or (C, H, W)"), (3, "(N, C, D, H, W) or (C, D, H, W)")):
    _sizes = "1, 1" + ", 1" * _n
    _function(f"dropout{_n}d", f"While ``training``, whole channels of the input, {_shape}, are dropped: {_KEPT}.", True,
              f">>> facula.nn.functional.dropout{_n}d(facula.ones({_sizes}), training=False).sum()\ntensor(1.)")
for _name in ("alpha_dropout", "feature_alpha_dropout"):
    _function(_name, "Random elements become the value that ``selu`` has far below 0, with mean and variance kept; whole channels with\n"
                     "``feature_alpha_dropout``.", False,
              f">>> facula.nn.functional.{_name}(facula.ones(1, 2))\ntensor([[1., 1.]])")
