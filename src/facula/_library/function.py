"""The autograd.Function of a custom operator.

A Function knows tensors only as arguments and results of their own. So lists of tensors are taken
apart on the way in and out, and a ``_Layout`` says how to put them together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import facula
from facula._library.record import Record


class _Layout:
    """How many values each argument and each result consists of; None: it is no list."""

    def __init__(self, arguments: list[int | None]) -> None:
        self.arguments = arguments
        self.results: list[int | None] = []
        self.single = False


def _flat(values: Sequence[Any], layout: Sequence[int | None]) -> list[Any]:
    return [
        item
        for value, count in zip(values, layout, strict=True)
        for item in ([value] if count is None else value)
    ]


def _joined(flat: Sequence[Any], layout: Sequence[int | None]) -> list[Any]:
    values, at = [], 0
    for count in layout:
        values.append(flat[at] if count is None else list(flat[at : at + count]))
        at += 1 if count is None else count
    return values


class _Context:
    """A ctx whose ``needs_input_grad`` has a list for each list of tensors."""

    def __init__(self, ctx: Any, layout: _Layout) -> None:
        self.__dict__["_ctx"], self.__dict__["_layout"] = ctx, layout

    @property
    def needs_input_grad(self) -> tuple[Any, ...]:
        return tuple(_joined(self._ctx.needs_input_grad, self._layout.arguments))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


def make_function(record: Record) -> Callable[[list[Any]], Any]:
    """A function of the operator's arguments that records its derivative."""

    def taken_apart(result: Any, layout: _Layout) -> Any:
        layout.single = not isinstance(result, tuple)
        listed = (result,) if layout.single else result
        layout.results = [len(r) if isinstance(r, list) else None for r in listed]
        return tuple(_flat(listed, layout.results))

    def together(flat: Any, layout: _Layout) -> Any:
        values = _joined(flat, layout.results)
        return values[0] if layout.single else tuple(values)

    class CustomOperator(facula.autograd.Function):
        @staticmethod
        def forward(*flat: Any) -> Any:
            *flat, layout = flat
            with facula.no_grad():
                return taken_apart(record.run(_joined(flat, layout.arguments)), layout)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            *flat, layout = inputs
            ctx._layout = layout
            if record.setup_context is None:
                return
            values = _joined(flat, layout.arguments)
            named = record.schema.arguments[record.positional :]
            only = {}
            if named:
                rest = values[record.positional :]
                pairs = zip(named, rest, strict=True)
                only = {"keyword_only_inputs": {a.name: v for a, v in pairs}}
            record.setup_context(
                _Context(ctx, layout),
                inputs=tuple(values[: record.positional]),
                output=together(output, layout),
                **only,
            )

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if record.backward is None:
                raise RuntimeError(
                    f"Trying to backward through {record.label} but no autograd formula was "
                    "registered. Please use register_autograd to add one."
                )
            layout = ctx._layout
            results = record.backward(_Context(ctx, layout), *_joined(grads, layout.results))
            results = list(results) if isinstance(results, tuple) else [results]
            if len(results) != record.positional:
                raise RuntimeError(
                    f"{record.label}: backward should return {record.positional} gradients, one "
                    f"for each argument, None where there is none; it returned {len(results)}"
                )
            results += [None] * (len(layout.arguments) - len(results))
            for i, count in enumerate(layout.arguments):
                if count is not None and results[i] is None:
                    results[i] = [None] * count
                elif count is not None and len(results[i]) != count:
                    raise RuntimeError(
                        f"{record.label}: backward returned {len(results[i])} gradients for the "
                        f"{count} tensors of '{record.schema.arguments[i].name}'"
                    )
            return (*_flat(results, layout.arguments), None)

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], *flat: Any) -> Any:
            *flat, layout = flat
            values = _joined(flat, layout.arguments)
            dims = _joined(in_dims[: len(flat)], layout.arguments)
            if record.vmap is None:
                result, out_dims = _one_by_one(record, info.batch_size, dims, values)
            else:
                positional = tuple(dims[: record.positional])
                result, out_dims = record.invoke(
                    lambda *a, **k: record.vmap(info, positional, *a, **k), values
                )
            taken = taken_apart(result, layout)
            listed = (out_dims,) if layout.single else out_dims
            places = [
                [d] * c if c is not None and not isinstance(d, (list, tuple)) else d
                for d, c in zip(listed, layout.results, strict=True)
            ]
            return taken, tuple(_flat(places, layout.results))

    CustomOperator.__name__ = CustomOperator.__qualname__ = record.label

    def call(values: list[Any]) -> Any:
        lists = [a.type.is_tensor_list for a in record.schema.arguments]
        sizes = [
            len(v) if is_list and v is not None else None
            for v, is_list in zip(values, lists, strict=True)
        ]
        layout = _Layout(sizes)
        return together(CustomOperator.apply(*_flat(values, sizes), layout), layout)

    return call


def _one_by_one(record: Record, size: int, dims: list[Any], values: list[Any]) -> tuple[Any, Any]:
    """Without a rule: the operator once for each element of the batch."""
    if size == 0:
        raise RuntimeError(
            f"vmap: {record.label} has no batching rule, so an empty batch tells nothing about its "
            "result; use register_vmap to add one"
        )

    def chosen(value: Any, dim: Any, i: int) -> Any:
        if isinstance(dim, (list, tuple)):
            return [chosen(v, d, i) for v, d in zip(value, dim, strict=True)]
        return value if dim is None else value.select(dim, i)

    each = [
        record.call([chosen(v, d, i) for v, d in zip(values, dims, strict=True)])
        for i in range(size)
    ]

    def stacked(items: Sequence[Any]) -> tuple[Any, Any]:
        first = items[0]
        if isinstance(first, (tuple, list)):
            pairs = [stacked(part) for part in zip(*items, strict=True)]
            return type(first)(p[0] for p in pairs), type(first)(p[1] for p in pairs)
        if isinstance(first, facula.Tensor):
            return facula.stack(list(items)), 0
        return first, None

    return stacked(each)
