"""Views: which functions make them, with which strides; what writing through them does."""

import pytest
from package_under_test import F


def base_tensor():
    """A (2, 3, 4) tensor that owns its storage and counts from 0."""
    x = F.empty(2, 3, 4, dtype=F.int64)
    x.copy_(F.arange(24).view(2, 3, 4))
    return x


# name, call, shape, strides, offset
VIEWS = [
    ("view", lambda x: x.view(4, 6), (4, 6), (6, 1), 0),
    ("view of a tuple", lambda x: x.view((4, 6)), (4, 6), (6, 1), 0),
    ("view with -1", lambda x: x.view(-1, 6), (4, 6), (6, 1), 0),
    ("view to one dimension", lambda x: x.view(-1), (24,), (1,), 0),
    ("view adds ones", lambda x: x.view(1, 2, 1, 12), (1, 2, 1, 12), (24, 12, 12, 1), 0),
    (
        "view of a transpose splits dimensions",
        lambda x: x.transpose(0, 1).view(3, 2, 2, 2),
        (3, 2, 2, 2),
        (4, 12, 2, 1),
        0,
    ),
    ("view_as", lambda x: x.view_as(F.empty(6, 4)), (6, 4), (4, 1), 0),
    ("view as a smaller dtype", lambda x: x.view(F.int32), (2, 3, 8), (24, 8, 1), 0),
    ("view as a dtype of the same size", lambda x: x.view(F.float64), (2, 3, 4), (12, 4, 1), 0),
    ("reshape", lambda x: x.reshape(6, 4), (6, 4), (4, 1), 0),
    ("reshape_as", lambda x: x.reshape_as(F.empty(6, 4)), (6, 4), (4, 1), 0),
    ("flatten", lambda x: x.flatten(), (24,), (1,), 0),
    ("flatten the tail", lambda x: x.flatten(1), (2, 12), (12, 1), 0),
    ("flatten the head", lambda x: x.flatten(0, -2), (6, 4), (4, 1), 0),
    ("ravel", lambda x: x.ravel(), (24,), (1,), 0),
    ("unflatten", lambda x: x.unflatten(2, (2, 2)), (2, 3, 2, 2), (12, 4, 2, 1), 0),
    ("unflatten with -1", lambda x: x.unflatten(-1, (-1, 1)), (2, 3, 4, 1), (12, 4, 1, 1), 0),
    ("transpose", lambda x: x.transpose(0, 2), (4, 3, 2), (1, 4, 12), 0),
    ("transpose of a dim with itself", lambda x: x.transpose(1, 1), (2, 3, 4), (12, 4, 1), 0),
    ("swapaxes", lambda x: x.swapaxes(0, -1), (4, 3, 2), (1, 4, 12), 0),
    ("swapdims", lambda x: x.swapdims(0, 1), (3, 2, 4), (4, 12, 1), 0),
    ("permute", lambda x: x.permute(2, 0, 1), (4, 2, 3), (1, 12, 4), 0),
    ("permute of a tuple", lambda x: F.permute(x, (2, 0, -2)), (4, 2, 3), (1, 12, 4), 0),
    ("movedim", lambda x: x.movedim(0, 2), (3, 4, 2), (4, 1, 12), 0),
    ("movedim of several", lambda x: x.movedim((0, 1), (2, 0)), (3, 4, 2), (4, 1, 12), 0),
    ("moveaxis", lambda x: x.moveaxis(0, 1), (3, 2, 4), (4, 12, 1), 0),
    ("mT", lambda x: x.mT, (2, 4, 3), (12, 1, 4), 0),
    ("mH of real numbers", lambda x: x.mH, (2, 4, 3), (12, 1, 4), 0),
    ("T of a matrix", lambda x: x[1].T, (4, 3), (1, 4), 12),
    ("t", lambda x: x[1].t(), (4, 3), (1, 4), 12),
    ("t of a vector", lambda x: x[1, 1].t(), (4,), (1,), 16),
    ("unsqueeze in front", lambda x: x.unsqueeze(0), (1, 2, 3, 4), (24, 12, 4, 1), 0),
    ("unsqueeze inside", lambda x: x.unsqueeze(1), (2, 1, 3, 4), (12, 12, 4, 1), 0),
    ("unsqueeze behind", lambda x: x.unsqueeze(-1), (2, 3, 4, 1), (12, 4, 1, 1), 0),
    ("squeeze", lambda x: x[:1, :, 1:2].squeeze(), (3,), (4,), 1),
    ("squeeze one dim", lambda x: x[:1].squeeze(0), (3, 4), (4, 1), 0),
    ("squeeze a dim that is not one", lambda x: x.squeeze(1), (2, 3, 4), (12, 4, 1), 0),
    ("squeeze several", lambda x: x[:1, :1].squeeze((0, 1)), (4,), (1,), 0),
    ("squeeze some of several", lambda x: x[:1, :1].squeeze((0, 2)), (1, 4), (4, 1), 0),
    ("expand", lambda x: x[0, :1].expand(5, 4), (5, 4), (0, 1), 0),
    ("expand in front", lambda x: x[0].expand(5, 3, 4), (5, 3, 4), (0, 4, 1), 0),
    ("expand with -1", lambda x: x[0, :1].expand(5, -1), (5, 4), (0, 1), 0),
    ("expand to nothing", lambda x: x[0, :1].expand(0, 4), (0, 4), (0, 1), 0),
    ("expand_as", lambda x: x[0, 0].expand_as(F.empty(2, 4)), (2, 4), (0, 1), 0),
    ("broadcast_to", lambda x: F.broadcast_to(x[0, 0], (2, 4)), (2, 4), (0, 1), 0),
    (
        "broadcast_tensors",
        lambda x: F.broadcast_tensors(F.empty(3, 1), x[0, 0])[1],
        (3, 4),
        (0, 1),
        0,
    ),
    ("narrow", lambda x: x.narrow(2, 1, 2), (2, 3, 2), (12, 4, 1), 1),
    ("narrow from the end", lambda x: x.narrow(2, -2, 2), (2, 3, 2), (12, 4, 1), 2),
    ("narrow to nothing", lambda x: x.narrow(2, 4, 0), (2, 3, 0), (12, 4, 1), 4),
    ("select", lambda x: x.select(1, 2), (2, 4), (12, 1), 8),
    ("select from the end", lambda x: x.select(1, -1), (2, 4), (12, 1), 8),
    ("an index", lambda x: x[1], (3, 4), (4, 1), 12),
    ("indices to 0-dim", lambda x: x[1, 2, 3], (), (), 23),
    ("a slice", lambda x: x[:, 1:], (2, 2, 4), (12, 4, 1), 4),
    ("a slice with a step", lambda x: x[..., 1::2], (2, 3, 2), (12, 4, 2), 1),
    ("None", lambda x: x[:, None], (2, 1, 3, 4), (12, 12, 4, 1), 0),
    ("ellipsis", lambda x: x[...], (2, 3, 4), (12, 4, 1), 0),
    ("diagonal", lambda x: x.diagonal(), (4, 2), (1, 16), 0),
    ("diagonal of given dims", lambda x: x.diagonal(0, 1, 2), (2, 3), (12, 5), 0),
    ("diagonal above", lambda x: x.diagonal(1, 1, 2), (2, 3), (12, 5), 1),
    ("diagonal below", lambda x: x.diagonal(-1, 1, 2), (2, 2), (12, 5), 4),
    ("unfold", lambda x: x.unfold(2, 2, 1), (2, 3, 3, 2), (12, 4, 1, 1), 0),
    ("unfold with a step", lambda x: x.unfold(-1, 2, 2), (2, 3, 2, 2), (12, 4, 2, 1), 0),
    ("split", lambda x: x.split(2, 1)[1], (2, 1, 4), (12, 4, 1), 8),
    ("split by sizes", lambda x: x.split([1, 3], 2)[1], (2, 3, 3), (12, 4, 1), 1),
    ("chunk", lambda x: x.chunk(2, -1)[1], (2, 3, 2), (12, 4, 1), 2),
    ("tensor_split", lambda x: x.tensor_split(3, 2)[1], (2, 3, 1), (12, 4, 1), 2),
    ("hsplit", lambda x: F.hsplit(x, 3)[1], (2, 1, 4), (12, 4, 1), 4),
    ("vsplit", lambda x: F.vsplit(x, 2)[1], (1, 3, 4), (12, 4, 1), 12),
    ("dsplit", lambda x: F.dsplit(x, 2)[1], (2, 3, 2), (12, 4, 1), 2),
    ("unbind", lambda x: x.unbind(1)[2], (2, 4), (12, 1), 8),
    ("as_strided", lambda x: x.as_strided((2, 2), (5, 3), 2), (2, 2), (5, 3), 2),
    ("detach", lambda x: x.detach(), (2, 3, 4), (12, 4, 1), 0),
    ("real of real numbers", lambda x: x.real, (2, 3, 4), (12, 4, 1), 0),
]

