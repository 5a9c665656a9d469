"""How many floating-point operations an event of the profiler stands for, by its shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod

Shape = Sequence[int]
Formula = Callable[[Sequence[Shape], Shape], int]  # of the shapes of arguments and of the result


@functools.cache
def _formulas() -> dict[str, Formula]:
    """Of names that stand for the whole work: what they are made of is not counted again."""
    from facula.utils.flop_counter import conv_flop_count, sdpa_flop_count

    def product(place: int) -> Formula:  # argument `place` times the next one
        return lambda shapes, result: 2 * prod(result) * shapes[place][-1]

    def convolution(transposed: bool) -> Formula:
        def count(shapes: Sequence[Shape], result: Shape) -> int:
            x, weight = shapes[:2]
            if len(x) < len(weight):  # without a batch
                x, result = (1, *x), (1, *result)
            return conv_flop_count(x, weight, result, transposed)

        return count

    def each(shapes: Sequence[Shape], result: Shape) -> int:
        return prod(result)

    return {
        **dict.fromkeys(("mm", "bmm", "linear"), product(0)),
        **dict.fromkeys(("addmm", "baddbmm"), product(1)),
        **dict.fromkeys(("add", "mul"), each),
        **dict.fromkeys(("conv1d", "conv2d", "conv3d"), convolution(False)),
        **dict.fromkeys((f"conv_transpose{n}d" for n in (1, 2, 3)), convolution(True)),
        "scaled_dot_product_attention": lambda shapes, result: sdpa_flop_count(*shapes[:3]),
    }


def flops_of(name: str, shapes: Sequence[Shape], result: Shape | None) -> int:
    """A multiplication and an addition are two; 0 for what has no formula or failed."""
    formula = _formulas().get(name.removeprefix("aten::"))
    if formula is None or result is None or not name.startswith("aten::"):
        return 0
    return formula(shapes, result)
