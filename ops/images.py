"""Rearranging and sampling images: pixels to channels, patches to columns, values at arbitrary points."""

from gen.rows import composite, kernel, op

# ---- pixels and channels

op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad="pixel_unshuffle(grad, upscale_factor)", aliases=("nn.functional.pixel_shuffle",),
   method=False, out=False, samples="pixel_shuffle",
   doc="Moves channels to pixels: (..., C * r * r, H, W) becomes (..., C, H * r, W * r) for ``upscale_factor`` r.",
   example=">>> facula.pixel_shuffle(facula.arange(4.).reshape(4, 1, 1), 2)\ntensor([[[0., 1.],\n         [2., 3.]]])")
op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad="pixel_shuffle(grad, downscale_factor)", aliases=("nn.functional.pixel_unshuffle",),
   method=False, out=False, samples="pixel_unshuffle",
   doc="Moves pixels to channels: (..., C, H * r, W * r) becomes (..., C * r * r, H, W) for ``downscale_factor`` r.",
   example=">>> facula.pixel_unshuffle(facula.ones(1, 4, 4), 2).shape\nfacula.Size([4, 2, 2])")
op("channel_shuffle(Tensor self, int groups) -> Tensor", composite(), aliases=("nn.functional.channel_shuffle",),
   method=False, out=False, samples="channel_shuffle",
   doc="Deals the channels of (N, C, ...) out again, one from each of ``groups`` groups at a time.",
   example=">>> facula.channel_shuffle(facula.arange(4).reshape(1, 4, 1), 2).flatten()\ntensor([0, 2, 1, 3])")
op("native_channel_shuffle(Tensor self, int groups) -> Tensor", composite(), aliases=("nn.functional.native_channel_shuffle",),
   method=False, out=False, samples="channel_shuffle",
   doc="``channel_shuffle``, under the name of its kernel.",
   example=">>> facula.native_channel_shuffle(facula.arange(4).reshape(1, 4, 1), 2).flatten()\ntensor([0, 2, 1, 3])")

# ---- patches as columns

op("_im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor", kernel(),
   batch="leading", jvp="linear", samples="none",
   grad="_col2im(grad, self.sizes(), kernel_size, dilation, padding, stride)", node="Im2ColBackward0")
op("_col2im(Tensor self, int[] size, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor", kernel(),
   batch="dims", jvp="linear", samples="none",
   grad="_im2col(grad, kernel_size, dilation, padding, stride)")
op("im2col(Tensor input, int[2] kernel_size, int[2] dilation=[1, 1], int[2] padding=[0, 0], int[2] stride=[1, 1]) -> Tensor",
   composite(), python="nn.functional.unfold", method=False, out=False, samples="im2col",
   doc="Every patch of (N, C, H, W) as a column: (N, C * kH * kW, patches). What lies in the padding is zero.",
   example=">>> facula.nn.functional.unfold(facula.arange(6.).reshape(1, 1, 2, 3), 2)\n"
           "tensor([[[0., 1.],\n         [1., 2.],\n         [3., 4.],\n         [4., 5.]]])", node="Im2ColBackward0")
op("col2im(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=[1, 1], int[2] padding=[0, 0], int[2] stride=[1, 1]) -> Tensor",
   composite(), python="nn.functional.fold", method=False, out=False, samples="col2im",
   doc="Adds columns up to an image (N, C, *output_size): the transpose of ``unfold``. Patches that overlap are summed.",
   example=">>> columns = facula.ones(1, 2, 2)\n"
           ">>> facula.nn.functional.fold(columns, (1, 3), (1, 2))\ntensor([[[[1., 2., 1.]]]])", node="Col2ImBackward0")

# ---- values at arbitrary points

# Three sums over what points see: for each point, for each pixel, and of the slopes for each point. Their
# derivatives by the grid are the same sums with weights differentiated along a direction.
op("_grid_sample(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none", node="GridSampler2DBackward0",
   grad=dict(input="_grid_sample_back(grad, grid, input.sizes(), interpolation_mode, padding_mode, align_corners)",
             grid="_grid_sample_slopes(grad, input, grid, interpolation_mode, padding_mode, align_corners)"))
op("_grid_sample_back(Tensor grad_output, Tensor grid, int[] size, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none",
   grad=dict(grad_output="_grid_sample(grad, grid, interpolation_mode, padding_mode, align_corners)", grid="_grid_sample_slopes(grad_output, grad, grid, interpolation_mode, padding_mode, align_corners)"))
