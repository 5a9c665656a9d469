"""Padding: with a constant, or with elements of the tensor itself."""

from gen.rows import composite, kernel, op

_PAIRS = ("``pad`` has two numbers for each padded dimension, the last dimension first: what is added in front of it\n"
          "and behind it. Negative numbers cut elements off.")

op("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", kernel(), batch="leading", method=False,
   grad="_unpad(grad, pad)", samples="constant_pad_nd",
   doc=f"Adds elements of one value at the ends of dimensions. {_PAIRS}",
   example=">>> facula.constant_pad_nd(facula.tensor([1, 2]), (1, 2), 7)\ntensor([7, 1, 2, 7, 7])")
op("_unpad(Tensor self, int[] pad) -> Tensor", composite(), samples="none")
# Elements of the tensor in place of a constant; mode is 'reflect', 'replicate' or 'circular'.
op("_pad_with_own(Tensor self, int[] pad, str mode) -> Tensor", kernel(), batch="leading", jvp="linear", samples="none",
   grad="_pad_with_own_grad(grad, self.sizes(), pad, mode)", constant_slope=True)
# The same where autocast leaves the dtype alone: PyTorch names some of these pads only (gen/autocast.py).
op("_pad_in_own_dtype(Tensor self, int[] pad, str mode) -> Tensor", composite(), samples="none")
op("_pad_with_own_grad(Tensor grad_output, int[] size, int[] pad, str mode) -> Tensor", kernel(), batch="dims", jvp="linear",
   grad=dict(grad_output="_pad_with_own(grad, pad, mode)"), samples="none")
op("pad(Tensor input, int[] pad, str mode=\"constant\", Scalar? value=None) -> Tensor", composite(), python="nn.functional.pad",
   method=False, out=False, samples="pad",
   doc=f"Adds elements at the ends of dimensions. {_PAIRS}\n\n"
       "``mode`` is 'constant' (``value``, zero by default), 'reflect' (mirrored at the outermost elements),\n"
       "'replicate' (the outermost element) or 'circular' (the other end). The last three take (N, C, ...) or\n"
       "(C, ...) and pad all spatial dimensions.",
   example=">>> facula.nn.functional.pad(facula.tensor([[1., 2., 3.]]), (2, 1), 'reflect')\n"
           "tensor([[3., 2., 1., 2., 3., 2.]])")
