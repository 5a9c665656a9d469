"""One operator that a program has defined: its kernels, its derivative, and how a call runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import facula
from facula import _C
from facula._library.schema import FunctionSchema

_transforms = _C.transforms
DEVICES = ("cpu", "cuda", "meta")


def tensors_among(values: Any) -> Iterator[facula.Tensor]:
    """The tensors among values, also those in lists."""
    for value in values:
        if isinstance(value, facula.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_among(value)


class _Watch(threading.local):
    """``around(record, values, run)`` stands between a thread's calls and their kernels."""

    around: Callable[[Record, list[Any], Callable[[], Any]], Any] | None = None


watch = _Watch()


class Record:
    """What is registered for one overload of an operator."""

    def __init__(self, schema: FunctionSchema, strict: bool = False) -> None:
        self.schema = schema
        # Of custom_op: kernels are no part of a graph, whatever they do, and return new tensors.
        self.strict = strict
        self.kernels: dict[str | None, Callable[..., Any]] = {}  # by device; None: any
        self.disabled: set[str] = set()
        self.composite: Callable[..., Any] | None = None
        self.autograd_kernel: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.autocast: dict[str, facula.dtype] = {}
        self.dispatch: dict[type, Callable[..., Any]] = {}
        self.tags: list[Any] = []
        self.positional = sum(not a.kwarg_only for a in schema.arguments)
        self._function: Any = None

    @property
    def label(self) -> str:
        return f"{self.schema.name.replace('::', '.')}.{self.schema.overload_name or 'default'}"

    def invoke(self, function: Callable[..., Any], values: Any) -> Any:
        """Calls a function of the operator's arguments."""
        named = self.schema.arguments[self.positional :]
        rest = {a.name: v for a, v in zip(named, values[self.positional :], strict=True)}
        return function(*values[: self.positional], **rest)

    # ---- a call

    def call(self, values: list[Any]) -> Any:
        tensors = list(tensors_among(values))
        if self.autocast:
            with self._cast(values, tensors) as (values, cast):
                if cast:
                    return self.call(values)
        if self.composite is not None:
            return self.invoke(self.composite, values)
        wrapped = any(_transforms.kind_of(t) for t in tensors)
        recorded = facula.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if wrapped or recorded:
            if self.autograd_kernel is not None and self.backward is None:
                return self.invoke(self.autograd_kernel, values)
            apart = self.strict or self.backward is not None or self.vmap is not None
            if apart and not self.schema.is_mutable:
                return self._apply(values)
            if apart and wrapped:
                raise RuntimeError(
                    f"{self.label} changes its arguments, which cannot be followed inside of "
                    "vmap, grad and the like; give it a functional form"
                )
        if self.strict:
            with facula.no_grad():
                return self.run(values)
        return self.run(values)

    @contextmanager
    def _cast(self, values: Any, tensors: list[facula.Tensor]) -> Iterator[tuple[Any, bool]]:
        kind = next((t.device.type for t in tensors), "cpu")
        dtype = self.autocast.get(kind)
        if dtype is None or not facula.is_autocast_enabled(kind):
            yield values, False
            return

        def cast(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(cast, value))
            if isinstance(value, facula.Tensor) and value.is_floating_point():
                return value.to(dtype) if value.dtype is not facula.float64 else value
            return value

        with facula.autocast(kind, enabled=False):
            yield [cast(v) for v in values], True

    def run(self, values: Any) -> Any:
        """Runs the kernel for the tensors' device."""
        tensors = list(tensors_among(values))
        kinds = {t.device.type for t in tensors}
        kind = "meta" if "meta" in kinds else next((t.device.type for t in tensors), "cpu")
        kernel = self.kernels.get(kind)
        if kind in self.disabled or (kernel is None and kind != "meta"):
            kernel = self.kernels.get(None)
        if kernel is None:
            raise self._missing(kind)
        before = [t._version for t in tensors]
        if watch.around is None:
            result = self.invoke(kernel, values)
        else:
            result = watch.around(self, values, lambda: self.invoke(kernel, values))
        if self.strict:
            self._check_results(result, tensors)
        written = self._written(values)
        for t, version in zip(tensors, before, strict=True):
            # Memory may have been changed by other means than operators.
            if any(t is w for w in written) and t._version == version:
                facula.autograd.graph.increment_version(t)
        return result

    def _written(self, values: Any) -> list[facula.Tensor]:
        pairs = zip(self.schema.arguments, values, strict=True)
        return list(tensors_among([v for a, v in pairs if a.is_write]))

    def _missing(self, kind: str) -> Exception:
        if kind == "meta" and self.strict:
            return RuntimeError(
                f"There was no fake impl registered for {self.schema.name}, so it gives no "
                "result on the meta device. Add one by register_fake: a function that makes "
                "empty tensors of the right shapes."
            )
        known = ", ".join(sorted(d or "any device" for d in self.kernels)) or "none"
        return NotImplementedError(
            f"Could not run '{self.schema.name}' with arguments from the '{kind.upper()}' backend: "
            f"there are kernels for {known}"
        )

    def _check_results(self, result: Any, inputs: list[facula.Tensor]) -> None:
        returns = self.schema.returns
        listed = result if isinstance(result, tuple) else (result,)
        if not returns:
            if result is not None:
                raise RuntimeError(
                    f"{self.label} returns nothing, but its function returned {result!r:.80}"
                )
            return
        if len(listed) != len(returns) or not all(
            t.accepts(r) for t, r in zip(returns, listed, strict=True)
        ):
            raise RuntimeError(
                f"{self.label} should return ({', '.join(map(str, returns))}), but its function "
                f"returned {result!r:.200}"
            )
        seen = {t.untyped_storage().data_ptr() for t in inputs if t.numel()}
        for t in tensors_among(listed):
            if any(t is i for i in inputs) or (
                t.numel() and t.device.type != "meta" and t.untyped_storage().data_ptr() in seen
            ):
                raise RuntimeError(
                    f"{self.label}: The output of this custom operator (1) must not also be an "
                    "input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. Return a copy instead: x.clone()."
                )
            seen.add(t.untyped_storage().data_ptr())

    # ---- derivative and batches: by an autograd.Function

    def changed(self) -> None:
        """A registration came; the next call builds its Function anew."""
        self._function = None

    def _apply(self, values: list[Any]) -> Any:
        if self._function is None:
            from facula._library.function import make_function

            self._function = make_function(self)
        return self._function(values)
