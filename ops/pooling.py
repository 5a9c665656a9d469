"""Pooling: the largest, the average, or a norm of the elements of every window.

Windows of max pooling remember which tap was the largest; averages are weighted sums along each
axis, so that their derivative is the transposed sum.
"""

from gen.rows import composite, kernel, op

_SHAPES = {1: "(N, C, L) or (C, L)", 2: "(N, C, H, W) or (C, H, W)", 3: "(N, C, D, H, W) or (C, D, H, W)"}

# ---- max pooling

op("_max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> (Tensor values, Tensor taps)",
   kernel(), nondifferentiable=("taps",), batch="dims", samples="none",
   grad="_max_pool_grad(grad_values, taps, self.sizes(), kernel_size, stride, padding, dilation)", node="MaxPool2DWithIndicesBackward0", constant_slope=True)
# The values alone, of tensors on the host without a history.
op("_max_pool_values(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor",
   kernel(), batch="dims", samples="none")
# The transpose of _max_pool_pick: every gradient goes to the pixel of its tap.
op("_max_pool_grad(Tensor grad_output, Tensor taps, int[] size, int[] kernel_size, int[] stride, int[] padding, int[] dilation) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_max_pool_pick(grad, taps, kernel_size, stride, padding, dilation)"))
# What the taps of windows see of another input.
op("_max_pool_pick(Tensor self, Tensor taps, int[] kernel_size, int[] stride, int[] padding, int[] dilation) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad="_max_pool_grad(grad, taps, self.sizes(), kernel_size, stride, padding, dilation)")
op("_max_pool_positions(Tensor taps, int[] size, int[] kernel_size, int[] stride, int[] padding, int[] dilation) -> Tensor",
   kernel(), batch="dims", samples="none")

for _n, _example in (
    (1, ">>> facula.max_pool1d(facula.tensor([[1., 3., 2., 5.]]), 2)\ntensor([[3., 5.]])"),
    (2, ">>> facula.max_pool2d(facula.arange(4.).reshape(1, 2, 2), 2)\ntensor([[[3.]]])"),
    (3, ">>> facula.max_pool3d(facula.arange(8.).reshape(1, 2, 2, 2), 2)\ntensor([[[[7.]]]])"),
):
    _options = (f"Tensor self, int[{_n}] kernel_size, int[{_n}]? stride=None, int[{_n}] padding={[0] * _n}, "
                f"int[{_n}] dilation={[1] * _n}, bool ceil_mode=False")
    op(f"max_pool{_n}d({_options}) -> Tensor", composite(), method=False, out=False, samples=f"max_pool{_n}d",
       doc=f"The largest element of every window of ``self``, {_SHAPES[_n]}. ``stride`` is the kernel's size unless it\n"
           "is given; ``ceil_mode=True`` keeps a last window that the input does not fill.",
       example=_example)
    op(f"max_pool{_n}d_with_indices({_options}, bool return_indices=False) -> (Tensor, Tensor)", composite(),
       python="max_pool1d_with_indices" if _n == 1 else f"nn.functional.max_pool{_n}d_with_indices",
       aliases=("nn.functional.max_pool1d_with_indices",) if _n == 1 else (), method=False, out=False,
       samples=f"max_pool{_n}d",
       doc="Max pooling, and where each largest element is: its position in the flattened plane (or volume).",
       example=f">>> facula.nn.functional.max_pool{_n}d_with_indices(facula.arange({2 ** _n}.).reshape({', '.join(['1'] + ['2'] * _n)}), 2)[1].item()\n{2 ** _n - 1}")

# ---- windows that divide the input

op("_adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor values, Tensor indices)",
   kernel(), nondifferentiable=("indices",), batch="dims", samples="none",
   grad="_max_positions_grad(grad_values, indices, self.sizes(), output_size)", node="AdaptiveMaxPool2DBackward0",
   constant_slope=True)
# Sums of gradients by positions in flattened planes, which have as many dimensions as output_size.
op("_max_positions_grad(Tensor grad_output, Tensor indices, int[] size, int[] output_size) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_max_positions_pick(grad, indices, output_size)"))
op("_max_positions_pick(Tensor self, Tensor indices, int[] output_size) -> Tensor", composite(), samples="none")
op("_adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor", kernel(), batch="dims", jvp="linear", samples="none",
   grad="_adaptive_avg_pool_grad(grad, self.sizes(), output_size)", node="AdaptiveAvgPool2DBackward0",
   constant_slope=True)
op("_adaptive_avg_pool_grad(Tensor grad_output, int[] size, int[] output_size) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_adaptive_avg_pool(grad, output_size)"))

# One window: the average of everything behind the first dimensions, whose gradient is an expanded view.
op("_mean_of_planes(Tensor self, int spatial_dims) -> Tensor", kernel(), batch="dims", jvp="linear", samples="none",
   grad="_spread_over_planes(grad, self.sizes(), spatial_dims)", node="MeanBackward1")
op("_spread_over_planes(Tensor self, int[] size, int spatial_dims) -> Tensor", composite(), samples="none")

