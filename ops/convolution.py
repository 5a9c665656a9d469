"""Convolutions, their transposes, and the rows that their derivatives are made of.

The derivative by the input is the transposed convolution, that by the weight a row of its own, and
the derivatives of that one are convolutions again, so that any order of differentiation stays here.
"""

from gen.rows import composite, kernel, op

op("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
   kernel(),
   grad=dict(input="_convolve_to(grad, conj(weight), input.sizes(), stride, padding, dilation, groups) if transposed"
                   " else _convolve_back_to(grad, conj(weight), input.sizes(), stride, padding, dilation, groups)",
             weight="_convolution_weight_gradient(grad, conj(input), weight.sizes(), stride, padding, dilation, groups) if transposed"
                    " else _convolution_weight_gradient(conj(input), grad, weight.sizes(), stride, padding, dilation, groups)",
             bias="_sum_to_channels(grad)"),
   batch="convolution", out=False, samples="convolution",
   doc="Convolution in one, two or three dimensions, or with ``transposed=True`` its transpose: the operator\n"
       "behind ``conv1d`` ... ``conv_transpose3d``. ``input`` is (N, C, ...); ``stride``, ``padding``, ``dilation``\n"
       "and ``output_padding`` have one value for each spatial dimension, or one for all.",
   example=">>> x, w = facula.ones(1, 1, 4), facula.ones(1, 1, 3)\n"
           ">>> facula.convolution(x, w, None, [1], [0], [1], False, [0], 1)\ntensor([[[3., 3.]]])")
# The sum over batch and output pixels of grad times what they saw of the input, as a weight.
op("_convolution_weight_gradient(Tensor input, Tensor grad_output, int[] weight_size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
   kernel(),
   grad=dict(input="_convolve_back_to(conj(grad_output), grad, input.sizes(), stride, padding, dilation, groups)",
             grad_output="_convolve_to(conj(input), grad, grad_output.sizes(), stride, padding, dilation, groups)"),
   batch="convolution_weight_gradient", jvp="each", samples="none")
# A convolution, and a transposed one, whose result has the spatial size that is given.
op("_convolve_to(Tensor input, Tensor weight, int[] size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
   composite(), samples="none")
op("_convolve_back_to(Tensor input, Tensor weight, int[] size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
   composite(), samples="none")
op("_sum_to_channels(Tensor self) -> Tensor", composite(), samples="none")

_SAME = ("``padding`` may be 'valid' (none) or 'same' (so that the result has the input's size; stride 1 only).")

for _n, _shape, _kernel, _example in (
    (1, "(N, C, L) or (C, L)", "(out_channels, C / groups, k)",
     ">>> facula.conv1d(facula.tensor([[1., 2., 3.]]), facula.ones(1, 1, 2))\ntensor([[3., 5.]])"),
    (2, "(N, C, H, W) or (C, H, W)", "(out_channels, C / groups, kH, kW)",
     ">>> facula.conv2d(facula.ones(1, 3, 3), facula.ones(1, 1, 2, 2))\ntensor([[[4., 4.],\n         [4., 4.]]])"),
    (3, "(N, C, D, H, W) or (C, D, H, W)", "(out_channels, C / groups, kD, kH, kW)",
     ">>> facula.conv3d(facula.ones(1, 1, 2, 2), facula.ones(1, 1, 1, 2, 2))\ntensor([[[[4.]]]])"),
):
    _ones, _zeros = str([1] * _n), str([0] * _n)
    op(f"conv{_n}d(Tensor input, Tensor weight, Tensor? bias=None, int[{_n}] stride={_ones}, int[{_n}] padding={_zeros}, int[{_n}] dilation={_ones}, int groups=1) -> Tensor",
       composite(), aliases=(f"nn.functional.conv{_n}d",), out=False, samples=f"conv{_n}d",
       doc=f"Cross-correlates ``input``, {_shape}, with ``weight``, {_kernel}, and adds ``bias``, (out_channels,).\n"
           f"{_SAME}",
       example=_example)
    op(f"conv{_n}d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[{_n}] stride={_ones}, str padding='valid', int[{_n}] dilation={_ones}, int groups=1) -> Tensor",
       composite(), aliases=(f"nn.functional.conv{_n}d",), out=False, samples=f"conv{_n}d_padding",
       doc="With the padding by name.", example=_example.replace("))\n", "), padding='valid')\n", 1))

for _n, _shape, _kernel, _example in (
    (1, "(N, C, L) or (C, L)", "(C, out_channels / groups, k)",
     ">>> facula.conv_transpose1d(facula.tensor([[1., 2.]]), facula.ones(1, 1, 2))\ntensor([[1., 3., 2.]])"),
    (2, "(N, C, H, W) or (C, H, W)", "(C, out_channels / groups, kH, kW)",
     ">>> facula.conv_transpose2d(facula.ones(1, 1, 1), facula.ones(1, 1, 1, 2), stride=2)\ntensor([[[1., 1.]]])"),
    (3, "(N, C, D, H, W) or (C, D, H, W)", "(C, out_channels / groups, kD, kH, kW)",
     ">>> facula.conv_transpose3d(facula.ones(1, 1, 1, 1), facula.ones(1, 1, 1, 1, 2))\ntensor([[[[1., 1.]]]])"),
):
    _ones, _zeros = str([1] * _n), str([0] * _n)
    op(f"conv_transpose{_n}d(Tensor input, Tensor weight, Tensor? bias=None, int[{_n}] stride={_ones}, int[{_n}] padding={_zeros}, int[{_n}] output_padding={_zeros}, int groups=1, int[{_n}] dilation={_ones}) -> Tensor",
       composite(), aliases=(f"nn.functional.conv_transpose{_n}d",), out=False, samples=f"conv_transpose{_n}d",
       doc=f"The transpose of ``conv{_n}d``: spreads every element of ``input``, {_shape}, over the output through\n"
           f"``weight``, {_kernel}. ``output_padding`` is added to the far end of the result's size.",
       example=_example)

op("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", composite(), method=False,
   aliases=("nn.functional.conv_tbc",), out=False, samples="conv_tbc",
   doc="Convolution of sequences (time, batch, channels) with ``weight`` (k, channels, out_channels), after ``pad``\n"
       "zeros on both sides.",
   example=">>> facula.conv_tbc(facula.ones(2, 1, 1), facula.ones(2, 1, 1), facula.zeros(1))\ntensor([[[2.]]])")
