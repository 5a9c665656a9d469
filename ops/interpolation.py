"""Images and volumes of another size. ``nn.functional.interpolate`` chooses among these rows.

``scales`` are the factors that a caller gave, for each spatial dimension; empty, or zero, where the sizes decide.
"""

from gen.rows import kernel, op

# mode: 'linear' or 'cubic', or with ' antialias' behind it, which widens the windows of a smaller result; 'lanczos antialias'.
op("_interpolate(Tensor self, int[] output_size, str mode, bool align_corners, float[] scales) -> Tensor",
   kernel(), python="_interpolate", function=True, method=False, batch="leading", jvp="linear", samples="interpolate", out=False,
   grad="_interpolate_grad(grad, self.sizes(), output_size, mode, align_corners, scales)")
op("_interpolate_grad(Tensor grad_output, int[] size, int[] output_size, str mode, bool align_corners, float[] scales) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_interpolate(grad, output_size, mode, align_corners, scales)"))
op("_nearest(Tensor self, int[] output_size, bool exact, float[] scales) -> Tensor",
   kernel(), python="_nearest", function=True, method=False, batch="leading", jvp="linear", samples="nearest", out=False,
   grad="_nearest_grad(grad, self.sizes(), output_size, exact, scales)", node="UpsampleNearest2DBackward0")
op("_nearest_grad(Tensor grad_output, int[] size, int[] output_size, bool exact, float[] scales) -> Tensor",
   kernel(), batch="dims", jvp="linear", samples="none",
   grad=dict(grad_output="_nearest(grad, output_size, exact, scales)"))
