"""Samples of convolutions: sizes, strides, dilations, groups and layouts."""

from __future__ import annotations

from collections.abc import Iterator

from operands import Sample, Source, registry

from gen.rows import Row

NAMED, named = registry()
FOR_ROW, for_row = registry()


@named("convolution", "ifc")
def convolution(row: Row, source: Source) -> Iterator[Sample]:
    def forward(
        name, x, w, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1, **smooth
    ):
        arguments = (x, w, bias, [*stride], [*padding], [*dilation], False, [0], groups)
        return Sample(name, arguments, **smooth)

    yield forward("line", source(2, 2, 6), source(3, 2, 3), source(3))
    yield forward("image", source(2, 2, 4, 5), source(3, 2, 3, 2))
    yield forward("strided", source(2, 2, 4, 5, layout="stepped"), source(3, 2, 3, 2))
    yield forward("volume", source(1, 2, 3, 4, 3), source(2, 2, 2, 3, 2), source(2))
    yield forward(
        "all options",
        source(2, 4, 7, 6),
        source(6, 2, 3, 2),
        source(6),
        stride=(2, 1),
        padding=(1, 2),
        dilation=(2, 3),
        groups=2,
    )
    yield Sample(
        "transposed",
        (source(2, 4, 3, 3), source(4, 2, 3, 2), source(4), [2, 3], [1], [1], True, [1, 2], 2),
    )
    yield Sample(
        "transposed, padded by more than the stride",
        (source(1, 2, 3), source(2, 3, 2), None, [2], [1], [4], True, [3], 1),
    )


def _convolutions(row: Row, source: Source, dims: int) -> Iterator[Sample]:
    """The kernel has 2 or 3 taps in every dimension."""
    size = (5, 4, 3)[:dims]

    def x(n: int, c: int, **layout):
        return source(n, c, *size, **layout)

    def w(o: int, c: int, k: int = 2, **layout):
        return source(o, c, *[k] * dims, **layout)

    yield Sample("plain", (x(2, 2), w(3, 2)))
    yield Sample("bias", (x(2, 2), w(3, 2), source(3)))
    yield Sample("without a batch", (source(2, *size), w(3, 2), source(3)))
    yield Sample("stride", (x(1, 2), w(2, 2), None, 2))
    yield Sample("padding", (x(1, 2), w(2, 2, 3), None, 1, 2))
    yield Sample("dilation", (x(1, 2), w(2, 2)), {"dilation": 2, "padding": 1})
    yield Sample("groups", (x(2, 4), w(6, 2), source(6)), {"groups": 2})
    yield Sample("one channel for each", (x(2, 3), w(3, 1)), {"groups": 3, "padding": 1})
    yield Sample("several for each", (x(1, 2), w(4, 1), source(4)), {"groups": 2})
    yield Sample("one tap", (x(2, 3), w(2, 3, 1), source(2)))
    yield Sample("one tap, stride", (x(1, 3), w(2, 3, 1)), {"stride": 2, "padding": 1})
    each = {"stride": [2, 1, 3][:dims], "padding": [0, 1, 2][:dims], "dilation": [1, 2, 1][:dims]}
    yield Sample("different dimensions", (x(1, 2), w(2, 2)), each)
    yield Sample("strided", (x(2, 2, layout="stepped"), w(3, 2, layout="transposed")))
    yield Sample("expanded", (x(3, 2, layout="expanded"), w(3, 2, layout="expanded")), smooth=False)
    yield Sample("empty batch", (x(0, 2), w(3, 2), source(3)))
    if dims == 2:
        last = {"layout": "channels_last"}
        yield Sample("channels last", (x(2, 3, **last), w(4, 3, **last), source(4)))
        yield Sample("channels last, groups", (x(1, 4, **last), w(4, 2)), {"groups": 2})
        yield Sample("channels last weight", (x(1, 2), w(3, 2, **last)), {"padding": 1})
        yield Sample("channels last, one for each", (x(2, 3, **last), w(3, 1)), {"groups": 3})


