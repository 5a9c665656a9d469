"""Views: other shapes over the same memory. The kernels are in csrc/kernels/views.cpp."""

from gen.reference import np
from gen.rows import composite, op, view

op("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)", view(), batch="as_strided", jvp="linear",
   grad="_as_strided_grad(grad, self.sizes(), self.strides(), self.offset(), size, stride, storage_offset)", samples="as_strided",
   doc="A view with any sizes, strides and offset into the storage.",
   example=">>> facula.as_strided(facula.arange(3.), (2, 2), (1, 1))\ntensor([[0., 1.],\n        [1., 2.]])")
op("_as_strided_grad(Tensor grad, int[] base_size, int[] base_stride, int base_offset, int[] size, int[] stride, "
   "int? storage_offset) -> Tensor", composite())
op("as_strided_backward(Tensor grad, int[] base_size, int[] base_stride, int[] size, int[] stride, int offset) -> Tensor",
   composite(), python="")
op("view(Tensor(a) self, int[] size) -> Tensor(a)", view(), batch="dims", jvp="linear", function=False, grad="reshape(grad, self.sizes())",
   samples="view", doc="The same elements in another shape, without copying; one size may be -1.",
   example=">>> facula.arange(4).view(2, 2)\ntensor([[0, 1],\n        [2, 3]])")
op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view(kernel="view_dtype"), batch="leading", function=False, samples="none",
   doc="The same bytes seen as another dtype.",
   example=">>> facula.tensor([1.]).view(facula.int32)\ntensor([1065353216], dtype=facula.int32)")
op("reshape(Tensor(a) self, int[] shape) -> Tensor(a)", composite(), out=False, samples="reshape",
   doc="The same elements in another shape; a view where possible, else a copy.",
   example=">>> facula.arange(4).reshape(2, -1)\ntensor([[0, 1],\n        [2, 3]])")
op("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", composite(), function=False, out=False, samples="none",
   doc="``reshape`` to the shape of another tensor.",
   example=">>> facula.arange(4).reshape_as(facula.ones(2, 2)).shape\nfacula.Size([2, 2])")
op("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", composite(), function=False, out=False, samples="none",
   doc="``view`` with the shape of another tensor.",
   example=">>> facula.arange(4).view_as(facula.ones(2, 2)).shape\nfacula.Size([2, 2])")
op("flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", composite(), out=False, samples="flatten",
   doc="Merges a range of dimensions into one.",
   example=">>> facula.ones(2, 3, 4).flatten(1).shape\nfacula.Size([2, 12])")
op("unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)", composite(), out=False, samples="unflatten",
   doc="Splits one dimension into several; one size may be -1.",
   example=">>> facula.ones(2, 12).unflatten(1, (3, -1)).shape\nfacula.Size([2, 3, 4])")
op("ravel(Tensor(a) self) -> Tensor(a)", composite(), out=False, samples="unary", ref=np.ravel,
   doc="One dimension with all elements.", example=">>> facula.ones(2, 2).ravel()\ntensor([1., 1., 1., 1.])")
op("transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", view(), batch="dims", jvp="linear", grad="transpose(grad, dim0, dim1)",
   aliases=("swapaxes", "swapdims"), samples="two_dims", ref=np.swapaxes,
   doc="Exchanges two dimensions.", example=">>> facula.ones(2, 3).transpose(0, 1).shape\nfacula.Size([3, 2])")
op("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", composite(), samples="none",
   aliases=("swapaxes_", "swapdims_"), doc="Exchanges two dimensions of this tensor.",
   example=">>> facula.ones(2, 3).transpose_(0, 1).shape\nfacula.Size([3, 2])")
op("t(Tensor(a) self) -> Tensor(a)", view(), batch="t", jvp="linear", grad="t(grad)", samples="matrix", ref=np.transpose,
   doc="The transposed matrix; vectors stay as they are.",
   example=">>> facula.ones(2, 3).t().shape\nfacula.Size([3, 2])")
op("t_(Tensor(a!) self) -> Tensor(a!)", composite(), samples="none", doc="Transposes this matrix.",
   example=">>> facula.ones(2, 3).t_().shape\nfacula.Size([3, 2])")
