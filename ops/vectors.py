"""Vectors along a dimension: classes, lengths and distances."""

from gen.rows import composite, op

op("one_hot(Tensor self, int num_classes=-1) -> Tensor", composite(), python="nn.functional.one_hot", method=False, out=False,
   samples="one_hot",
   doc="Vectors with a one at the given class and zeros elsewhere, in a new last dimension. Without ``num_classes``\n"
       "there are as many as the largest class needs.",
   example=">>> facula.nn.functional.one_hot(facula.tensor([0, 2]))\ntensor([[1, 0, 0],\n        [0, 0, 1]])")
op("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor", composite(), node="NormBackward1",
   aliases=("nn.functional.pairwise_distance",), method=False, out=False, samples="pairwise_distance",
   doc="The p-norm of ``x1 - x2 + eps`` along the last dimension.",
   example=">>> facula.pairwise_distance(facula.tensor([[3., 4.]]), facula.zeros(1, 2))\ntensor([5.0000])")
op("normalize(Tensor input, float p=2.0, int[1] dim=[1], float eps=1e-12) -> Tensor", composite(), python="nn.functional.normalize",
   method=False, samples="normalize",
   doc="Divides vectors along ``dim`` by their p-norm, or by ``eps`` where that is smaller.",
   example=">>> facula.nn.functional.normalize(facula.tensor([[3., 4.]]))\ntensor([[0.6000, 0.8000]])")