# Views by memory whose base the tape does not track.
NO_BASE = (
    "detach",
    "real of real numbers",
    "view as a smaller dtype",
    "view as a dtype of the same size",
)


@pytest.mark.parametrize("name, call, shape, strides, offset", VIEWS, ids=[v[0] for v in VIEWS])
def test_view_strides_and_sharing(name, call, shape, strides, offset):
    x = base_tensor()
    y = call(x)
    assert (y.shape, y.stride()) == (shape, strides)
    assert y.storage_offset() == offset * x.element_size() // y.element_size()
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    if y.numel():  # every element stands where the strides say
        assert y.data_ptr() == x.data_ptr() + offset * 8
    if y.numel() and y.dtype is x.dtype:
        at = [offset]
        for size, stride in zip(shape, strides, strict=True):
            at = [a + i * stride for a in at for i in range(size)]
        assert y.flatten().tolist() == at
    if name not in NO_BASE:
        assert y._base is x


COPIES = {
    "clone": lambda x: x.clone(),
    "contiguous of a transpose": lambda x: x.transpose(0, 1).contiguous(),
    "reshape of a transpose": lambda x: x.transpose(0, 1).reshape(24),
    "flatten of a transpose": lambda x: x.transpose(0, 1).flatten(),
    "ravel of a transpose": lambda x: x.transpose(0, 1).ravel(),
    "integer list": lambda x: x[[0, 1]],
    "integer tensor": lambda x: x[F.tensor([0, 1])],
    "mask": lambda x: x[x >= 0],
    "index_select": lambda x: x.index_select(0, F.tensor([0, 1])),
    "gather": lambda x: x.gather(0, F.zeros(1, 1, 1, dtype=F.int64)),
    "take": lambda x: x.take(F.tensor([0])),
    "masked_select": lambda x: x.masked_select(x >= 0),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "repeat": lambda x: x.repeat(1, 1, 1),
    "tile": lambda x: x.tile((1,)),
    "cat": lambda x: F.cat([x]),
    "stack": lambda x: F.stack([x]),
    "to another dtype": lambda x: x.to(F.int32),
    "to with copy": lambda x: x.to(F.int64, copy=True),
    "arithmetic": lambda x: x + 0,
    "where": lambda x: F.where(x >= 0, x, x),
}


