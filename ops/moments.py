"""Variance and mean in one pass over the data."""

from gen.rows import composite, kernel, op

op("_moments(Tensor self, int[] dim, float correction, bool keepdim) -> (Tensor variance, Tensor mean)",
   kernel(), batch="dims", samples="none", python="_moments", function=True, method=False, out=False,
   grad="_moments_grad(grad_variance, grad_mean, self, mean, dim, correction, keepdim)")
op("_moments_grad(Tensor grad_variance, Tensor grad_mean, Tensor self, Tensor mean, int[] dim, "
   "float correction, bool keepdim) -> Tensor", composite())
