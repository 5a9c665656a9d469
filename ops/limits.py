"""Limits from both sides at once, beside clamp_min and clamp_max of arithmetic.py."""

from gen.rows import elementwise, op

op("_clamp_between(Tensor self, Tensor min, Tensor max) -> Tensor", elementwise("bif", number_loops=True, halves=True),
   f="minimum(maximum(a, b), c)", inplace=False, out=False, samples="none",
   grad=dict(self="where(logical_and(ge(self, min), le(self, max)), grad, 0)",
             min="where(logical_and(lt(self, min), le(min, max)), grad, 0)",
             max="where(gt(maximum(self, min), max), grad, 0)"),
   doc="``clamp`` with both limits.")