@pytest.mark.parametrize("call", COPIES.values(), ids=COPIES.keys())
def test_functions_that_copy(call):
    x = base_tensor()
    y = call(x)
    assert y._base is not x
    assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    y.zero_()
    assert x.flatten().tolist() == list(range(24))


def test_the_base_of_a_view_of_a_view_is_the_owner():
    x = base_tensor()
    assert x[0][1][2:]._base is x
    assert x._is_view() is False
    assert x[0]._is_view() is True
    assert x.data._base is None


def test_view_with_one_shape_is_a_new_tensor():
    x = base_tensor()
    for y in (x.view(2, 3, 4), x.expand(2, 3, 4), x[...], x.transpose(0, 0)):
        assert y is not x


# ---- writing through views -------------------------------------------------------------------


def test_writes_through_views_reach_the_base():
    x = F.zeros(3, 4, dtype=F.int64)
    x.t()[1].fill_(1)
    x.view(-1)[0] = 2
    x.diagonal()[1:].add_(5)
    x[2:, ::2].mul_(10)
    x[-1].narrow(0, 3, 1).copy_(F.tensor([9]))
    assert x.tolist() == [[2, 1, 0, 0], [0, 6, 0, 0], [0, 1, 50, 9]]


def test_writes_to_the_base_reach_views():
    x = F.zeros(2, 3)
    views = [x.t(), x.view(6), x[0], x.expand(2, 2, 3), x.unfold(1, 2, 1)]
    x.fill_(7)
    assert all((v == 7).all() for v in views)


