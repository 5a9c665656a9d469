"""Copies of what views show. The kernels are in csrc/kernels/view_copies.cpp."""

from gen.reference import np
from gen.rows import composite, op


def _copy(name, arguments, samples, example, ref=None, results="Tensor", overload=""):
    op(f"{name}_copy{overload}(Tensor self{arguments}) -> {results}", composite(), method=False, samples=samples,
       ref=ref, doc=f"A copy of what ``{name}`` shows, in memory of its own.", example=f">>> facula.{name}_copy({example}")


_copy("alias", "", "unary", "facula.tensor([1, 2]))\ntensor([1, 2])", ref=np.copy)
_copy("detach", "", "none", "facula.ones(2, requires_grad=True)).requires_grad\nFalse")
_copy("as_strided", ", int[] size, int[] stride, int? storage_offset=None", "as_strided",
      "facula.arange(3), (2, 2), (1, 1))\ntensor([[0, 1],\n        [1, 2]])")
_copy("view", ", int[] size", "view", "facula.arange(4), (2, 2))\ntensor([[0, 1],\n        [2, 3]])")
_copy("view", ", ScalarType dtype", "none",
      "facula.tensor([1.]), facula.int32)\ntensor([1065353216], dtype=facula.int32)", overload=".dtype")
_copy("expand", ", int[] size, *, bool implicit=False", "expand", "facula.tensor([7]), (3,))\ntensor([7, 7, 7])")
_copy("transpose", ", int dim0, int dim1", "two_dims", "facula.ones(2, 3), 0, 1).stride()\n(2, 1)", ref=np.swapaxes)
_copy("t", "", "matrix", "facula.tensor([[1, 2]]))\ntensor([[1],\n        [2]])", ref=np.transpose)
_copy("permute", ", int[] dims", "permute", "facula.ones(2, 3, 4), (2, 0, 1)).shape\nfacula.Size([4, 2, 3])",
      ref=np.transpose)
_copy("squeeze", "", "squeeze", "facula.ones(1, 2, 1)).shape\nfacula.Size([2])", ref=np.squeeze)
_copy("squeeze", ", int[1] dim", "squeeze_dim", "facula.ones(1, 2, 1), 0).shape\nfacula.Size([2, 1])",
      overload=".dim")
_copy("unsqueeze", ", int dim", "unsqueeze", "facula.ones(2), 0).shape\nfacula.Size([1, 2])", ref=np.expand_dims)
_copy("select", ", int dim, int index", "select", "facula.tensor([[1, 2], [3, 4]]), 1, 0)\ntensor([1, 3])")
_copy("slice", ", int dim=0, int? start=None, int? end=None, int step=1", "slice",
      "facula.arange(6), 0, 1, 5, 2)\ntensor([1, 3])")
_copy("diagonal", ", int offset=0, int dim1=0, int dim2=1", "diagonal",
      "facula.tensor([[1, 2], [3, 4]]))\ntensor([1, 4])", ref=np.diagonal)
_copy("unfold", ", int dimension, int size, int step", "unfold",
      "facula.arange(3), 0, 2, 1)\ntensor([[0, 1],\n        [1, 2]])")
_copy("view_as_real", "", "complex", "facula.tensor([1 + 2j]))\ntensor([[1., 2.]])")
_copy("view_as_complex", "", "pairs", "facula.tensor([[1., 2.]]))\ntensor([1.+2.j])")
_copy("unbind", ", int dim=0", "unbind", "facula.tensor([1, 2]))\n(tensor(1), tensor(2))", results="Tensor[]")
_copy("split", ", int split_size, int dim=0", "chunk", "facula.arange(3), 2)\n(tensor([0, 1]), tensor([2]))",
      results="Tensor[]")
_copy("split_with_sizes", ", int[] split_sizes, int dim=0", "split_with_sizes",
      "facula.arange(3), [1, 2])\n(tensor([0]), tensor([1, 2]))", results="Tensor[]")