op("permute(Tensor(a) self, int[] dims) -> Tensor(a)", view(), batch="permute", jvp="linear", grad="_permute_back(grad, dims)", samples="permute",
   doc="Reorders all dimensions.", ref=np.transpose,
   example=">>> facula.ones(2, 3, 4).permute(2, 0, 1).shape\nfacula.Size([4, 2, 3])")
op("_permute_back(Tensor grad, int[] dims) -> Tensor", composite())
op("movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)", composite(), out=False, aliases=("moveaxis",),
   samples="movedim", ref=np.moveaxis, doc="Moves dimensions to other positions.",
   example=">>> facula.ones(2, 3, 4).movedim(0, -1).shape\nfacula.Size([3, 4, 2])")
op("expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)", view(), batch="expand", jvp="linear", function=False,
   grad="sum_to_size(grad, self.sizes())", samples="expand",
   doc="Repeats dimensions of size 1 without copying; -1 keeps a size.",
   example=">>> facula.tensor([[1], [2]]).expand(2, 3)\ntensor([[1, 1, 1],\n        [2, 2, 2]])")
op("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", composite(), function=False, out=False, samples="none",
   doc="``expand`` to the shape of another tensor.",
   example=">>> facula.tensor([1]).expand_as(facula.ones(3)).shape\nfacula.Size([3])")
op("broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)", composite(), out=False, samples="expand",
   doc="The same as ``expand``.", example=">>> facula.broadcast_to(facula.tensor([1]), (3,))\ntensor([1, 1, 1])")
op("squeeze(Tensor(a) self) -> Tensor(a)", view(), batch="squeeze", jvp="linear", grad="reshape(grad, self.sizes())", samples="squeeze", ref=np.squeeze,
   doc="Drops every dimension of size 1.", example=">>> facula.ones(1, 2, 1).squeeze().shape\nfacula.Size([2])")
op("squeeze.dim(Tensor(a) self, int[1] dim) -> Tensor(a)", view(), batch="dims", jvp="linear", grad="reshape(grad, self.sizes())", samples="squeeze_dim",
   doc="Drops the given dimensions where they have size 1.",
   example=">>> facula.ones(1, 2, 1).squeeze(0).shape\nfacula.Size([2, 1])")
op("squeeze_(Tensor(a!) self, int[1]? dim=None) -> Tensor(a!)", composite(), samples="none",
   doc="Drops dimensions of size 1 of this tensor.", example=">>> facula.ones(1, 2).squeeze_().shape\nfacula.Size([2])")
op("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", view(), batch="new dims", jvp="linear", grad="reshape(grad, self.sizes())", samples="unsqueeze",
   ref=np.expand_dims, doc="Inserts a dimension of size 1.",
   example=">>> facula.ones(2).unsqueeze(0).shape\nfacula.Size([1, 2])")
op("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", composite(), samples="none",
   doc="Inserts a dimension of size 1 into this tensor.", example=">>> facula.ones(2).unsqueeze_(0).shape\nfacula.Size([1, 2])")
op("select(Tensor(a) self, int dim, int index) -> Tensor(a)", view(), batch="dims", jvp="linear", grad="_select_grad(grad, self.sizes(), dim, index)",
   samples="select", doc="One slice along a dimension, which is dropped.",
   example=">>> facula.arange(6).view(2, 3).select(1, 2)\ntensor([2, 5])")
op("_select_grad(Tensor grad, int[] sizes, int dim, int index) -> Tensor", composite())
op("slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)", view(), batch="dims", jvp="linear", python="",
   grad="_slice_grad(grad, self.sizes(), dim, start, end, step)", samples="slice")
op("_slice_grad(Tensor grad, int[] sizes, int dim, int? start, int? end, int step) -> Tensor", composite())
op("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)", composite(), out=False, samples="narrow",
   doc="A range of ``length`` along a dimension.",
   example=">>> facula.arange(5).narrow(0, 1, 3)\ntensor([1, 2, 3])")
