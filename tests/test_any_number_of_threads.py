"""Results, and gradients, have the same bits with any number of threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import facula
import facula.nn.functional as F
from facula import Tensor

Case = Callable[[], list[Tensor]]
CASES: dict[str, Case] = {}
LAST = facula.channels_last


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = facula.get_num_threads()
    yield
    facula.set_num_threads(before)


def normal(*size: int, dtype: facula.dtype = facula.float32) -> Tensor:
    return facula.randn(size, generator=facula.Generator().manual_seed(len(size))).to(dtype)


def with_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    result = function(*leaves)
    weights = facula.linspace(-1, 1, result.numel()).reshape(result.shape)
    result.backward(weights.to(result.dtype))
    return [result] + [x.grad for x in leaves]


def add(name: str, function: Callable[..., Tensor], *inputs: Tensor) -> None:
    CASES[name] = lambda: with_gradients(function, *inputs)


# ---- sums in one or another order

for dtype in (facula.float32, facula.bfloat16):
    images = normal(4, 32, 150, 151, dtype=dtype)
    for layout, x in (("", images), (" of channels last", images.contiguous(memory_format=LAST))):
        ones = facula.ones(32, dtype=dtype)
        name = f"{dtype}{layout}"
        add(
            f"batch_norm {name}",
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
            x,
            ones,
            ones,
        )
        add(f"group_norm {name}", lambda x, w, b: F.group_norm(x, 4, w, b), x, ones, ones)
    add(f"instance_norm {dtype}", F.instance_norm, images)
    lines = normal(1500, 1001, dtype=dtype)
    add(
        f"layer_norm {dtype}",
        lambda x, w, b: F.layer_norm(x, (1001,), w, b),
        lines,
        facula.ones(1001, dtype=dtype),
        facula.zeros(1001, dtype=dtype),
    )
    add(f"rms_norm {dtype}", lambda x: F.rms_norm(x, (1001,)), lines)
    add(f"softmax {dtype}", lambda x: x.softmax(0), lines)
    add(f"cross_entropy {dtype}", lambda x: F.cross_entropy(x, facula.arange(1500) % 1001), lines)
    for name in ("sum", "mean", "var", "logsumexp", "amax", "prod", "cumsum", "norm"):
        for dim in (0, 1):
            add(
                f"{name} {dtype} {dim}",
                lambda x, name=name, dim=dim: getattr(x, name)(dim=dim),
                lines,
            )
        if name not in ("cumsum", "logsumexp"):
            add(f"{name} {dtype}", lambda x, name=name: getattr(x, name)(), lines)

# ---- products

add("matmul", facula.matmul, normal(700, 513), normal(513, 300))
add("matmul bfloat16", facula.matmul, normal(700, 513).bfloat16(), normal(513, 300).bfloat16())
add("bmm", facula.bmm, normal(30, 65, 129), normal(30, 129, 33))
for rows, columns in ((700, 513), (513, 700), (33, 5000)):
    add(f"mv {rows} {columns}", facula.mv, normal(rows, columns), normal(columns))
add("linear", F.linear, normal(600, 257), normal(129, 257), normal(129))
add("dot", facula.dot, normal(1000003), normal(1000003))
add("einsum", lambda a, b: facula.einsum("bij,bkj->ik", a, b), normal(9, 70, 80), normal(9, 60, 80))
add("cdist", lambda a: facula.cdist(a, a[:200]), normal(500, 300))
add(
    "attention",
    lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
    normal(2, 4, 300, 64),
)

# ---- convolutions: (input, weight, stride, padding, groups)

CONVOLUTIONS = [
    ((8, 16, 64, 64), (32, 16, 3, 3), 1, 1, 1),
    ((4, 32, 57, 57), (32, 1, 3, 3), 1, 1, 32),
    ((4, 64, 56, 56), (64, 8, 3, 3), 2, 1, 8),
    ((4, 32, 56, 56), (64, 32, 1, 1), 1, 0, 1),
    ((2, 3, 225, 224), (32, 3, 7, 7), 2, 3, 1),
]
for shape, kernel, stride, padding, groups in CONVOLUTIONS:
    for layout in (facula.contiguous_format, LAST):
        add(
            f"conv2d {shape} {kernel} {layout}",
            lambda x, w, s=stride, p=padding, g=groups: F.conv2d(x, w, None, s, p, 1, g),
            normal(*shape).contiguous(memory_format=layout),
            normal(*kernel),
        )
add("conv1d", lambda x, w: F.conv1d(x, w, padding=4), normal(8, 20, 3000), normal(40, 20, 9))
add(
    "conv3d",
    lambda x, w: F.conv3d(x, w, padding=1),
    normal(2, 8, 16, 30, 31),
    normal(16, 8, 3, 3, 3),
)
add(
    "conv_transpose2d",
    lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
    normal(4, 32, 30, 31),
    normal(32, 16, 4, 4),
)

# ---- images, indices, sequences

pictures = normal(4, 8, 150, 151)
places = facula.rand(4, 100, 100, 2, generator=facula.Generator().manual_seed(3)) * 2 - 1
add("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), pictures, places)
for mode in ("bilinear", "bicubic", "area"):
    add(mode, lambda x, mode=mode: F.interpolate(x, size=(200, 201), mode=mode), pictures)
add("max_pool2d", lambda x: F.max_pool2d(x, 3, 2), pictures)
add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2), pictures)
indices = facula.randint(0, 1000, (50000,), generator=facula.Generator().manual_seed(3))
add("embedding", lambda w: F.embedding(indices, w), normal(1000, 64))
for mode in ("sum", "mean", "max"):
    add(
        f"embedding_bag {mode}",
        lambda w, mode=mode: F.embedding_bag(indices.view(5000, 10), w, mode=mode),
        normal(1000, 64),
    )
add("index_add", lambda x, y: x.index_add(0, indices, y), normal(1000, 64), normal(50000, 64))
add("scatter_add", lambda x, y: x.scatter_add(0, indices, y), normal(1000), normal(50000))
add("index_put", lambda x, y: x.index_put((indices,), y, True), normal(1000, 8), normal(50000, 8))
add(
    "ctc_loss",
    lambda x: F.ctc_loss(
        x.log_softmax(2),
        facula.arange(320).reshape(16, 20) % 49 + 1,
        facula.full((16,), 100),
        facula.full((16,), 20),
    ),
    normal(100, 16, 50),
)
add("rfft", lambda x: facula.view_as_real(facula.fft.rfft(x)), normal(100003))
add("svd", lambda x: facula.linalg.svdvals(x), normal(50, 20, 20))


def recurrent(kind: str) -> list[Tensor]:
    facula.manual_seed(3)
    module = getattr(facula.nn, kind)(64, 128, 2)
    return with_gradients(lambda x: module(x)[0], normal(30, 16, 64)) + [
        p.grad for p in module.parameters()
    ]


for kind in ("LSTM", "GRU", "RNN"):
    CASES[kind] = lambda kind=kind: recurrent(kind)


def draws() -> list[Tensor]:
    source = facula.Generator().manual_seed(1)
    return [
        facula.rand(100003, generator=source),
        facula.randn(100003, generator=source),
        facula.randperm(10003, generator=source),
        facula.multinomial(facula.ones(1000), 500, generator=source),
    ]


CASES["random numbers"] = draws


@pytest.mark.parametrize("name", CASES)
def test_bits_are_the_same(name: str) -> None:
    facula.set_num_threads(1)
    alone = CASES[name]()
    for threads in (2, 3, 5):
        facula.set_num_threads(threads)
        for a, b in zip(alone, CASES[name](), strict=True):
            assert a.dtype == b.dtype
            assert facula.equal(a.nan_to_num(), b.nan_to_num()), f"{threads} threads"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_threads_may_run_on_every_processor_after_they_were_woken() -> None:
    """A thread that is woken is kept off its waker's processor until it runs."""
    x = facula.rand(400_000)
    facula.set_num_threads(2)
    for _ in range(20):
        x.exp()
        time.sleep(0.002)
    found = set()
    for task in Path("/proc/self/task").iterdir():
        name = (task / "comm").read_text().strip()
        if name == "facula":
            found.add(frozenset(os.sched_getaffinity(int(task.name))))
    assert found == {frozenset(os.sched_getaffinity(0))}
