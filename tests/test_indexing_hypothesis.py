"""Random indices, read and written, against NumPy.

PyTorch takes integers, slices and None first and lists after that, so the reference does the same
in two NumPy steps; each step is where the two libraries agree.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from package_under_test import F

STEPS = st.sampled_from([1, 1, 2, 3] + ([-1, -2, -3] if F.__name__ == "facula" else []))


@st.composite
def slices(draw):
    bound = st.none() | st.integers(-6, 6)
    step = draw(st.none() | STEPS)
    return slice(draw(bound), draw(bound), step)


@st.composite
def shapes_and_indices(draw, max_dims=4):
    """A shape with an index into it: a list of (kind, value) in the order of the brackets."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=max_dims)))
    consumed = draw(st.integers(0, len(shape)))
    ellipsis_at = draw(st.integers(0, consumed)) if draw(st.booleans()) else None
    # Dimensions before the ellipsis count from the front, those behind it from the back.
    dims = list(range(consumed))
    if ellipsis_at is not None:
        dims = dims[:ellipsis_at] + list(range(len(shape) - consumed + ellipsis_at, len(shape)))
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))  # common shape of the lists
    mask_count = draw(st.integers(0, 3))
    parts, position, used_ellipsis, used_mask = [], 0, False, False
    while position < len(dims):
        if position == ellipsis_at and not used_ellipsis:
            parts.append(("ellipsis", ...))
            used_ellipsis = True
        if draw(st.integers(0, 7)) == 0:
            parts.append(("none", None))
        size = shape[dims[position]]
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "array", "mask"]))
        if size == 0 and kind in ("int", "array"):
            kind = "slice"
        if kind == "int":
            parts.append(("int", draw(st.integers(-size, size - 1))))
            position += 1
        elif kind == "slice":
            parts.append(("slice", draw(slices())))
            position += 1
        elif kind == "array":
            own = list(batch[draw(st.integers(0, len(batch))) :])
            own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in own)
            count = int(np.prod(own))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            parts.append(("array", np.array(values, dtype=np.int64).reshape(own)))
            position += 1
        else:
            span = draw(st.integers(1, 2))
            span_dims = dims[position : position + span]
            contiguous = [d - i for i, d in enumerate(span_dims)]
            crosses = ellipsis_at is not None and position < ellipsis_at < position + span
            if used_mask or crosses or len(span_dims) < span or len(set(contiguous)) > 1:
                parts.append(("slice", slice(None)))
                position += 1
                continue
            # As many True as the lists are long, so that mask and lists broadcast together.
            mask = np.zeros([shape[d] for d in span_dims], dtype=bool)
            wanted = batch[-1] if batch else mask_count
            if mask.size < wanted:
                parts.append(("slice", slice(None)))
                position += 1
                continue
            chosen = draw(st.permutations(range(mask.size)))[:wanted]
            mask.reshape(-1)[list(chosen)] = True
            parts.append(("mask", mask))
            used_mask = True
            position += span
            if not batch:
                batch = (wanted,)
    if ellipsis_at is not None and not used_ellipsis:
        parts.append(("ellipsis", ...))
    return shape, parts


def reference(array, parts):
    """What PyTorch's brackets give, from two NumPy steps. Broadcasting may fail (None)."""
    basic, advanced = [], []
    taken = sum(
        value.ndim if kind == "mask" else 1
        for kind, value in parts
        if kind not in ("none", "ellipsis")
    )
    for kind, value in parts:
        if kind == "array" and value.ndim == 0:
            basic.append(int(value))
        elif kind == "array":
            basic.append(slice(None))
            advanced.append(value)
        elif kind == "mask":
            basic += [slice(None)] * value.ndim
            advanced.append(value)
        else:
            basic.append(value)
            if kind == "ellipsis":  # spelled out: an ellipsis of no dimension separates nothing
                advanced += [slice(None)] * (array.ndim - taken)
            elif kind != "int":
                advanced.append(slice(None))
    first = array[tuple(basic)]
    try:
        return first[tuple(advanced)]
    except IndexError:
        return None


