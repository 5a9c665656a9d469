"""Calls on sparse tensors, for tests that compare two ways to compute them.

``cases(layout)`` are functions of ``Inputs``: a matrix ``s`` in that layout, another one ``t``, and
dense tensors that go with them. What one way refuses the other must refuse in the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from package_under_test import F

ROWS, COLUMNS = 6, 8
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "coo": lambda d: d.to_sparse(),
    "csr": lambda d: d.to_sparse_csr(),
    "csc": lambda d: d.to_sparse_csc(),
    "bsr": lambda d: d.to_sparse_bsr((3, 2)),
    "bsc": lambda d: d.to_sparse_bsc((2, 4)),
}


def numbers(shape: tuple[int, ...], seed: int, dtype: Any = None, zeros: float = 0.0) -> Any:
    """Small numbers that every dtype holds, some of them zero."""
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 9, shape) * 0.5 * rng.choice([-1, 1], shape)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        found = rng.integers(1, 5, shape).astype(float)
    found = np.where(rng.random(shape) < zeros, 0.0, found)
    t = F.tensor(found).to(dtype or F.float32)
    return t + t.conj() * 1j if dtype is not None and dtype.is_complex else t


class Inputs:
    """The tensors of a call, on ``device``; ``leaves`` are those that gradients are taken of."""

    def __init__(self, layout: str, device: str = "cpu", dtype: Any = None) -> None:
        make = LAYOUTS[layout]
        dtype = dtype or F.float32
        self.device = device
        self.s = self._leaf(make(numbers((ROWS, COLUMNS), 1, dtype, 0.6)))
        self.t = self._leaf(make(numbers((ROWS, COLUMNS), 2, dtype, 0.7)))
        self.x = self._leaf(numbers((ROWS, COLUMNS), 3, dtype))
        self.w = self._leaf(numbers((COLUMNS, 5), 4, dtype))
        self.v = self._leaf(numbers((COLUMNS,), 5, dtype))
        self.index = F.tensor([3, 0, 3, 4]).to(device)
        self.leaves = [self.s, self.t, self.x, self.w, self.v]
        self.dtype = dtype

    def _leaf(self, t: Any) -> Any:
        t = t.to(self.device)
        return t.requires_grad_() if t.is_floating_point() or t.is_complex() else t

    def repeated(self) -> Any:
        """A COO tensor with positions out of order, some of them twice; of its dtype."""
        at = F.tensor([[5, 1, 0, 5, 1, 3], [7, 2, 1, 7, 0, 2]]).to(self.device)
        values = numbers((6,), 6, self.dtype).to(self.device) * self.v[:6]
        return F.sparse_coo_tensor(at, values, (ROWS, COLUMNS))

    def hybrid(self) -> Any:
        """A COO tensor with two sparse dimensions and one dense one, positions repeated."""
        at = F.tensor([[2, 0, 2, 1], [1, 3, 1, 0]]).to(self.device)
        values = numbers((4, 3), 7, self.dtype).to(self.device) * self.v[:3]
        return F.sparse_coo_tensor(at, values, (3, 4, 3))

    def cube(self) -> Any:
        """A COO tensor with three sparse dimensions."""
        return numbers((3, 4, 5), 8, self.dtype, 0.6).to_sparse().to(self.device)


# ---- of any layout

ANY: dict[str, Callable[[Inputs], Any]] = {
    "itself": lambda m: m.s,
    "to_dense": lambda m: m.s.to_dense(),
    "clone": lambda m: m.s.clone(),
    "detach": lambda m: m.s.detach(),
    "t": lambda m: m.s.t(),
    "transpose": lambda m: m.s.transpose(0, 1) @ m.x,
    "coo": lambda m: m.s.to_sparse(),
    "csr": lambda m: m.s.to_sparse_csr(),
    "csc": lambda m: m.s.to_sparse_csc(),
    "bsr": lambda m: m.s.to_sparse_bsr((2, 2)),
    "bsc": lambda m: m.s.to_sparse_bsc((3, 4)),
    "from dense": lambda m: m.x.to_sparse_csr(),
    "sin": lambda m: m.s.sin(),
    "abs": lambda m: m.s.abs(),
    "neg": lambda m: -m.s,
    "relu": lambda m: m.s.relu(),
    "square": lambda m: m.s**2,
    "sqrt of squares": lambda m: (m.s * m.s).sqrt(),
    "isnan": lambda m: m.s.isnan(),
    "exp": lambda m: m.s.exp(),
    "times a number": lambda m: 2 * m.s,
    "over a number": lambda m: m.s / 4,
    "over a tensor": lambda m: m.s / F.tensor(4.0, device=m.device),
    "plus a number": lambda m: m.s + 1,
    "times dense": lambda m: m.s * m.x,
    "times a row": lambda m: m.s * m.v,
    "times a column": lambda m: m.s * m.x[:, :1],
    "times too much": lambda m: m.s * m.x.expand(2, ROWS, COLUMNS),
    "times sparse": lambda m: m.s * m.t,
    "times itself": lambda m: m.s * m.s,
    "plus sparse": lambda m: m.s + m.t,
    "plus itself": lambda m: F.add(m.s, m.s, alpha=2),
    "minus sparse": lambda m: m.s - m.t,
    "plus the same positions": lambda m: m.s + LAYOUTS_OF[m.s.layout](m.s.detach().to_dense()),
    "dense plus sparse": lambda m: F.add(m.x, m.s, alpha=2),
    "sparse minus dense": lambda m: m.s - m.x,
    "into dense": lambda m: (m.x * 1).add_(m.s, alpha=3),
    "out of dense": lambda m: (m.x * 1).sub_(m.s),
    "copied into dense": lambda m: (m.x * 1).copy_(m.s),
    "copied into sparse": lambda m: F.zeros_like(m.s.detach()).copy_(m.t.detach()),
    "scaled in place": lambda m: m.s.detach().clone().mul_(3),
    "added in place": lambda m: m.s.detach().clone().add_(m.t.detach()),
    "matrix": lambda m: m.s @ m.w,
    "matrix of one column": lambda m: m.s @ m.w[:, :1],
    "matrix without columns": lambda m: m.s @ m.w[:, :0],
    "vector": lambda m: m.s @ m.v,
    "mv": lambda m: F.mv(m.s, m.v),
    "from the right": lambda m: m.x @ m.s.t(),
    "row of vectors": lambda m: m.v @ m.s.t(),
    "sparse product": lambda m: m.s @ m.t.t(),
    "sparse.mm": lambda m: F.sparse.mm(m.s, m.w),
    "addmm": lambda m: F.sparse.addmm(m.x[:, :5], m.s, m.w, beta=2, alpha=3),
    "addmm without self": lambda m: F.addmm(m.x[:, :5].detach(), m.s, m.w, beta=0),
    "addmv": lambda m: F.addmv(m.x[:, 0], m.s, m.v),
    "linear": lambda m: F.nn.functional.linear(m.v, m.s, m.x[:, 0]),
    "wrong product": lambda m: m.s @ m.x,
    "sum": lambda m: m.s.sum(),
    "sum of rows": lambda m: F.sparse.sum(m.s, 1),
    "sum of columns": lambda m: F.sparse.sum(m.s, 0),
    "sum kept": lambda m: m.s.sum(1, keepdim=True),
    "mean": lambda m: m.s.mean(),
    "norm": lambda m: m.s.norm(),
    "any": lambda m: m.s.any(),
    "softmax of rows": lambda m: F.sparse.softmax(m.s, 1),
    "softmax of columns": lambda m: F.sparse.softmax(m.s, 0),
    "log_softmax": lambda m: F.sparse.log_softmax(m.s, 1),
    "mask of dense": lambda m: m.x.sparse_mask(m.s.detach()),
    "mask of sparse": lambda m: m.t.sparse_mask(m.s.detach()),
    "row": lambda m: m.s[2],
    "column": lambda m: m.s.select(1, -1),
    "rows": lambda m: m.s[1:5:2],
    "columns": lambda m: m.s.narrow(1, 2, 3),
    "no rows": lambda m: m.s[4:4],
    "wrong row": lambda m: m.s[9],
    "index_select of rows": lambda m: m.s.index_select(0, m.index),
    "index_select of columns": lambda m: m.s.index_select(1, m.index),
    "index_select of nothing": lambda m: m.s.index_select(1, m.index[:0]),
    "wrong index_select": lambda m: m.s.index_select(1, m.index + 4),
    "below index_select": lambda m: m.s.index_select(0, m.index - 2),
    "cat of rows": lambda m: F.cat([m.s, m.t, m.s], 0),
    "cat of columns": lambda m: F.cat([m.s, m.t], 1),
    "stack": lambda m: F.stack([m.s, m.t], 1),
    "unsqueeze": lambda m: m.s.unsqueeze(1),
    "squeeze": lambda m: m.s[:1].squeeze(),
    "unbind": lambda m: m.s.unbind(1),
    "zeros_like": lambda m: F.zeros_like(m.s),
    "new_zeros": lambda m: m.s.new_zeros((3, 4)),
    "double": lambda m: m.s.to(F.complex128 if m.dtype.is_complex else F.float64),
    "bool": lambda m: m.s.bool(),
    "smm": lambda m: F.smm(m.s, m.w),
    "sspaddmm": lambda m: F.sspaddmm(m.s, m.s, m.s.t() @ m.x),
    "matrix_power": lambda m: (m.s @ m.x.t()).to_sparse().matrix_power(3),
    "zero_": lambda m: m.s.detach().clone().zero_(),
}
LAYOUTS_OF = {getattr(F, f"sparse_{name}"): make for name, make in LAYOUTS.items()}

# ---- of COO tensors

COO: dict[str, Callable[[Inputs], Any]] = {
    "coalesce": lambda m: m.repeated().coalesce(),
    "repeated to_dense": lambda m: m.repeated().to_dense(),
    "repeated to csr": lambda m: m.repeated().to_sparse_csr(),
    "repeated to bsr": lambda m: m.repeated().to_sparse_bsr((2, 2)),
    "repeated sin": lambda m: m.repeated().sin(),
    "repeated mm": lambda m: m.repeated() @ m.w,
    "repeated plus": lambda m: m.repeated() + m.s,
    "repeated times": lambda m: m.repeated() * m.s,
    "repeated softmax": lambda m: F.sparse.softmax(m.repeated(), 1),
    "repeated sum": lambda m: F.sparse.sum(m.repeated(), 0),
    "repeated mask": lambda m: m.x.sparse_mask(m.repeated()),
    "repeated rows": lambda m: m.repeated().index_select(0, m.index),
    "repeated norm": lambda m: m.repeated().norm(),
    "hybrid": lambda m: m.hybrid().coalesce(),
    "hybrid to_dense": lambda m: m.hybrid().to_dense(),
    "hybrid sum": lambda m: [F.sparse.sum(m.hybrid(), d) for d in (0, 1, 2, (0, 2), (0, 1))],
    "hybrid softmax": lambda m: [F.sparse.softmax(m.hybrid(), d) for d in (0, 1, 2)],
    "hybrid permute": lambda m: m.hybrid().permute(1, 0, 2).coalesce(),
    "hybrid select": lambda m: [m.hybrid().select(d, 1) for d in (0, 1, 2)],
    "hybrid cat": lambda m: [F.cat([m.hybrid()] * 2, d) for d in (0, 1, 2)],
    "hybrid mask": lambda m: F.ones(3, 4, 3, device=m.device).sparse_mask(m.hybrid()),
    "hybrid times": lambda m: m.hybrid() * F.ones(4, 1, device=m.device, dtype=m.dtype),
    "cube": lambda m: m.cube(),
    "cube sum": lambda m: [F.sparse.sum(m.cube(), d) for d in (0, (0, 1), (1, 2))],
    "cube softmax": lambda m: [F.sparse.softmax(m.cube(), d) for d in (0, 1, 2)],
    "cube permute": lambda m: m.cube().permute(2, 0, 1).coalesce(),
    "cube index_select": lambda m: m.cube().index_select(2, m.index),
    "cube slice": lambda m: m.cube()[:, 1:, ::2],
    "cube rows": lambda m: m.x[:4].to_sparse(1),
    "bmm": lambda m: F.bmm(m.cube(), m.x[:5, :3].expand(3, 5, 3)),
    "hspmm": lambda m: F.hspmm(m.s, m.w),
    "scalar": lambda m: m.x[0, 0].to_sparse().to_dense(),
    "turned in place": lambda m: m.s.detach().clone().t_(),
    "resized": lambda m: m.s.detach().clone().sparse_resize_((9, 9), 2, 0),
    "cleared": lambda m: m.s.detach().clone().sparse_resize_and_clear_((3, 2, 2), 2, 1),
    "negative positions": lambda m: F.sparse_coo_tensor(
        F.tensor([[0, -1], [1, 1]], device=m.device), F.ones(2, device=m.device), (2, 2)
    ),
    "positions too large": lambda m: F.sparse_coo_tensor(
        F.tensor([[0, 1], [1, 7]], device=m.device), F.ones(2, device=m.device), (2, 2)
    ),
    "size from positions": lambda m: F.sparse_coo_tensor(
        F.tensor([[0, 4], [1, 7]], device=m.device), F.ones(2, device=m.device)
    ),
    "too few values": lambda m: F.sparse_coo_tensor(
        F.tensor([[0, 4], [1, 7]], device=m.device), F.ones(3, device=m.device)
    ),
    "no elements": lambda m: F.sparse_coo_tensor((3, 4), device=m.device, dtype=m.dtype) @ m.w[:4],
    "sum of nothing": lambda m: F.sparse.sum(F.sparse_coo_tensor((3, 4), device=m.device), 0),
    "softmax of nothing": lambda m: F.sparse.softmax(F.sparse_coo_tensor((3, 4)).to(m.device), 1),
    "product of nothing": lambda m: (
        F.sparse_coo_tensor((3, 6), device=m.device, dtype=m.dtype) @ m.s
    ),
    "plus nothing": lambda m: m.s + F.sparse_coo_tensor((ROWS, COLUMNS), device=m.device),
    "times nothing": lambda m: m.s * F.sparse_coo_tensor((ROWS, COLUMNS), device=m.device),
    "nothing to csc": lambda m: F.sparse_coo_tensor((3, 4), device=m.device).to_sparse_csc(),
    "nothing to bsr": lambda m: F.zeros(4, 4, device=m.device).to_sparse_bsr((2, 2)),
    "no rows at all": lambda m: m.x[:0, :4].to_sparse_csr() @ m.w[:4],
    "written positions": lambda m: _written(m, m.repeated().coalesce(), "_indices"),
    "spdiags": lambda m: F.sparse.spdiags(
        m.x[:2, :4].detach(), F.tensor([0, -1], device=m.device), (4, 4)
    ),
}

# ---- of CSR matrices


def _reduced(how: str) -> Callable[[Inputs], Any]:
    return lambda m: F.sparse.mm(m.s, m.w, how)


def _csr(m: Inputs, starts: list[int], columns: list[int], count: int = 3) -> Any:
    return F.sparse_csr_tensor(
        F.tensor(starts, device=m.device),
        F.tensor(columns, device=m.device, dtype=F.int64),
        F.ones(count, device=m.device, dtype=m.dtype),
        (3, 4),
    )


def _written(m: Inputs, t: Any, part: str) -> Any:
    """The sum of a tensor after a bad position was written into it."""
    getattr(t, part)().view(-1)[1] = 99
    return t.to_dense()


CSR: dict[str, Callable[[Inputs], Any]] = {
    "sampled_addmm": lambda m: F.sparse.sampled_addmm(m.s, m.x, m.w @ m.x[:5], beta=2, alpha=3),
    "sampled_addmm without beta": lambda m: F.sparse.sampled_addmm(m.s, m.x, m.w @ m.x[:5], beta=0),
    "sampled of no width": lambda m: F.sparse.sampled_addmm(m.s, m.x[:, :0], m.x[:0]),
    **{f"mm by {how}": _reduced(how) for how in ("mean", "amax", "amin")},
    "unsorted": lambda m: _csr(m, [0, 2, 2, 3], [3, 1, 0]).to_sparse(),
    "repeated columns": lambda m: _csr(m, [0, 2, 2, 3], [1, 1, 0]).to_dense(),
    "first start": lambda m: _csr(m, [1, 2, 2, 3], [3, 1, 0]),
    "last start": lambda m: _csr(m, [0, 2, 2, 2], [3, 1, 0]),
    "falling starts": lambda m: _csr(m, [0, 2, 1, 3], [3, 1, 0]),
    "starts above": lambda m: _csr(m, [0, 2, 4, 3], [3, 1, 0]),
    "columns above": lambda m: _csr(m, [0, 2, 2, 3], [3, 4, 0]),
    "columns below": lambda m: _csr(m, [0, 2, 2, 3], [3, -1, 0]),
    "few starts": lambda m: _csr(m, [0, 2, 3], [3, 1, 0]),
    "no elements": lambda m: _csr(m, [0, 0, 0, 0], [], 0) @ m.w[:4],
    "int32": lambda m: (
        F.sparse_csr_tensor(m.s.crow_indices().int(), m.s.col_indices().int(), m.s.values())
        @ m.w[:, :3]
    ),
    "batch": lambda m: F.stack([m.x, m.x * 2]).to_sparse_csr(),
    "batch to_dense": lambda m: F.stack([m.x, m.x * 2]).to_sparse_csr().to_dense(),
    "batch times": lambda m: F.bmm(
        F.stack([m.x, m.x * 2]).to_sparse_csr(), F.stack([m.w, m.w * 3])
    ),
    "wrong batch": lambda m: F.sparse_csr_tensor(
        F.tensor([[0, 1], [0, 1]], device=m.device),
        F.tensor([[0], [5]], device=m.device),
        F.ones(2, 1, device=m.device),
        (2, 1, 4),
    ),
    "written columns": lambda m: _written(m, m.s.detach().clone(), "col_indices"),
}


def cases(layout: str) -> dict[str, Callable[[Inputs], Any]]:
    """By name: what is done to a matrix in this layout."""
    return {**ANY, **({"coo": COO, "csr": CSR}.get(layout, {}))}


CASES = [(layout, name) for layout in LAYOUTS for name in cases(layout)]


# ---- results


def outcome(call: Callable[[Inputs], Any], inputs: Inputs) -> Any:
    """The results of a call, or its error."""
    try:
        results = call(inputs)
        if inputs.device != "cpu":
            F.cuda.synchronize()
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return error
    return list(results) if isinstance(results, (list, tuple)) else [results]


def gradients(results: list[Any], inputs: Inputs) -> Any:
    """The gradients of the results for all leaves, with weights that tell elements apart."""
    total = 0
    for r in results:
        if r.requires_grad:
            dense = r.to_dense()
            total = total + (dense * numbers(dense.shape, 11, r.dtype).to(r.device)).sum()
    if not isinstance(total, F.Tensor):
        return []
    return outcome(
        lambda m: F.autograd.grad(total.abs(), m.leaves, allow_unused=True, retain_graph=True),
        inputs,
    )


def parts(t: Any) -> list[Any]:
    """The tensors that a sparse tensor is made of; a dense one itself."""
    if t.layout == F.strided:
        return [t]
    t = t.detach()
    if t.layout == F.sparse_coo:
        return [t._indices(), t._values()]
    by_rows = t.layout in (F.sparse_csr, F.sparse_bsr)
    first, second = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    return [getattr(t, first)(), getattr(t, second)(), t.values()]


def equal(a: Any, b: Any) -> bool:
    """Whether all elements are the same; NaN is."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def compare(found: Any, expected: Any, close: Callable[[Any, Any], bool] = equal) -> None:
    """Asserts that outcomes are the same: layouts, positions, flags, and values by ``close``."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(found) is type(expected), f"{found!r}, not {expected!r}"
        assert str(found) == str(expected)
        return
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if a is None or b is None:
            assert a is b
            continue
        assert (a.layout, a.dtype, a.shape) == (b.layout, b.dtype, b.shape)
        assert a.requires_grad == b.requires_grad
        if a.layout == F.sparse_coo:
            assert a.is_coalesced() == b.is_coalesced()
        for p, q in zip(parts(a), parts(b), strict=True):
            assert p.device == a.device
            assert (p.dtype, p.shape) == (q.dtype, q.shape)
            assert close(p.detach(), q.detach()), f"{p}, not {q}"