op("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", view(), batch="dims", jvp="linear",
   grad="_diagonal_grad(grad, self.sizes(), offset, dim1, dim2)", samples="diagonal", ref=np.diagonal,
   doc="The diagonal of two dimensions, as the last dimension of the result.",
   example=">>> facula.arange(4).view(2, 2).diagonal()\ntensor([0, 3])")
op("_diagonal_grad(Tensor grad, int[] sizes, int offset, int dim1, int dim2) -> Tensor", composite())
op("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", view(), batch="dims", jvp="linear", function=False,
   grad="_unfold_grad(grad, self.sizes(), dimension, size, step)", samples="unfold",
   doc="Windows of ``size`` along a dimension, each ``step`` apart, as a new last dimension.",
   example=">>> facula.arange(4).unfold(0, 2, 1)\ntensor([[0, 1],\n        [1, 2],\n        [2, 3]])")
op("_unfold_grad(Tensor grad, int[] sizes, int dimension, int size, int step) -> Tensor", composite())
op("unbind(Tensor(a) self, int dim=0) -> Tensor[]", view(multi=True), batch="dims", jvp="linear", grad="stack(grad, dim)", samples="unbind",
   doc="All slices along a dimension.", example=">>> facula.unbind(facula.tensor([1, 2]))\n(tensor(1), tensor(2))")
op("split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor[]", view(multi=True), batch="dims", jvp="linear", grad="cat(grad, dim)",
   samples="split_with_sizes", node="SplitWithSizesBackward0", doc="Pieces of the given sizes along a dimension.",
   example=">>> facula.split_with_sizes(facula.arange(3), [1, 2])\n(tensor([0]), tensor([1, 2]))")
op("_split(Tensor(a) self, int split_size, int dim=0) -> Tensor[]", view(multi=True), batch="dims", jvp="linear", grad="cat(grad, dim)",
   node="SplitBackward0", samples="none", python="_split", method=False)
op("chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor[]", composite(), samples="chunk",
   doc="At most ``chunks`` pieces of equal size (the last may be smaller).",
   example=">>> facula.chunk(facula.arange(5), 2)\n(tensor([0, 1, 2]), tensor([3, 4]))")
op("tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor[]", composite(), samples="chunk",
   doc="Exactly ``sections`` pieces, as equal as possible.",
   example=">>> facula.tensor_split(facula.arange(3), 2)\n(tensor([0, 1]), tensor([2]))")
op("tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor[]", composite(), samples="none",
   doc="Pieces between the given positions.",
   example=">>> facula.tensor_split(facula.arange(3), (1,))\n(tensor([0]), tensor([1, 2]))")


def _split_along(name, words, example_input, example_output):
    for overload, arg in (("sections", "int sections"), ("indices", "int[] indices")):
        op(f"{name}.{overload}(Tensor(a) self, {arg}) -> Tensor[]", composite(), samples="none",
           doc=f"Pieces {words}: so many of equal size, or those between the given positions.",
           example=f">>> facula.{name}({example_input}, 2)\n{example_output}")


_split_along("hsplit", "side by side, along dimension 1 (0 for vectors)", "facula.arange(4)",
             "(tensor([0, 1]), tensor([2, 3]))")
_split_along("vsplit", "one below the other, along dimension 0", "facula.arange(4).view(2, 2)",
             "(tensor([[0, 1]]), tensor([[2, 3]]))")
_split_along("dsplit", "one behind the other, along dimension 2", "facula.arange(2).view(1, 1, 2)",
             "(tensor([[[0]]]), tensor([[[1]]]))")
op("detach(Tensor(a) self) -> Tensor(a)", composite(), out=False, samples="none",
   doc="The same memory without history.", example=">>> facula.ones(2, requires_grad=True).detach().requires_grad\nFalse")
op("detach_(Tensor(a!) self) -> Tensor(a!)", composite(), samples="none", doc="Forgets the history of this tensor.",
   example=">>> (facula.ones(2, requires_grad=True) * 2).detach_().requires_grad\nFalse")
op("alias(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", python="", grad="grad", samples="unary")
