"""Joining and repeating."""

from gen.reference import np
from gen.rows import composite, kernel, op

op("cat(Tensor[] tensors, int dim=0) -> Tensor", kernel(own_out=True), batch="cat", jvp="linear", grad=dict(tensors="_cat_grad(grad, tensors.sizes(), dim)"),
   aliases=("concat", "concatenate"), samples="cat",
   doc="Joins tensors along a dimension.", example=">>> facula.cat([facula.tensor([1]), facula.tensor([2, 3])])\ntensor([1, 2, 3])")
op("_cat_grad(Tensor grad, int[] shapes, int dim) -> Tensor[]", composite())
op("stack(Tensor[] tensors, int dim=0) -> Tensor", kernel(own_out=True), batch="new dims", jvp="linear", grad=dict(tensors="unbind(grad, dim)"), samples="stack",
   ref=np.stack, doc="Joins tensors of one shape along a new dimension.",
   example=">>> facula.stack([facula.tensor([1, 2]), facula.tensor([3, 4])])\ntensor([[1, 2],\n        [3, 4]])")
op("flip(Tensor self, int[] dims) -> Tensor", kernel(), batch="dims", jvp="linear", grad="flip(grad, dims)", samples="flip", ref=np.flip, out=False,
   doc="Reverses the order along dimensions.", example=">>> facula.flip(facula.tensor([1, 2, 3]), (0,))\ntensor([3, 2, 1])")
op("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", composite(), samples="roll", ref=np.roll, out=False,
   doc="Shifts elements along dimensions; what leaves one end enters the other.",
   example=">>> facula.roll(facula.tensor([1, 2, 3]), 1)\ntensor([3, 1, 2])", node="RollBackward0")
op("repeat(Tensor self, int[] repeats) -> Tensor", composite(), function=False, out=False, samples="repeat",
   doc="Repeats the tensor along each dimension.", example=">>> facula.tensor([1, 2]).repeat(2)\ntensor([1, 2, 1, 2])", node="RepeatBackward0")
op("tile(Tensor self, int[] dims) -> Tensor", composite(), out=False, samples="repeat", ref=np.tile,
   doc="Repeats the tensor as NumPy's ``tile`` does.", example=">>> facula.tile(facula.tensor([1, 2]), (2,))\ntensor([1, 2, 1, 2])")
op("repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor", composite(),
   out=False, samples="repeat_interleave",
   doc="Repeats each element, so that its copies are neighbours.",
   example=">>> facula.repeat_interleave(facula.tensor([1, 2]), 2)\ntensor([1, 1, 2, 2])")
op("repeat_interleave.each(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor", composite(),
   out=False, samples="none",
   doc="Repeats each element along a dimension as often as ``repeats`` says.",
   example=">>> facula.repeat_interleave(facula.tensor([1, 2]), facula.tensor([3, 1]))\ntensor([1, 1, 1, 2])")
op("repeat_interleave.positions(Tensor repeats, *, int? output_size=None) -> Tensor", composite(), out=False, method=False,
   samples="none", doc="The position of each element, as often as ``repeats`` says.",
   example=">>> facula.repeat_interleave(facula.tensor([2, 0, 1]))\ntensor([0, 0, 2])")
op("hstack(Tensor[] tensors) -> Tensor", composite(), samples="hstack", ref=np.hstack,
   doc="Joins side by side.", example=">>> facula.hstack([facula.tensor([1]), facula.tensor([2])])\ntensor([1, 2])")
op("vstack(Tensor[] tensors) -> Tensor", composite(), samples="hstack", ref=np.vstack, aliases=("row_stack",),
   doc="Joins one below the other.", example=">>> facula.vstack([facula.tensor([1]), facula.tensor([2])])\ntensor([[1],\n        [2]])")
op("column_stack(Tensor[] tensors) -> Tensor", composite(), samples="none",
   doc="Joins vectors as columns, and matrices side by side.",
   example=">>> facula.column_stack([facula.tensor([1, 2]), facula.tensor([3, 4])])\ntensor([[1, 3],\n        [2, 4]])")
op("dstack(Tensor[] tensors) -> Tensor", composite(), samples="none",
   doc="Joins one behind the other, along dimension 2.",
   example=">>> facula.dstack([facula.tensor([1, 2]), facula.tensor([3, 4])])\ntensor([[[1, 3],\n         [2, 4]]])")
op("tril(Tensor self, int diagonal=0) -> Tensor", kernel(), batch="leading", jvp="linear", grad="tril(grad, diagonal)", inplace=True, samples="triangle", ref=np.tril,
   doc="The lower triangle; zeros above the diagonal.",
   example=">>> facula.tril(facula.ones(2, 2))\ntensor([[1., 0.],\n        [1., 1.]])")
op("triu(Tensor self, int diagonal=0) -> Tensor", kernel(), batch="leading", jvp="linear", grad="triu(grad, diagonal)", inplace=True, samples="triangle", ref=np.triu,
   doc="The upper triangle; zeros below the diagonal.",
   example=">>> facula.triu(facula.ones(2, 2))\ntensor([[1., 1.],\n        [0., 1.]])")