def test_view_as_another_dtype_shows_the_bits():
    assert F.tensor([1.0]).view(F.int32).tolist() == [0x3F800000]
    x = F.tensor([1, 2], dtype=F.int32)
    x.view(F.float32)[0] = -0.0
    assert x.tolist() == [-(2**31), 2]
    assert F.tensor([[1, 0], [2, 0]], dtype=F.int32).view(F.int64).tolist() == [[1], [2]]
    assert F.tensor([1 + 2j]).view(F.float32).tolist() == [1.0, 2.0]


def test_view_as_real_and_back():
    z = F.tensor([1 + 2j, 3 + 4j])
    r = F.view_as_real(z)
    assert r.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    r[0, 1] = 20
    assert z[0].item() == 1 + 20j
    assert F.view_as_complex(r).data_ptr() == z.data_ptr()
    with pytest.raises(RuntimeError, match="size 2"):
        F.view_as_complex(F.zeros(3, 3))


# ---- split, chunk, unbind --------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x.split(3), [[0, 1, 2], [3, 4, 5], [6]]),
        (lambda x: x.split([3, 4]), [[0, 1, 2], [3, 4, 5, 6]]),
        (lambda x: x.split([0, 7]), [[], [0, 1, 2, 3, 4, 5, 6]]),
        (lambda x: x.split(100), [[0, 1, 2, 3, 4, 5, 6]]),
        (lambda x: x[:0].split(3), [[]]),
        (lambda x: x[:0].split(0), [[]]),
        (lambda x: x.chunk(3), [[0, 1, 2], [3, 4, 5], [6]]),
        (lambda x: x[:6].chunk(4), [[0, 1], [2, 3], [4, 5]]),  # fewer chunks than asked for
        (lambda x: x[:2].chunk(7), [[0], [1]]),
        (lambda x: x.tensor_split(3), [[0, 1, 2], [3, 4], [5, 6]]),
        (lambda x: x[:2].tensor_split(3), [[0], [1], []]),
        (lambda x: x.tensor_split((1, 3)), [[0], [1, 2], [3, 4, 5, 6]]),
        (lambda x: x.tensor_split((-2, 9)), [[0, 1, 2, 3, 4], [5, 6], []]),
        (lambda x: x.tensor_split(F.tensor([2, 4])), [[0, 1], [2, 3], [4, 5, 6]]),
        (lambda x: F.hsplit(x[:4], 2), [[0, 1], [2, 3]]),
        (lambda x: x.unbind(), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_splitting(call, expected):
    parts = call(F.arange(7))
    assert type(parts) is tuple
    assert [p.tolist() for p in parts] == expected


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: x.split([3, 3]), "sum exactly to 7"),
        (lambda x: x.split(-1), "-1"),
        (lambda x: x.split(0), "0"),
        (lambda x: x.chunk(0), "greater than 0"),
        (lambda x: x.tensor_split(0), "larger than 0"),
        (lambda x: F.hsplit(x, 2), "divisible"),
        (lambda x: F.vsplit(x, 2), "2 dim"),
        (lambda x: x[0].split(1), "1-dimensional"),
        (lambda x: x[0].chunk(1), "1-dimensional"),
    ],
)
def test_splitting_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(F.arange(7))


# ---- shapes that do not fit ------------------------------------------------------------------