def as_index(parts, lists):
    """The index as a user would type it; arrays become tensors, lists or stay ndarrays."""

    def part(kind, value):
        if kind not in ("array", "mask"):
            return value
        # PyTorch counts an ndarray mask of several dimensions as one when it places the ellipsis.
        if lists == "numpy" and (kind == "array" or value.ndim == 1 or F.__name__ == "facula"):
            return value
        if lists == "python" and value.ndim == 1:
            return value.tolist()
        dtype = F.bool if kind == "mask" else F.int64
        return F.tensor(value.tolist(), dtype=dtype).reshape(value.shape)

    index = tuple(part(*p) for p in parts)
    return index[0] if len(index) == 1 and not isinstance(index[0], list) else index


def counting(shape):
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return array, F.arange(array.size).reshape(shape)


KINDS = st.sampled_from(["tensor", "tensor", "numpy", "python"])


@given(shapes_and_indices(), KINDS)
def test_reading(shape_and_parts, lists):
    shape, parts = shape_and_parts
    array, x = counting(shape)
    expected = reference(array, parts)
    index = as_index(parts, lists)
    if expected is None:
        try:
            x[index]
        except IndexError:
            return
        raise AssertionError(f"{index} into {shape} must raise IndexError")
    result = x[index]
    assert result.shape == expected.shape
    assert result.tolist() == expected.tolist()


@given(shapes_and_indices(), KINDS, st.data())
def test_writing(shape_and_parts, lists, data):
    shape, parts = shape_and_parts
    array, x = counting(shape)
    places = reference(array, parts)
    if places is None:
        return
    value_shape = list(places.shape[data.draw(st.integers(0, places.ndim)) :])
    for i in range(len(value_shape)):
        if data.draw(st.integers(0, 3)) == 0:
            value_shape[i] = 1
    values = -np.arange(1, 1 + int(np.prod(value_shape)), dtype=np.int64).reshape(value_shape)
    if len(set(places.reshape(-1).tolist())) < places.size:
        values = np.full(value_shape, -1)  # a place is written twice, in no fixed order
    flat = array.copy().reshape(-1)
    flat[places.reshape(-1)] = np.broadcast_to(values, places.shape).reshape(-1)
    if values.size and data.draw(st.booleans()) and (values == -1).all():
        x[as_index(parts, lists)] = -1
    else:
        value = F.tensor(values.tolist(), dtype=F.int64).reshape(values.shape)
        x[as_index(parts, lists)] = value
    assert x.reshape(-1).tolist() == flat.tolist()


@given(shapes_and_indices(max_dims=3), st.data())
def test_reading_from_a_strided_tensor(shape_and_parts, data):
    shape, parts = shape_and_parts
    order = data.draw(st.permutations(range(len(shape))))
    inverse = np.argsort(order)
    array, _ = counting(shape)
    # The same values, laid out in another order with gaps between them.
    stored = F.full([2 * shape[d] for d in order], -1, dtype=F.int64)
    every_other = stored[tuple(slice(None, None, 2) for _ in order)]
    every_other.copy_(
        F.tensor(array.transpose(order).tolist(), dtype=F.int64).reshape([shape[d] for d in order])
    )
    x = every_other.permute([int(d) for d in inverse])
    expected = reference(array, parts)
    if expected is not None:
        result = x[as_index(parts, "tensor")]
        assert result.shape == expected.shape
        assert result.tolist() == expected.tolist()


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=3), st.integers(0, 4))
def test_integers_out_of_range_raise_and_in_range_do_not(indices, size):
    x = F.zeros([size] * len(indices))
    inside = all(-size <= i < size for i in indices)
    for index in (tuple(indices), tuple([i] for i in indices)):
        try:
            x[index]
            assert inside
        except IndexError:
            assert not inside