op("_grid_sample_slopes(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none",
   grad=dict(grad_output="_grid_sample_along(input, grid, grad, interpolation_mode, padding_mode, align_corners)",
             input="_grid_sample_back_along(grad_output, grid, grad, input.sizes(), interpolation_mode, padding_mode, align_corners)",
             grid="_grid_sample_slopes_along(grad_output, input, grid, grad, interpolation_mode, padding_mode, align_corners)"))
op("_grid_sample_along(Tensor input, Tensor grid, Tensor direction, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none",
   grad=dict(input="_grid_sample_back_along(grad, grid, direction, input.sizes(), interpolation_mode, padding_mode, align_corners)",
             grid="_grid_sample_slopes_along(grad, input, grid, direction, interpolation_mode, padding_mode, align_corners)",
             direction="_grid_sample_slopes(grad, input, grid, interpolation_mode, padding_mode, align_corners)"))
op("_grid_sample_back_along(Tensor grad_output, Tensor grid, Tensor direction, int[] size, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none",
   grad=dict(grad_output="_grid_sample_along(grad, grid, direction, interpolation_mode, padding_mode, align_corners)",
             grid="_grid_sample_slopes_along(grad_output, grad, grid, direction, interpolation_mode, padding_mode, align_corners)",
             direction="_grid_sample_slopes(grad_output, grad, grid, interpolation_mode, padding_mode, align_corners)"))
op("_grid_sample_slopes_along(Tensor grad_output, Tensor input, Tensor grid, Tensor direction, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   kernel(), batch="dims", samples="none",
   grad=dict(direction="_grid_sample_slopes_along(grad_output, input, grid, grad, interpolation_mode, padding_mode, align_corners)",
             **{_a: f'_no_derivative("grid_sample", "{_a}")' for _a in ("grad_output", "input", "grid")}))
op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
   composite(), method=False, out=False, samples="grid_sampler",
   doc="``nn.functional.grid_sample`` with numbers for its modes: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border,\n"
       "2 reflection.",
   example=">>> facula.grid_sampler(facula.ones(1, 1, 2, 2), facula.zeros(1, 1, 1, 2), 0, 0, False)\ntensor([[[[1.]]]])")
for _n, _example in (
    (2, ">>> facula.grid_sampler_2d(facula.ones(1, 1, 2, 2), facula.zeros(1, 1, 1, 2), 0, 0, False)\ntensor([[[[1.]]]])"),
    (3, ">>> facula.grid_sampler_3d(facula.ones(1, 1, 2, 2, 2), facula.zeros(1, 1, 1, 1, 3), 0, 0, False)\ntensor([[[[[1.]]]]])"),
):
    op(f"grid_sampler_{_n}d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
       composite(), method=False, out=False, samples=f"grid_sampler_{_n}d",
       doc=f"``grid_sampler`` for {'images' if _n == 2 else 'volumes'}.", example=_example)
op("grid_sample(Tensor input, Tensor grid, str mode=\"bilinear\", str padding_mode=\"zeros\", bool? align_corners=None) -> Tensor",
   composite(), python="nn.functional.grid_sample", method=False, out=False, samples="grid_sample",
   doc="The values of ``input``, (N, C, H, W) or (N, C, D, H, W), at the points of ``grid``, (N, ..., 2) or (N, ..., 3):\n"
       "x, y (and z) from -1 to 1 across the input.\n\n"
       "``mode`` is 'bilinear', 'nearest' or 'bicubic' (images only). Points outside see zeros, the nearest element\n"
       "(``padding_mode='border'``) or a mirrored input ('reflection'). With ``align_corners=True`` -1 and 1 are the\n"
       "centres of the outermost elements, else their outer edges.",
   example=">>> x = facula.tensor([[[[1., 3.]]]])\n"
           ">>> facula.nn.functional.grid_sample(x, facula.zeros(1, 1, 1, 2), align_corners=False)\ntensor([[[[2.]]]])")
op("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor", composite(), method=False, out=False,
   samples="affine_grid_generator",
   doc="``nn.functional.affine_grid`` without a default for ``align_corners``.",
   example=">>> facula.affine_grid_generator(facula.eye(2, 3)[None], (1, 1, 1, 2), True)\n"
           "tensor([[[[-1.,  0.],\n          [ 1.,  0.]]]])")
op("affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor", composite(), python="nn.functional.affine_grid",
   method=False, out=False, samples="affine_grid",
   doc="The points that affine maps ``theta``, (N, 2, 3) or (N, 3, 4), give to the elements of an image or volume of\n"
       "``size``, (N, C, H, W) or (N, C, D, H, W): a grid for ``grid_sample``.",
   example=">>> facula.nn.functional.affine_grid(facula.eye(2, 3)[None], (1, 1, 1, 2), align_corners=True)\n"
           "tensor([[[[-1.,  0.],\n          [ 1.,  0.]]]])")