BAD_VIEWS = [
    (lambda x: x.transpose(0, 1).view(24), RuntimeError, r"view size is not compatible.*reshape"),
    (lambda x: x.view(5, -1), RuntimeError, r"shape '\[5, -1\]' is invalid for input of size 24"),
    (lambda x: x.view(25), RuntimeError, r"shape '\[25\]' is invalid for input of size 24"),
    (lambda x: x.reshape(5, 5), RuntimeError, r"shape '\[5, 5\]' is invalid for input of size 24"),
    (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda x: x.view(-2, 12), RuntimeError, "invalid shape dimension -2"),
    (lambda x: x[:0].view(-1, 0), RuntimeError, "ambiguous"),
    (lambda x: x[0].t().view(F.int32), RuntimeError, r"stride\(-1\) must be 1"),
    (lambda x: x.int()[0, :, :3].view(F.int64), RuntimeError, "divisible by 2"),
    (lambda x: x[0, 0, 0].view(F.int32), RuntimeError, r"dim\(\) cannot be 0"),
    (lambda x: x.flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
    (lambda x: x.unflatten(2, (3, 2)), RuntimeError, "multiply up to"),
    (lambda x: x.permute(0, 1), RuntimeError, "number of dimensions"),
    (lambda x: x.permute(0, 0, 1), RuntimeError, "duplicate dims"),
    (lambda x: x.permute(0, 1, 3), IndexError, r"\[-3, 2\], but got 3"),
    (lambda x: x.movedim((0, 1), (2, 2)), RuntimeError, "repeated dim"),
    (lambda x: x.movedim((0,), (2, 1)), RuntimeError, "same number of dims"),
    (lambda x: x.transpose(0, 3), IndexError, r"\[-3, 2\], but got 3"),
    (lambda x: x.t(), RuntimeError, "<= 2 dimensions"),
    (lambda x: x.squeeze((0, 0)), RuntimeError, "multiple times"),
    (lambda x: x.squeeze(3), IndexError, r"\[-3, 2\], but got 3"),
    (lambda x: x.unsqueeze(4), IndexError, r"\[-4, 3\], but got 4"),
    (lambda x: x[0, 0].expand(-1, 4), RuntimeError, "leading, non-existing dimension 0"),
    (lambda x: x[0, 0].expand(4, 3), RuntimeError, r"expanded size.*\(3\) must match.*\(4\)"),
    (lambda x: x.expand(4), RuntimeError, "greater or equal"),
    (lambda x: x.narrow(2, 3, 2), RuntimeError, "exceeds dimension size"),
    (lambda x: x.narrow(2, 5, 0), IndexError, r"\[-4, 4\], but got 5"),
    (lambda x: x.narrow(2, 0, -1), RuntimeError, "non-negative"),
    (lambda x: x.select(1, 3), IndexError, "index 3 out of range"),
    (lambda x: x[0, 0, 0].select(0, 0), IndexError, "0-dim"),
    (lambda x: x.diagonal(0, 1, 1), RuntimeError, "identical"),
    (lambda x: x[0, 0].diagonal(), IndexError, r"\[-1, 0\], but got 1"),
    (lambda x: x.unfold(2, 5, 1), RuntimeError, "maximum size.*is 4 but size is 5"),
    (lambda x: x.unfold(2, 2, 0), RuntimeError, "step is 0"),
    (lambda x: x.unfold(2, -1, 1), RuntimeError, "size is -1"),
    (lambda x: x[0, 0, 0].unbind(), IndexError, "no dimensions"),
]


@pytest.mark.parametrize("call, error, text", BAD_VIEWS)
def test_views_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call(base_tensor())


def test_zero_size_views():
    assert F.zeros(0).view(-1, 3).shape == (0, 3)
    assert F.zeros(0, 3).view(3, -1).shape == (3, 0)
    assert F.zeros(0, 3).reshape(5, 0, 2).shape == (5, 0, 2)
    assert F.zeros(0, 3).transpose(0, 1).view(0, 7).shape == (0, 7)
    assert F.zeros(2, 0).unbind(1) == ()
    assert F.zeros(3, 4).diagonal(10).shape == (0,)


def test_views_of_zero_dim_tensors():
    x = F.tensor(5)
    shapes = [x.view(1, 1), x.reshape(-1), x.flatten(), x.ravel(), x.unsqueeze(0), x.expand(3)]
    assert [y.shape for y in shapes] == [(1, 1), (1,), (1,), (1,), (1,), (3,)]
    assert x.view(()).shape == x.squeeze().shape == x.squeeze(0).shape == x.permute(()).shape == ()
    assert x.transpose(0, -1).shape == x.t().shape == ()
    assert x.unfold(0, 1, 1).tolist() == [5]


# ---- overlapping memory ----------------------------------------------------------------------

OVERLAP = "more than one element of the written-to tensor refers to a single memory location"


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(x),
        lambda x: x.exp_(),
        lambda x: x.copy_(F.zeros(2, 3)),
        lambda x: F.add(F.zeros(2, 3), 1, out=x),
        lambda x: F.mm(F.ones(2, 2), F.ones(2, 3), out=x),
    ],
)
def test_writes_to_expanded_tensors_are_refused(write):
    row = F.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match=OVERLAP):
        write(row.expand(2, 3))
    assert row.tolist() == [1.0, 2.0, 3.0]


