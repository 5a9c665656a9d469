#!/usr/bin/env python3
"""Sorting, scans, indexing, linear algebra, transforms: large work against PyTorch.

bench/operators.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main


def add(name: str, make: Callable[[Any], tuple[Any, ...]], run: Callable[..., Any]) -> None:
    """Work on arguments that are made once: ``run(package, *make(package))``."""

    def prepared(T: Any) -> Work:
        T.manual_seed(0)
        arguments = make(T)
        return lambda: run(T, *arguments)

    WORK[name] = prepared


def numbers(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape),)


def integers(high: int, *shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randint(0, high, shape),)


def table_and_rows(T: Any) -> tuple[Any, ...]:
    return T.zeros(10_000, 64), T.randint(0, 10_000, (10_000,)), T.randn(10_000, 64)


def bins_and_values(T: Any) -> tuple[Any, ...]:
    return T.zeros(10_000), T.randint(0, 10_000, (1_000_000,)), T.randn(1_000_000)


def with_mask(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape), T.randn(*shape) > 0)


def with_index(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape), T.randint(0, shape[0], shape))


def positive_definite(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    def make(T: Any) -> tuple[Any, ...]:
        a = T.randn(*shape)
        return (a @ a.mT + shape[-1] * T.eye(shape[-1]), T.randn(*shape))

    return make


def of_dtype(name: str, *shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda T: (T.randn(*shape).to(getattr(T, name)),)


# ---- order
add("sort_1m", numbers(1_000_000), lambda T, a: a.sort())
add("sort_1m_int64", integers(1 << 40, 1_000_000), lambda T, a: a.sort())
add(
    "sort_1m_uint8", lambda T: (T.randint(0, 256, (1_000_000,)).to(T.uint8),), lambda T, a: a.sort()
)
add("sort_1m_float64", lambda T: (T.randn(1_000_000).double(),), lambda T, a: a.sort())
add("sort_columns_1000x1000", numbers(1000, 1000), lambda T, a: a.sort(0))
add("sort_rows_of_16", numbers(60_000, 16), lambda T, a: a.sort(-1))
add("sort_rows_1000x1000", numbers(1000, 1000), lambda T, a: a.sort(-1))
add("topk_10_of_1m", numbers(1_000_000), lambda T, a: a.topk(10))
add("topk_10_of_rows", numbers(1000, 1000), lambda T, a: a.topk(10, -1))
add("unique_1m", integers(1000, 1_000_000), lambda T, a: a.unique())
add("unique_1m_wide", integers(1 << 40, 1_000_000), lambda T, a: a.unique())
add("topk_50_of_50257", numbers(16, 50_257), lambda T, a: a.topk(50, -1))
add("unique_all_of_1m", integers(1000, 1_000_000), lambda T, a: a.unique(True, True, True))
add(
    "unique_consecutive_1m",
    lambda T: (T.randint(0, 100_000, (1_000_000,)).sort()[0],),
    lambda T, a: a.unique_consecutive(),
)
add("mode_of_rows", integers(50, 1000, 1000), lambda T, a: a.mode(-1))
add("median_of_rows", numbers(1000, 1000), lambda T, a: a.median(-1))
add("bincount_1m", integers(1000, 1_000_000), lambda T, a: a.bincount())
add("histc_1m", numbers(1_000_000), lambda T, a: a.histc(100))
add("kthvalue_of_rows", numbers(1000, 1000), lambda T, a: a.kthvalue(500, -1))
add(
    "searchsorted_1m",
    lambda T: (T.randn(1000).sort()[0], T.randn(1_000_000)),
    lambda T, a, b: T.searchsorted(a, b),
)

# ---- scans
add("cumsum_of_rows", numbers(1000, 1000), lambda T, a: a.cumsum(-1))
add("cumsum_of_columns", numbers(1000, 1000), lambda T, a: a.cumsum(0))
add("cumsum_int64", integers(1000, 1000, 1000), lambda T, a: a.cumsum(-1))
add("cumsum_of_columns_int64", integers(1000, 1000, 1000), lambda T, a: a.cumsum(0))
add("cumsum_of_middle", numbers(32, 128, 256), lambda T, a: a.cumsum(1))
add("cumsum_of_bools", with_mask(1000, 1000), lambda T, a, m: m.cumsum(-1))
add("diff", numbers(1000, 1000), lambda T, a: a.diff())
add("cumsum_1m", numbers(1_000_000), lambda T, a: a.cumsum(0))
add("cumprod_of_rows", numbers(1000, 1000), lambda T, a: a.cumprod(-1))
add("cumprod_of_columns", numbers(1000, 1000), lambda T, a: a.cumprod(0))
add("cummax_of_rows", numbers(1000, 1000), lambda T, a: a.cummax(-1))
add("cummax_of_columns", numbers(1000, 1000), lambda T, a: a.cummax(0))
add("logcumsumexp_of_rows", numbers(1000, 1000), lambda T, a: a.logcumsumexp(-1))

# ---- indexing
add("gather_rows", with_index(1000, 1000), lambda T, a, i: a.gather(1, i))
add("gather_columns", with_index(1000, 1000), lambda T, a, i: a.gather(0, i))
add(
    "index_select_rows",
    lambda T: (T.randn(10_000, 64), T.randint(0, 10_000, (10_000,))),
    lambda T, a, i: a.index_select(0, i),
)
add("index_add_rows", table_and_rows, lambda T, a, i, s: a.index_add(0, i, s))
add("index_add_1m", bins_and_values, lambda T, a, i, s: a.index_add(0, i, s))
add("index_put_rows", table_and_rows, lambda T, a, i, s: a.index_put((i,), s))
add("index_put_accumulate", table_and_rows, lambda T, a, i, s: a.index_put((i,), s, True))
add("index_fill_rows", table_and_rows, lambda T, a, i, s: a.index_fill(0, i, 1.0))
add("index_select_columns", with_index(1000, 1000), lambda T, a, i: a.index_select(1, i[0]))
add("scatter_add_1m", bins_and_values, lambda T, a, i, s: a.scatter_add(0, i, s))
add(
    "gather_slices",
    table_and_rows,
    lambda T, a, i, s: s.gather(0, i.unsqueeze(1).expand(-1, 64)),
)
add(
    "scatter_add_slices",
    table_and_rows,
    lambda T, a, i, s: a.scatter_add(0, i.unsqueeze(1).expand(-1, 64), s),
)
add("scatter_amax", with_index(1000, 1000), lambda T, a, i: a.scatter_reduce(1, i, a, "amax"))
add("take_along_rows", with_index(1000, 1000), lambda T, a, i: T.take_along_dim(a, i, 1))
add("masked_fill", with_mask(1000, 1000), lambda T, a, m: a.masked_fill(m, 0.0))
add("masked_select", with_mask(1000, 1000), lambda T, a, m: a.masked_select(m))
add("nonzero", with_mask(1000, 1000), lambda T, a, m: m.nonzero())
add("where", with_mask(1000, 1000), lambda T, a, m: T.where(m, a, 0.0))
add("one_hot", integers(1000, 1000), lambda T, a: T.nn.functional.one_hot(a, 1000))
add(
    "scatter_add_rows", with_index(1000, 1000), lambda T, a, i: T.zeros_like(a).scatter_add(1, i, a)
)
add("masked_select_1m", numbers(1_000_000), lambda T, a: a[a > 0])
add("mask_of_rows", with_mask(10_000, 64), lambda T, a, m: a[m[:, 0]])
add("fill_by_mask", with_mask(1000, 1000), lambda T, a, m: a.__setitem__(m, 0.0))
add("masked_scatter", with_mask(1000, 1000), lambda T, a, m: a.masked_scatter(m, a))
add("nonzero_1m", numbers(1_000_000), lambda T, a: (a > 1).nonzero())
add("count_nonzero", with_mask(1000, 1000), lambda T, a, m: m.count_nonzero())
for _name in ("bfloat16", "float32", "uint8"):
    add(
        f"embedding_rows_{_name}",
        lambda T, d=_name: (T.randn(10_000, 64).to(getattr(T, d)), T.randint(0, 10_000, (20_000,))),
        lambda T, a, i: a[i],
    )
add(
    "pairs_of_indices",
    lambda T: (T.randn(1000, 1000), *(T.randint(0, 1000, (200_000,)) for _ in range(2))),
    lambda T, a, i, j: a[i, j],
)
add(
    "int64_positions",
    lambda T: tuple(T.randint(0, 1000, (1_000_000,)) for _ in range(2)),
    lambda T, i, j: i * 1000 + j,
)
add("int64_divmod", integers(1 << 20, 1_000_000), lambda T, i: (i // 1000, i % 1000))

# ---- large elementwise work and reductions
for _name in ("clamp_min", "eq", "lt", "mul", "remainder"):
    add(f"{_name}_number_1m", numbers(1_000_000), lambda T, a, n=_name: getattr(T, n)(a, 0.5))
add("clamp_1m", numbers(1_000_000), lambda T, a: a.clamp(-0.5, 0.5))
add("minimum_1m", numbers(2, 1_000_000), lambda T, a: T.minimum(a[0], a[1]))
add("logical_and_of_masks", with_mask(1000, 1000), lambda T, a, m: T.logical_and(m, m))
for _name in ("bfloat16", "float16"):
    for _f in ("add", "mul", "div", "maximum"):
        add(
            f"{_f}_{_name}",
            of_dtype(_name, 2, 1_000_000),
            lambda T, a, f=_f: getattr(T, f)(a[0], a[1]),
        )
    add(f"neg_{_name}", of_dtype(_name, 1_000_000), lambda T, a: -a)
for _name, _text in (
    ("attention", "bqhd,bkhd->bhqk"),
    ("attention_of_values", "bhqk,bkhd->bqhd"),
):
    add(
        f"einsum_{_name}",
        lambda T, t=_text: (
            (T.randn(4, 64, 8, 32) if t[1] == "q" else T.randn(4, 8, 64, 64),)
            + (T.randn(4, 64, 8, 32),)
        ),
        lambda T, a, b, t=_text: T.einsum(t, a, b),
    )
add("add_16m", numbers(2, 16_000_000), lambda T, a: a[0] + a[1])
add("mul_16m_in_place", numbers(16_000_000), lambda T, a: a.mul_(1.0))
add("add_row_4m", numbers(4096, 1024), lambda T, a: a + a[0])
add("add_column_4m", numbers(4096, 1024), lambda T, a: a + a[:, :1])
for _from, _to in (
    ("uint8", "float32"),
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
    ("float32", "float16"),
    ("float32", "float64"),
    ("float32", "int64"),
    ("int64", "float32"),
    ("bool", "float32"),
    ("float32", "uint8"),
):
    add(
        f"{_from}_to_{_to}",
        of_dtype(_from, 4_000_000) if _to != "uint8" else lambda T: (T.rand(4_000_000) * 200,),
        lambda T, a, d=_to: a.to(getattr(T, d)),
    )
for _dim in (0, 1):
    for _name in ("argmax", "max", "amax", "mean", "var", "std", "prod", "logsumexp", "median"):
        add(
            f"{_name}_of_dim_{_dim}",
            numbers(1000, 1000),
            lambda T, a, n=_name, d=_dim: getattr(T, n)(a, d),
        )
    add(f"norm_of_dim_{_dim}", numbers(1000, 1000), lambda T, a, d=_dim: a.norm(dim=d))
    add(f"any_of_dim_{_dim}", with_mask(1000, 1000), lambda T, a, m, d=_dim: m.any(d))
    add(
        f"sum_int64_of_dim_{_dim}",
        integers(1000, 1000, 1000),
        lambda T, a, d=_dim: a.sum(d),
    )
    add(
        f"sum_bfloat16_of_dim_{_dim}",
        of_dtype("bfloat16", 1000, 1000),
        lambda T, a, d=_dim: a.sum(d),
    )
for _name in ("sum", "amax", "norm"):
    add(f"{_name}_of_rows_of_8", numbers(100_000, 8), lambda T, a, n=_name: getattr(T, n)(a, dim=1))
    add(f"{_name}_of_8_columns", numbers(100_000, 8), lambda T, a, n=_name: getattr(T, n)(a, dim=0))
add("sum_of_middle", numbers(64, 128, 128), lambda T, a: a.sum(1))
add("sum_of_bytes", integers(2, 4_000_000), lambda T, a: (a > 0).sum())
add("sum_16m", numbers(16_000_000), lambda T, a: a.sum())
add("sum_bfloat16", of_dtype("bfloat16", 4_000_000), lambda T, a: a.sum())
add("var_1m", numbers(1_000_000), lambda T, a: a.var())
add("softmax_of_middle", numbers(32, 128, 256), lambda T, a: a.softmax(1))
add("softmax_bfloat16", of_dtype("bfloat16", 1000, 1000), lambda T, a: a.softmax(1))
add("softmax_of_columns", numbers(1000, 1000), lambda T, a: a.softmax(0))
add("log_softmax_of_rows", numbers(1000, 1000), lambda T, a: a.log_softmax(1))
add("cdist", numbers(2, 1000, 64), lambda T, a: T.cdist(a[0], a[1]))
add("cdist_inf", numbers(2, 300, 64), lambda T, a: T.cdist(a[0], a[1], p=float("inf")))
add("cdist_1", numbers(2, 500, 64), lambda T, a: T.cdist(a[0], a[1], p=1.0))

# ---- copies
for _dim in (0, 1):
    _names = f"of_dim_{_dim}"
    add(f"flip_{_names}", numbers(1000, 1000), lambda T, a, d=_dim: a.flip(d))
    add(f"roll_{_names}", numbers(1000, 1000), lambda T, a, d=_dim: a.roll(100, d))
    add(f"repeat_{_names}", numbers(1000, 1000), lambda T, a, d=_dim: a.repeat_interleave(2, d))
    add(
        f"cat_{_names}",
        lambda T: ([T.randn(1000, 1000) for _ in range(4)],),
        lambda T, a, d=_dim: T.cat(a, d),
    )
    add(
        f"stack_{_names}",
        lambda T: ([T.randn(1000, 1000) for _ in range(4)],),
        lambda T, a, d=_dim: T.stack(a, d),
    )
add("transpose_2000x2000", numbers(2000, 2000), lambda T, a: a.t().contiguous())
add("channels_last", numbers(32, 64, 56, 56), lambda T, a: a.permute(0, 2, 3, 1).contiguous())
add("channels_first", numbers(32, 56, 56, 64), lambda T, a: a.permute(0, 3, 1, 2).contiguous())
add("heads_first", numbers(32, 128, 12, 64), lambda T, a: a.permute(0, 2, 1, 3).contiguous())
add("reverse_3_dims", numbers(100, 110, 120), lambda T, a: a.permute(2, 1, 0).contiguous())
add("windows_5_dims", numbers(8, 7, 7, 64, 64), lambda T, a: a.permute(0, 3, 1, 4, 2).contiguous())
add("patches", numbers(16, 3, 224, 224), lambda T, a: a.unfold(2, 16, 16).unfold(3, 16, 16).clone())
for _name in ("uint8", "bfloat16", "float64"):
    add(f"transpose_{_name}", of_dtype(_name, 2000, 2000), lambda T, a: a.t().contiguous())
    add(
        f"channels_last_{_name}",
        of_dtype(_name, 16, 3, 224, 224),
        lambda T, a: a.permute(0, 2, 3, 1).contiguous(),
    )
add("cat_1000_rows", lambda T: (list(T.randn(1000, 1000)),), lambda T, a: T.cat(a))
add("stack_1000_rows", lambda T: (list(T.randn(1000, 1000)),), lambda T, a: T.stack(a))
add("stack_1000_columns", lambda T: (list(T.randn(1000, 1000)),), lambda T, a: T.stack(a, 1))
add("stack_32_images", lambda T: (list(T.randn(32, 3, 224, 224)),), lambda T, a: T.stack(a))
add("split_and_cat", numbers(1000, 1000), lambda T, a: T.cat(a.split(100, 1)[::-1], 1))
add("tril", numbers(1000, 1000), lambda T, a: a.tril())
add("triu", numbers(16, 256, 256), lambda T, a: a.triu(1))
add("tile", numbers(500, 500), lambda T, a: a.repeat(2, 2))
add("clone_4m", numbers(4_000_000), lambda T, a: a.clone())
add("strided_clone", numbers(2000, 2000), lambda T, a: a[:, ::2].clone())
add("zeros_1m", numbers(1), lambda T, a: T.zeros(1_000_000))
add("full_16m", numbers(1), lambda T, a: T.full((16_000_000,), 2.0))
add("arange_1m", numbers(1), lambda T, a: T.arange(1_000_000))

# ---- linear algebra
for _name, _shape in (
    ("256", (256, 256)),
    ("10000_of_3x3", (10_000, 3, 3)),
    ("1000_of_16x16", (1000, 16, 16)),
    ("100_of_32x32", (100, 32, 32)),
):
    add(f"inv_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.inv(a))
    add(f"solve_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.solve(a, b))
    add(f"det_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.det(a))
    add(f"cholesky_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.cholesky(a))
    add(f"qr_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.qr(b))
    add(f"svd_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.svd(b))
    add(f"eigh_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.eigh(a))
    add(f"lu_factor_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.lu_factor(b))
    add(f"lstsq_{_name}", positive_definite(*_shape), lambda T, a, b: T.linalg.lstsq(a, b))
    add(f"matrix_exp_{_name}", positive_definite(*_shape), lambda T, a, b: T.matrix_exp(b * 0.1))

for _size in (64, 200):
    add(f"lstsq_{_size}", numbers(_size, _size), lambda T, a: T.linalg.lstsq(a, a[:, :3]))
    add(f"eigh_{_size}", positive_definite(_size, _size), lambda T, a, b: T.linalg.eigh(a))
    add(f"eigvalsh_{_size}", positive_definite(_size, _size), lambda T, a, b: T.linalg.eigvalsh(a))
    add(f"eig_{_size}", numbers(_size, _size), lambda T, a: T.linalg.eig(a))
    add(f"eigvals_{_size}", numbers(_size, _size), lambda T, a: T.linalg.eigvals(a))
    add(f"svd_{_size}", numbers(_size, _size), lambda T, a: T.linalg.svd(a))
    add(f"svdvals_{_size}", numbers(_size, _size), lambda T, a: T.linalg.svdvals(a))

# ---- Fourier transforms
add("fft_2_to_20", lambda T: (T.randn(1 << 20, dtype=T.complex64),), lambda T, a: T.fft.fft(a))
add("rfft_2_to_20", numbers(1 << 20), lambda T, a: T.fft.rfft(a))
add(
    "fft2_1000x1000",
    lambda T: (T.randn(1000, 1000, dtype=T.complex64),),
    lambda T, a: T.fft.fft2(a),
)

# ---- function transforms


def _network(T: Any) -> tuple[Any, ...]:
    images, labels = T.randn(64, 1, 28, 28), T.randint(0, 10, (64,))
    parameters = (
        T.randn(16, 1, 3, 3) * 0.3,
        T.randn(32, 16, 3, 3) * 0.1,
        T.randn(10, 32 * 12 * 12) * 0.02,
    )

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        first, second, last = parameters
        x = T.relu(T.conv2d(image.unsqueeze(0), first))
        x = T.relu(T.conv2d(x, second))
        x = x.unflatten(2, (12, 2)).unflatten(4, (12, 2)).mean((3, 5))
        scores = T.log_softmax(x.flatten() @ last.t(), -1)
        return -scores.gather(0, label.unsqueeze(0)).sum()

    return parameters, images, labels, T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))


add("per_sample_gradients", _network, lambda T, p, x, y, gradients: gradients(p, x, y))


if __name__ == "__main__":
    main(__file__, __doc__)
