"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import facula
from facula import Tensor
from facula.optim._rules import check_lr
from facula.optim.optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["LBFGS"]


class _Point(NamedTuple):
    """A place on the line that is searched: step, loss, gradient, slope along the line."""

    t: Any
    loss: float
    grad: Tensor
    slope: Any


def _minimum_of_cubic(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is smallest, within bounds."""
    if bounds is None:
        bounds = (a.t, b.t) if a.t <= b.t else (b.t, a.t)
    low, high = bounds
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t > b.t:
        a, b = b, a
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, low), high)


class _StrongWolfe:
    """A line search that ends where the strong Wolfe conditions hold (Nocedal and Wright, 3.5)."""

    c1, c2 = 1e-4, 0.9
    narrowest = 1e-9  # the widest step of an interval that is not cut any more

    def __init__(
        self,
        evaluate: Callable[[Any], tuple[float, Tensor]],
        start: _Point,
        direction: Tensor,
        max_iterations: int,
    ) -> None:
        self.evaluate = evaluate
        self.start = start
        self.direction = direction
        self.left = max_iterations
        self.evaluations = 0

    def at(self, t: Any) -> _Point:
        loss, grad = self.evaluate(t)
        self.evaluations += 1
        return _Point(t, loss, grad, grad.dot(self.direction))

    def is_too_high(self, point: _Point) -> bool:
        return point.loss > self.start.loss + self.c1 * point.t * self.start.slope

    def is_flat(self, point: _Point) -> bool:
        return abs(point.slope) <= -self.c2 * self.start.slope

    def run(self, t: Any) -> _Point:
        """The point to go to; the first try is ``t``."""
        before, now = self.start, self.at(t)
        iterations = 0
        while iterations < self.left:
            if self.is_too_high(now) or (iterations > 1 and now.loss >= before.loss):
                return self.zoom(before, now, iterations)
            if self.is_flat(now):
                return now
            if now.slope >= 0:
                return self.zoom(before, now, iterations)
            bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
            t = _minimum_of_cubic(before, now, bounds)
            before, now = now, self.at(t)
            iterations += 1
        return min(self.start, now, key=lambda point: point.loss)

    def zoom(self, a: _Point, b: _Point, iterations: int) -> _Point:
        """Narrows an interval that holds a good point."""
        ends = [a, b]
        low = 0 if a.loss <= b.loss else 1
        stalled = False
        width_of_step = self.direction.abs().max()
        while iterations < self.left:
            if abs(ends[1].t - ends[0].t) * width_of_step < self.narrowest:
                break
            t = _minimum_of_cubic(ends[0], ends[1])
            left, right = min(ends[0].t, ends[1].t), max(ends[0].t, ends[1].t)
            # Twice in a row too near an end: a tenth of the interval away from it.
            margin = 0.1 * (right - left)
            if min(right - t, t - left) < margin:
                if stalled or t >= right or t <= left:
                    t = right - margin if abs(t - right) < abs(t - left) else left + margin
                    stalled = False
                else:
                    stalled = True
            else:
                stalled = False
            now = self.at(t)
            iterations += 1
            if self.is_too_high(now) or now.loss >= ends[low].loss:
                ends[1 - low] = now
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            done = self.is_flat(now)
            if not done and now.slope * (ends[1 - low].t - ends[low].t) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = now
            if done:
                break
        return ends[low]


class LBFGS(Optimizer):
    """Limited-memory BFGS, a quasi-Newton method that evaluates the loss several times in a step.

    It has one group of parameters and keeps ``history_size`` pairs of vectors as long as all
    parameters together.

    Args:
        params: the parameters.
        lr: the learning rate.
        max_iter: how many iterations a step has at most.
        max_eval: how many times a step evaluates the closure at most; ``1.25 * max_iter`` by
            default.
        tolerance_grad: a step ends when no element of the gradient is larger.
        tolerance_change: a step ends when neither the loss nor a parameter changes more.
        history_size: how many past updates are kept.
        line_search_fn: None for steps of ``lr``, or "strong_wolfe".

    Example::

        >>> p = facula.nn.Parameter(facula.tensor([3., -1.]))
        >>> optimizer = facula.optim.LBFGS([p], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((p - facula.tensor([1., 2.])) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        >>> p.detach().round(decimals=3)
        tensor([1., 2.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            grad = facula.zeros_like(p) if p.grad is None else p.grad
            if grad.is_sparse:
                grad = grad.to_dense()
            if grad.is_complex():
                grad = facula.view_as_real(grad)
            parts.append(grad.reshape(-1))
        return facula.cat(parts)

    def _move(self, t: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            real = facula.view_as_real(p) if p.is_complex() else p
            n = real.numel()
            real.add_(direction[offset : offset + n].view_as(real), alpha=float(t))
            offset += n

    def _direction(self, state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """The approximate inverse Hessian times the gradient, downhill (the two-loop recursion)."""
        y = grad.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if ys > 1e-10:
            if len(dirs) == history_size:
                for kept in (dirs, steps, ro):
                    kept.pop(0)
            dirs.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in reversed(range(len(dirs))):
            al[i] = steps[i].dot(q) * ro[i]
            q.add_(dirs[i], alpha=-al[i].item())
        r = q.mul(state["H_diag"])
        for i in range(len(dirs)):
            be = dirs[i].dot(r) * ro[i]
            r.add_(steps[i], alpha=(al[i] - be).item())
        return r

    @facula.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Runs up to ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes the loss, calls ``backward`` and returns the
                loss.

        Returns:
            The loss before the step.
        """
        group = self.param_groups[0]
        lr = _to_scalar(group["lr"])
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance = group["tolerance_change"]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported, got {search!r}")
        closure = facula.enable_grad()(closure)
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def is_optimal(grad: Tensor) -> bool:
            return bool(grad.abs().max() <= group["tolerance_grad"])

        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if is_optimal(grad):
            return first_loss

        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            start = state["n_iter"] == 1
            if start:
                state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                state["d"] = self._direction(state, grad, group["history_size"])
            d = state["d"]
            if state.get("prev_flat_grad") is None:
                state["prev_flat_grad"] = grad.clone(memory_format=facula.contiguous_format)
            else:
                state["prev_flat_grad"].copy_(grad)
            state["prev_loss"] = loss
            t = min(1.0, 1.0 / grad.abs().sum()) * lr if start else lr
            state["t"] = t
            slope = grad.dot(d)
            if slope > -tolerance:
                break

            used = 0
            optimal = False
            if search is not None:
                t, loss, grad, used = self._search(
                    closure, _Point(0, loss, grad, slope), d, t, max_eval - evaluations
                )
                state["t"] = t
                optimal = is_optimal(grad)
            else:
                self._move(t, d)
                if iteration != max_iter:
                    loss = float(closure())
                    grad = self._flat_grad()
                    optimal = is_optimal(grad)
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                iteration == max_iter
                or evaluations >= max_eval
                or optimal
                or d.mul(t).abs().max() <= tolerance
                or abs(loss - state["prev_loss"]) < tolerance
            ):
                break
        return first_loss

    def _search(
        self,
        closure: Callable[[], Any],
        start: _Point,
        d: Tensor,
        t: Any,
        max_iterations: int,
    ) -> tuple[Any, float, Tensor, int]:
        """Searches along ``d`` and goes to the point that it finds."""
        here = [p.clone(memory_format=facula.contiguous_format) for p in self._params]

        def evaluate(t: Any) -> tuple[float, Tensor]:
            self._move(t, d)
            loss = float(closure())
            grad = self._flat_grad()
            for p, value in zip(self._params, here, strict=True):
                p.copy_(value)
            return loss, grad

        search = _StrongWolfe(evaluate, start, d, max_iterations)
        point = search.run(t)
        self._move(point.t, d)
        return point.t, point.loss, point.grad, search.evaluations
