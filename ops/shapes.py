"""Turned, cut and restrided tensors beside the plain views. The kernels are in
csrc/kernels/shapes.cpp."""

from gen.reference import np
from gen.rows import composite, kernel, op

op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", composite(), out=False,
   samples="rot90", ref=np.rot90,
   doc="Turned by ``k`` times 90 degrees, from the first of ``dims`` towards the second.",
   example=">>> facula.rot90(facula.tensor([[1, 2], [3, 4]]))\ntensor([[2, 4],\n        [1, 3]])", node="Rot90Backward0")
op("fliplr(Tensor self) -> Tensor", composite(), out=False, samples="at_least_matrix", ref=np.fliplr,
   doc="Columns in reverse order.",
   example=">>> facula.fliplr(facula.tensor([[1, 2], [3, 4]]))\ntensor([[2, 1],\n        [4, 3]])")
op("flipud(Tensor self) -> Tensor", composite(), out=False, samples="at_least_matrix", ref=np.flipud,
   doc="Rows in reverse order.",
   example=">>> facula.flipud(facula.tensor([[1, 2], [3, 4]]))\ntensor([[3, 4],\n        [1, 2]])")
op("narrow.tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)", composite(),
   out=False, samples="none", doc="With the start in a tensor of one integer.",
   example=">>> facula.arange(5).narrow(0, facula.tensor(1), 3)\ntensor([1, 2, 3])")
op("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor", composite(),
   samples="narrow", doc="A copy of what ``narrow`` shows.",
   example=">>> facula.narrow_copy(facula.arange(5), 0, 1, 3)\ntensor([1, 2, 3])")

op("adjoint(Tensor(a) self) -> Tensor(a)", composite(), out=False, samples="matrices",
   doc="The last two dimensions exchanged, conjugated: what ``mH`` gives.",
   example=">>> facula.adjoint(facula.tensor([[1 + 2j, 3j]]))\n"
           "tensor([[1.-2.j],\n        [0.-3.j]])")

# Pieces that share the memory without being views: writing to one of them is allowed, and wrong
# where the derivative of the whole still needs what was there.
op("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]", kernel(), batch="dims",
   jvp="linear", grad="cat(grad, dim)", samples="unsafe_split",
   doc="``split`` whose pieces autograd does not know as views.",
   example=">>> facula.unsafe_split(facula.arange(3), 2)\n(tensor([0, 1]), tensor([2]))")
op("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", kernel(),
   batch="dims", jvp="linear", grad="cat(grad, dim)", samples="split_with_sizes",
   doc="``split_with_sizes`` whose pieces autograd does not know as views.",
   example=">>> facula.unsafe_split_with_sizes(facula.arange(3), [1, 2])\n"
           "(tensor([0]), tensor([1, 2]))")
op("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", composite(), samples="chunk",
   doc="``chunk`` whose pieces autograd does not know as views.",
   example=">>> facula.unsafe_chunk(facula.arange(3), 2)\n(tensor([0, 1]), tensor([2]))")

_RESTRIDED = "self.sizes(), self.strides(), self.offset(), size, stride, storage_offset"
op("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) "
   "-> Tensor", kernel(), batch="as_strided_scatter", jvp="linear",
   grad=dict(self=f"_as_strided_scatter_self_grad(grad, {_RESTRIDED})",
             src=f"_as_strided_scatter_src_grad(grad, {_RESTRIDED})"),
   out=False, samples="as_strided_scatter",
   doc="A copy with what ``as_strided`` would show replaced by ``src``.",
   example=">>> facula.zeros(4).as_strided_scatter(facula.ones(2), (2,), (2,))\n"
           "tensor([1., 0., 1., 0.])")
_BASE = "Tensor grad, int[] base_size, int[] base_stride, int base_offset"
op(f"_as_strided_scatter_self_grad({_BASE}, int[] size, int[] stride, int? storage_offset) "
   "-> Tensor", composite())
op(f"_as_strided_scatter_src_grad({_BASE}, int[] size, int[] stride, int? storage_offset) "
   "-> Tensor", composite())
op("as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
   composite(), function=True, samples="none",
   doc="Gives this tensor other sizes, strides and an offset into its storage.",
   example=">>> facula.arange(3.).as_strided_((2, 2), (1, 1))\n"
           "tensor([[0., 1.],\n        [1., 2.]])")
op("empty_permuted(int[] size, int[] physical_layout, *, ScalarType? dtype=None, "
   "Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False) "
   "-> Tensor", composite(), method=False, out=False, samples="none",
   doc="Uninitialised memory; ``physical_layout`` lists the dimensions from the slowest to the "
       "fastest in memory.",
   example=">>> facula.empty_permuted((2, 3), (1, 0)).stride()\n(1, 2)")
