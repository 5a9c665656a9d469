"""Writing and finding by position, beside the operators of indexing.py. The kernels are in
csrc/kernels/selection.cpp."""

from gen.rows import composite, elementwise, kernel, op

op("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
   "bool include_self=True) -> Tensor", composite(), inplace=True, samples="index_reduce",
   doc="Combines slices of ``source`` that go to one place by 'prod', 'mean', 'amax' or 'amin'; "
       "what was there before counts too unless ``include_self=False``.",
   example=">>> index, source = facula.tensor([0, 0]), facula.tensor([2., 3.])\n"
           ">>> facula.ones(2).index_reduce(0, index, source, 'prod')\ntensor([6., 1.])")
op("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", kernel(),
   batch="nonzero_static", samples="nonzero_static",
   doc="The first ``size`` positions of elements that are not zero, one row each; rows that are "
       "left over hold ``fill_value``.",
   example=">>> facula.nonzero_static(facula.tensor([0, 5, 6]), size=3)\n"
           "tensor([[ 1],\n        [ 2],\n        [-1]])")
op("fill(Tensor self, Tensor value) -> Tensor", elementwise(promote="First", check="one_value"), batch="fill_value",
   f="b", grad=dict(self="zeros_like(grad)", value="grad"), method=False, inplace=False, out=False,
   samples="fill", doc="One value in the shape and dtype of another tensor.",
   example=">>> facula.fill(facula.zeros(2), 3)\ntensor([3., 3.])")
