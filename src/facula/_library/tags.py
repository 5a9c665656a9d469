"""What operators may be marked with."""

from __future__ import annotations

import enum


class Tag(enum.IntEnum):
    """Properties of operators that programs state with ``tags=``; compilers ask for them.

    Example::

        >>> @facula.library.custom_op("docs::noise", mutates_args=(),
        ...                           tags=(facula.Tag.nondeterministic_seeded,))
        ... def noise(x: facula.Tensor) -> facula.Tensor:
        ...     return facula.rand_like(x)
        >>> facula.ops.docs.noise.default.tags
        [<Tag.nondeterministic_seeded: 13>]
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


def as_tags(tags: object) -> list[Tag]:
    """A tag, several of them, or None, as a list."""
    listed = [] if tags is None else [tags] if isinstance(tags, Tag) else list(tags)  # type: ignore[call-overload]
    for tag in listed:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags should be of facula.Tag, got {tag!r}")
    return listed
