"""Samples of pooling: windows, steps, padding and layouts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()

SIZES = {1: (7,), 2: (6, 5), 3: (4, 5, 4)}
REAL = ("float16", "bfloat16", "float32", "float64")


def _images(source: Source, dims: int):
    """A function of (batch, channels): distinct values, so that the largest is one."""

    def make(*leading: int, **layout):
        return source(*leading, *SIZES[dims], distinct=True, **layout)

    return make


def _max_pools(dims: int) -> None:
    @named(f"max_pool{dims}d", "if")
    def max_pool(row: Row, source: Source) -> Iterator[Sample]:
        x = _images(source, dims)
        yield Sample("plain", (x(2, 2), 2))
        yield Sample("without a batch", (x(2), 2))
        yield Sample("stride", (x(1, 2), 3, 2))
        yield Sample("padding", (x(1, 2), 3, 2, 1))
        yield Sample("overlapping", (x(1, 2), 3, 1, 1))
        yield Sample("dilation", (x(1, 2), 2, 1, 0, 2))
        yield Sample("dilation and padding", (x(1, 2), 2, 1, 1, 3))
        yield Sample("ceil_mode", (x(1, 2), 2, 3, 1), {"ceil_mode": True})
        each = {"stride": [1, 2, 3][:dims], "padding": [1, 0, 1][:dims]}
        yield Sample("different dimensions", (x(1, 2), [2, 3, 2][:dims]), each)
        yield Sample("step beyond the window", (x(1, 2), 1, 3))
        yield Sample("stepped", (x(2, 2, layout="stepped"), 2))
        yield Sample("transposed", (x(2, 2, layout="transposed"), 3, 2, 1))
        yield Sample("expanded", (x(2, 2, layout="expanded"), 2), smooth=False)
        yield Sample("empty batch", (x(0, 2), 2))
        if dims == 2:
            yield Sample("channels last", (x(2, 3, layout="channels_last"), 3, 2, 1))
            if source.dtype == "float32":
                wide = source(2, 70, 9, 11, layout="channels_last")
                yield Sample("channels last, wide", (wide, 3, 2, 1), smooth=False)
                rows = source(3, 5, 37, 45)
                yield Sample("wide", (rows, 3, 2, 1), smooth=False)
                yield Sample("many taps", (rows, 17, 3, 8), smooth=False)
        if source.letter == "f":
            values = np.full((1, 1, *SIZES[dims]), -np.inf)
            values[(0, 0, *[1] * dims)] = np.nan
            yield Sample("no number", (source.of(values), 2, 1, 1), smooth=False)
            yield Sample(
                "equal elements", (source.of(np.ones(values.shape)), 2, 1, 1), smooth=False
            )

    # PyTorch adds volumes up in bfloat16, which leaves little to compare with.
    @named(f"adaptive_pool{dims}d", dtypes=REAL if dims < 3 else (REAL[0], *REAL[2:]))
    def adaptive_pool(row: Row, source: Source) -> Iterator[Sample]:
        x = _images(source, dims)
        yield Sample("one", (x(2, 3), [1] * dims))
        yield Sample("divided", (source(1, 2, *[6] * dims, distinct=True), [3] * dims))
        yield Sample("overlapping", (x(1, 2), [3] * dims))
        yield Sample("larger", (x(1, 2), [n + 2 for n in SIZES[dims]]), smooth=False)
        yield Sample("same size", (x(1, 2), list(SIZES[dims])))
        yield Sample("without a batch", (x(2), [2] * dims))
        yield Sample("stepped", (x(2, 2, layout="stepped"), [2] * dims))
        yield Sample("empty batch", (x(0, 2), [2] * dims))
        if dims == 2:
            yield Sample("channels last", (x(2, 3, layout="channels_last"), [3, 2]))
            yield Sample("channels last to one", (x(2, 3, layout="channels_last"), [1, 1]))

    @named(f"avg_pool{dims}d", dtypes=(*REAL, "int64") if dims > 1 else REAL)
    def avg_pool(row: Row, source: Source) -> Iterator[Sample]:
        x = _images(source, dims)
        yield Sample("plain", (x(2, 2), 2))
        yield Sample("without a batch", (x(2), 2))
        yield Sample("stride", (x(1, 2), 3, 2))
        yield Sample("padding", (x(1, 2), 3, 2, 1))
        yield Sample("without the padding", (x(1, 2), 3, 2, 1), {"count_include_pad": False})
        yield Sample("ceil_mode", (x(1, 2), 2, 3, 1), {"ceil_mode": True})
        rest = {"ceil_mode": True, "count_include_pad": False}
        yield Sample("ceil_mode without the padding", (x(1, 2), 3, 2, 1), rest)
        each = {"stride": [1, 2, 3][:dims], "padding": [1, 0, 1][:dims]}
        yield Sample("different dimensions", (x(1, 2), [2, 3, 2][:dims]), each)
        yield Sample("overlapping", (x(1, 2), 3, 1, 1))
        yield Sample("step beyond the window", (x(1, 2), 1, 3))
        yield Sample("stepped", (x(2, 2, layout="stepped"), 2))
        yield Sample("empty batch", (x(0, 2), 2))
        if dims > 1:
            yield Sample("divisor", (x(1, 2), 2), {"divisor_override": 3})
            yield Sample("negative divisor", (x(1, 2), 3, 1, 1), {"divisor_override": -2})
        if dims == 2:
            yield Sample("channels last", (x(2, 3, layout="channels_last"), 3, 2, 1))
            if source.dtype == "float32":
                yield Sample("wide", (source(3, 5, 37, 45), 3, 2, 1), smooth=False)
                yield Sample("wide windows", (source(2, 5, 37, 45), 7, 3, 2), smooth=False)

    @named(f"lp_pool{dims}d", dtypes=REAL)
    def lp_pool(row: Row, source: Source) -> Iterator[Sample]:
        def x(*leading: int, **layout):
            return source(*leading, *SIZES[dims], low=0.5, high=2, **layout)

        yield Sample("plain", (x(2, 2), 2.0, 2))
        yield Sample("without a batch", (x(2), 3.0, 2))
        yield Sample("stride", (x(1, 2), 1.5, 3, 2))
        yield Sample("ceil_mode", (x(1, 2), 2.0, 2, 3), {"ceil_mode": True})
        yield Sample("stepped", (x(2, 2, layout="stepped"), 2.0, 2))
        zeros = source.of(np.zeros((1, 1, *SIZES[dims])))
        yield Sample("zeros", (zeros, 2.0, 2), smooth=False)


for _dims in (1, 2, 3):
    _max_pools(_dims)


@named("max_unpool", "if")
def max_unpool(row: Row, source: Source) -> Iterator[Sample]:
    """Windows of 2 elements; positions are different within a plane."""

    def positions(leading: tuple[int, ...], size: tuple[int, ...]):
        planes, pixels = int(np.prod(leading)), int(np.prod(size))
        taken = [source.random.permutation(pixels * 2 ** len(size))[:pixels] for _ in range(planes)]
        return source.positions(np.array(taken, dtype=np.int64).reshape(*leading, *size))

    for dims in (1, 2, 3):
        size = (3, 2, 2)[:dims]
        doubled = [2 * n for n in size]
        yield Sample(f"{dims}d", (source(2, 2, *size), positions((2, 2), size), doubled))
        yield Sample(f"{dims}d without a batch", (source(2, *size), positions((2,), size), doubled))
    stepped = source(2, 2, 3, 2, layout="stepped")
    yield Sample("stepped", (stepped, positions((2, 2), (3, 2)), [6, 4]))
    larger = [7, 5]
    yield Sample("larger", (source(1, 2, 3, 2), positions((1, 2), (3, 2)), larger))
