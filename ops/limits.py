"""Limits from both sides at once, beside clamp_min and clamp_max of arithmetic.py."""

from gen.rows import elementwise, op

op("_clamp_between(Tensor self, Tensor min, Tensor max) -> Tensor", elementwise("bif", number_loops=True, halves=True),
   f="minimum(maximum(a, b), c)", inplace=False, out=False, samples="none",
   grad=dict(self="grad * logical_and(ge(self, min), le(self, max))",
             min="grad * logical_and(lt(self, min), le(min, max))",
             max="grad * gt(maximum(self, min), max)"),
   doc="``clamp`` with both limits.")
