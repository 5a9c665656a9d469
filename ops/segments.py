"""Reductions of stretches of a dimension. The kernel is in csrc/kernels/segments.cpp."""

from gen.rows import composite, op

op("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
   "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
   composite(), method=False, out=False, samples="none",
   doc="Reduces stretches of ``data`` along ``axis``: by ``sum``, ``mean``, ``max``, ``min`` or ``prod``.\n\n"
       "The stretches follow each other; ``lengths`` says how long they are, or ``offsets`` where they begin and the "
       "last one ends, along the last of their dimensions, which is ``axis``. ``initial`` takes part in each; without "
       "it, an empty stretch gives 0, NaN, -inf, inf or 1. With ``unsafe=True`` the lengths need not add up.",
   example=">>> data = facula.tensor([1., 2., 3., 4.])\n"
           ">>> facula.segment_reduce(data, 'sum', lengths=facula.tensor([1, 3]))\ntensor([1., 9.])")