for _n, _python, _example in (
    (1, "adaptive_avg_pool1d", ">>> facula.adaptive_avg_pool1d(facula.tensor([[1., 3., 5., 7.]]), 2)\ntensor([[2., 6.]])"),
    (2, "_adaptive_avg_pool2d", ""),
    (3, "_adaptive_avg_pool3d", ""),
):
    op(f"adaptive_avg_pool{_n}d(Tensor self, int[{_n}] output_size) -> Tensor", composite(), python=_python,
       aliases=("nn.functional.adaptive_avg_pool1d",) if _n == 1 else (), method=False, out=False,
       samples=f"adaptive_pool{_n}d",
       doc=f"The averages of ``output_size`` windows that divide ``self``, {_SHAPES[_n]}, as evenly as possible.",
       example=_example)
for _n, _python, _example in (
    (1, "adaptive_max_pool1d", ">>> facula.adaptive_max_pool1d(facula.tensor([[1., 3., 7., 5.]]), 2)\n(tensor([[3., 7.]]), tensor([[1, 2]]))"),
    (2, "_adaptive_max_pool2d", ""),
    (3, "_adaptive_max_pool3d", ""),
):
    op(f"adaptive_max_pool{_n}d(Tensor self, int[{_n}] output_size) -> (Tensor, Tensor)", composite(), python=_python,
       method=False, out=False, samples=f"adaptive_pool{_n}d",
       doc=f"The largest elements of ``output_size`` windows that divide ``self``, {_SHAPES[_n]}, as evenly as\n"
           "possible, and their positions in the flattened planes.",
       example=_example)

# ---- averages

op("_avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none", node="AvgPool2DBackward0", constant_slope=True,
   grad="_avg_pool_grad(grad, self.sizes(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)")
op("_avg_pool_grad(Tensor grad_output, int[] size, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_avg_pool(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)"))
op("avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
   composite(), aliases=("nn.functional.avg_pool1d",), method=False, out=False, samples="avg_pool1d",
   doc=f"The average of every window of ``self``, {_SHAPES[1]}. ``stride`` is the kernel's size unless it is given;\n"
       "``ceil_mode=True`` keeps a last window that the input does not fill, and ``count_include_pad=False`` divides\n"
       "by the number of elements without the padding.",
   example=">>> facula.avg_pool1d(facula.tensor([[1., 3., 5., 7.]]), 2)\ntensor([[2., 6.]])")
for _n, _example in (
    (2, ">>> facula.nn.functional.avg_pool2d(facula.arange(4.).reshape(1, 2, 2), 2)\ntensor([[[1.5000]]])"),
    (3, ">>> facula.nn.functional.avg_pool3d(facula.arange(8.).reshape(1, 2, 2, 2), 2)\ntensor([[[[3.5000]]]])"),
):
    op(f"avg_pool{_n}d(Tensor self, int[{_n}] kernel_size, int[{_n}]? stride=None, int[{_n}] padding={[0] * _n}, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       composite(), python=f"nn.functional.avg_pool{_n}d", method=False, samples=f"avg_pool{_n}d",
       doc=f"The average of every window of ``self``, {_SHAPES[_n]}. ``stride`` is the kernel's size unless it is given;\n"
           "``ceil_mode=True`` keeps a last window that the input does not fill, ``count_include_pad=False`` divides by\n"
           "the number of elements without the padding, ``divisor_override`` by that number.",
       example=_example)

# ---- norms

for _n, _example in (
    (1, ">>> facula.nn.functional.lp_pool1d(facula.tensor([[3., 4.]]), 2, 2)\ntensor([[5.]])"),
    (2, ">>> facula.nn.functional.lp_pool2d(facula.tensor([[[3., 4.]]]), 2, (1, 2))\ntensor([[[5.]]])"),
    (3, ">>> facula.nn.functional.lp_pool3d(facula.tensor([[[[3., 4.]]]]), 2, (1, 1, 2))\ntensor([[[[5.]]]])"),
):
    op(f"lp_pool{_n}d(Tensor input, float norm_type, int[{_n}] kernel_size, int[{_n}]? stride=None, bool ceil_mode=False) -> Tensor",
       composite(), python=f"nn.functional.lp_pool{_n}d", method=False, out=False, samples=f"lp_pool{_n}d",
       doc=f"``sum(x ** norm_type) ** (1 / norm_type)`` of every window of ``input``, {_SHAPES[_n]}.",
       example=_example)

# ---- windows at random places, and the way back

op("_fractional_max_pool(Tensor self, int[] kernel_size, int[] output_size, Tensor random_samples) -> (Tensor values, Tensor indices)",
   kernel(), nondifferentiable=("indices",), batch="dims", samples="none",
   grad=dict(self="_max_positions_grad(grad_values, indices, self.sizes(), output_size)"), constant_slope=True)
for _n in (2, 3):
    op(f"fractional_max_pool{_n}d(Tensor self, int[{_n}] kernel_size, int[{_n}] output_size, Tensor random_samples) -> (Tensor, Tensor)",
       composite(), python=f"_fractional_max_pool{_n}d", method=False, out=False, samples="none")
op("_max_unpool(Tensor self, Tensor indices, int[] output_size) -> Tensor", composite(), python="_max_unpool",
   method=False, out=False, samples="max_unpool",
   doc="Puts the elements of ``self`` at the given positions of planes (or volumes) of zeros, the reverse of max\n"
       "pooling with indices.",
   example=">>> facula.nn.functional.max_unpool1d(facula.tensor([[3., 5.]]), facula.tensor([[1, 3]]), 2)\n"
           "tensor([[0., 3., 0., 5.]])")