def _larger(source: Source, dims: int) -> Iterator[Sample]:
    """Beyond single vectors and blocks: float32 only, where the fast kernels are."""
    if source.dtype != "float32":
        return
    narrow = {"low": -1, "high": 1}
    if dims == 1:
        yield Sample(
            "long",
            (source(2, 5, 700, **narrow), source(9, 5, 31, **narrow), source(9), 2, 3),
            smooth=False,
        )
        return
    if dims == 3:
        yield Sample(
            "larger",
            (source(1, 6, 7, 9, 8, **narrow), source(17, 6, 3, 3, 3, **narrow), None, 1, 1),
            smooth=False,
        )
        return
    for layout in ("contiguous", "channels_last"):
        wide = {"layout": layout, **narrow}
        yield Sample(
            f"3x3, {layout}",
            (source(2, 33, 17, 15, **wide), source(40, 33, 3, 3, **wide), source(40), 1, 1),
            smooth=False,
        )
        yield Sample(
            f"7x7, stride 2, {layout}",
            (source(2, 3, 29, 31, **wide), source(19, 3, 7, 7, **wide), source(19), 2, 3),
            smooth=False,
        )
        yield Sample(
            f"1x1, {layout}",
            (source(2, 70, 9, 11, **wide), source(37, 70, 1, 1, **wide), source(37)),
            smooth=False,
        )
        yield Sample(
            f"one channel for each, {layout}",
            (source(2, 21, 23, 19, **wide), source(21, 1, 3, 3, **wide), source(21), 2, 1),
            {"groups": 21},
            smooth=False,
        )


def _file_convolutions(dims: int) -> None:
    @named(f"conv{dims}d", "ifc")
    def conv(row: Row, source: Source) -> Iterator[Sample]:
        yield from _convolutions(row, source, dims)
        yield from _larger(source, dims)

    @named(f"conv{dims}d_padding", "ifc")
    def conv_padding(row: Row, source: Source) -> Iterator[Sample]:
        size = (5, 4, 3)[:dims]
        odd, even = source(2, 2, *[3] * dims), source(2, 2, *[2] * dims)
        x = source(2, 2, *size)
        yield Sample("valid", (x, odd, source(2), 2, "valid"))
        yield Sample("same", (x, odd, source(2), 1, "same"))
        yield Sample("same, even kernel", (x, even, None, 1, "same"))
        yield Sample("same, dilated", (x, even, None, 1, "same", 3))
        yield Sample("same, without a batch", (source(2, *size), even, None, 1, "same"))
        yield Sample("same, groups", (source(1, 4, *size), even), {"padding": "same", "groups": 2})
        yield Sample("strided", (source(2, 2, *size, layout="stepped"), odd, None, 1, "same"))

    @named(f"conv_transpose{dims}d", "ifc")
    def conv_transpose(row: Row, source: Source) -> Iterator[Sample]:
        size = (4, 3, 2)[:dims]

        def x(n: int, c: int, **layout):
            return source(n, c, *size, **layout)

        def w(c: int, o: int, k: int = 2, **layout):
            return source(c, o, *[k] * dims, **layout)

        yield Sample("plain", (x(2, 2), w(2, 3)))
        yield Sample("bias", (x(2, 2), w(2, 3), source(3)))
        yield Sample("without a batch", (source(2, *size), w(2, 3), source(3)))
        yield Sample("stride", (x(1, 2), w(2, 2, 3), None, 2))
        yield Sample("stride beyond the kernel", (x(1, 2), w(2, 2, 1), source(2), 3))
        yield Sample("padding", (x(1, 2), w(2, 2, 3), None, 2, 1))
        yield Sample("output padding", (x(1, 2), w(2, 2, 3), source(2), 2, 1, 1))
        yield Sample("groups", (x(2, 4), w(4, 3), source(6)), {"groups": 2})
        yield Sample("one channel for each", (x(2, 3), w(3, 1)), {"groups": 3, "stride": 2})
        yield Sample("dilation", (x(1, 2), w(2, 2)), {"dilation": 2, "stride": 3})
        yield Sample("strided", (x(2, 2, layout="stepped"), w(2, 3, layout="transposed")))
        yield Sample("empty batch", (x(0, 2), w(2, 3), source(3)))
        if dims == 2:
            last = {"layout": "channels_last"}
            yield Sample("channels last", (x(2, 3, **last), w(3, 4, **last), source(4), 2))


for _dims in (1, 2, 3):
    _file_convolutions(_dims)


@named("conv_tbc", "ifc")
def conv_tbc(row: Row, source: Source) -> Iterator[Sample]:
    yield Sample("plain", (source(5, 2, 3), source(2, 3, 4), source(4)))
    yield Sample("padding", (source(3, 2, 3), source(3, 3, 2), source(2), 2))
    yield Sample("strided", (source(5, 2, 3, layout="stepped"), source(2, 3, 4), source(4)))
