"""Conjugates and negatives as views, computed when they are read (csrc/op/lazy.cpp)."""

from gen.reference import np
from gen.rows import composite, op, view

op("_conj(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="conj(grad)", node="ConjBackward0",
   samples="complex", ref=np.conj)
op("_neg_view(Tensor(a) self) -> Tensor(a)", view(), batch="leading", jvp="linear", grad="neg(grad)", python="_neg_view", function=True, samples="none")
op("resolve_conj(Tensor(a) self) -> Tensor(a)", composite(), out=False, samples="none",
   doc="The tensor with its conjugation computed; itself when there is none to compute.",
   example=">>> facula.resolve_conj(facula.tensor([1 + 2j]).conj()).is_conj()\nFalse")
op("resolve_neg(Tensor(a) self) -> Tensor(a)", composite(), out=False, samples="none",
   doc="The tensor with its negation computed; itself when there is none to compute.",
   example=">>> facula.resolve_neg(facula.tensor([1 + 2j]).conj().imag).is_neg()\nFalse")