def test_writes_to_expanded_single_elements_are_fine():
    row = F.tensor([1.0, 2.0, 3.0])
    row.expand(1, 3).add_(1)
    assert row.tolist() == [2.0, 3.0, 4.0]


def test_fill_of_expanded_tensors_is_well_defined():
    row = F.tensor([1.0, 2.0, 3.0])
    row.expand(2, 3).fill_(4)
    assert row.tolist() == [4.0, 4.0, 4.0]


@pytest.mark.facula_only
@pytest.mark.parametrize(
    "overlapping",
    [
        lambda x: x.as_strided((2, 3), (1, 1)),
        lambda x: x.unfold(0, 2, 1),
        lambda x: x.as_strided((2, 3), (2, 1)),
    ],
)
def test_any_self_overlap_is_found(overlapping):
    x = F.arange(6)
    with pytest.raises(RuntimeError, match=OVERLAP):
        overlapping(x).mul_(2)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: F.add(x[:-1], 1, out=x[1:]),
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[:-1].mul_(x[1:]),
        lambda x: x.view(2, 5).t().add_(x.view(5, 2)),
        lambda x: F.cat([x[:5], x[5:]], out=x),
    ],
)
def test_partial_overlap_of_input_and_output_is_refused(write):
    x = F.arange(10)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        write(x)
    assert x.tolist() == list(range(10))


def test_full_overlap_and_no_overlap_are_fine():
    x = F.arange(10)
    F.add(x, 1, out=x)
    assert x.tolist() == list(range(1, 11))
    F.add(x[:5], 1, out=x[5:])
    assert x.tolist() == [1, 2, 3, 4, 5, 2, 3, 4, 5, 6]
    F.add(x[::2], 0, out=x[1::2])
    assert x.tolist() == [1, 1, 3, 3, 5, 5, 3, 3, 5, 5]
    x.add_(x)
    assert x.tolist() == [2, 2, 6, 6, 10, 10, 6, 6, 10, 10]


def test_interleaved_matrices_do_not_overlap():
    x = F.arange(12).reshape(3, 4)
    x[:, ::2].add_(x[:, 1::2])
    assert x.tolist() == [[1, 1, 5, 3], [9, 5, 13, 7], [17, 9, 21, 11]]


@pytest.mark.facula_only
def test_inputs_that_the_output_overwrites_are_read_first():
    x = F.arange(6)
    x[::2].add_(x[:3])  # both reach element 2, at different times
    assert x.tolist() == [0, 1, 3, 3, 6, 5]
    y = F.arange(6)
    y[1::2].copy_(y[:3])
    assert y.tolist() == [0, 0, 2, 1, 4, 2]
    z = F.arange(9).reshape(3, 3)
    F.sum(z[:2, :2], 0, out=z[::2, 1])
    assert z.tolist() == [[0, 3, 2], [3, 4, 5], [6, 5, 8]]


def test_assigning_an_overlapping_slice_of_itself():
    x = F.arange(6)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]
    x[1:] = x[:-1].clone()
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_resize_and_set():
    x = F.arange(6)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError):
        x.resize_(-1)
    y = F.zeros(1)
    y.set_(F.ones(4)[1:])
    assert (y.shape, y.storage_offset()) == ((3,), 1)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "complex64"])
def test_bits_seen_as_another_dtype_have_no_history(dtype):
    leaf = F.ones(4, requires_grad=True)
    for x in (leaf, leaf * 1):
        y = x.view(getattr(F, dtype))
        assert not y.requires_grad
        assert y.grad_fn is None
        assert not (y + 1).requires_grad
