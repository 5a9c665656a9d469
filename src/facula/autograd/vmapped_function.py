"""generate_vmap_rule=True: a Function of batches from a Function of single examples."""

from __future__ import annotations

from typing import Any

import facula
from facula import _C
from facula.func.batching import add_dims, split_batched
from facula.func.levels import entered
from facula.utils._pytree import tree_flatten

_transforms = _C.transforms


def vmapped(cls: Any, in_dims: tuple[Any, ...], info: Any) -> Any:
    """A Function that runs the methods of ``cls`` under vmap.

    After ``apply``, its ``out_dims`` holds where the batch is in the outputs, in their structure.
    It serves for one ``apply`` only, which runs ``forward`` once.
    """

    def level() -> Any:
        return entered("vmap", info.batch_size, info.randomness)

    def batched(tree: Any, dims: Any, level: int) -> Any:
        flat, spec = tree_flatten(tree)
        return spec.unflatten(add_dims(flat, tree_flatten(dims)[0], level))

    def unbatched(tree: Any, level: int) -> tuple[Any, Any]:
        flat, spec = tree_flatten(tree)
        values, dims = split_batched(flat, level)
        return spec.unflatten(values), spec.unflatten(dims)

    class Vmapped(facula.autograd.Function):
        generate_vmap_rule = True
        out_dims: Any = None

        @staticmethod
        def forward(*args: Any) -> Any:
            with level() as inner:
                output, Vmapped.out_dims = unbatched(
                    cls.forward(*batched(args, in_dims, inner)), inner
                )
            return output

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            # Under vmap, so that what it notes of its arguments, shapes above all, is what
            # backward finds there.
            with level() as inner:
                seen = (
                    batched(inputs, in_dims, inner),
                    batched(output, Vmapped.out_dims, inner),
                )
                proxy = _SetupContext(ctx, inner, seen, (inputs, output))
                cls.setup_context(proxy, *seen)
                shapes = [x.shape if isinstance(x, _C.Tensor) else None for x in seen[0]]
            notes = ctx.__dict__.setdefault("_vmapped", {})
            notes[Vmapped] = (proxy._dims, shapes)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            dims, shapes = ctx._vmapped[Vmapped]
            with level() as inner:
                saved = add_dims(list(ctx.saved_tensors), dims["backward"], inner)
                grad_dims = _leaf_dims(Vmapped.out_dims, grads)
                results = cls.backward(
                    _ReadContext(ctx, saved), *add_dims(list(grads), grad_dims, inner)
                )
                if not isinstance(results, tuple):
                    results = (results,)
                fitted = [
                    r if r is None or s is None or r.shape == s else r.sum_to_size(s)
                    for r, s in zip(results, shapes, strict=False)
                ]
            return tuple(
                _gradient(r, d if isinstance(d, int) else None, inner, info.batch_size)
                for r, d in zip(fitted, in_dims, strict=False)
            )

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            dims, _ = ctx._vmapped[Vmapped]
            with level() as inner:
                saved = add_dims(list(ctx.saved_tensors), dims["forward"], inner)
                tangent_dims = [
                    d if isinstance(t, _C.Tensor) else None
                    for t, d in zip(tangents, in_dims, strict=True)
                ]
                results = cls.jvp(
                    _ReadContext(ctx, saved), *add_dims(list(tangents), tangent_dims, inner)
                )
            single = not isinstance(results, (tuple, list))
            results = [results] if single else list(results)
            out_dims = _leaf_dims(Vmapped.out_dims, results)
            placed = [
                None if r is None else _tangent(r, d, inner, info.batch_size)
                for r, d in zip(results, out_dims, strict=True)
            ]
            return placed[0] if single else tuple(placed)

    Vmapped.__name__ = Vmapped.__qualname__ = f"Vmapped{cls.__name__}"
    return Vmapped


def _leaf_dims(out_dims: Any, values: Any) -> list[int | None]:
    """The dimension for each gradient or tangent of an output; None where that is None."""
    dims = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims]
    dims += [None] * (len(values) - len(dims))
    return [
        d if isinstance(d, int) and isinstance(x, _C.Tensor) else None
        for d, x in zip(dims, values, strict=False)
    ]


def _gradient(gradient: Any, dim: int | None, level: int, batch_size: int) -> Any:
    """The gradient of an input whose batch is at `dim`, or that all entries of the batch share."""
    if gradient is None:
        return None
    if dim is not None:
        return _transforms.remove_batch_dim(gradient, level, batch_size, dim)
    if _transforms.level_of(gradient) != level:
        return gradient
    return _transforms.remove_batch_dim(gradient, level, batch_size, 0).sum(0)


def _tangent(tangent: Any, dim: int | None, level: int, batch_size: int) -> Any:
    if dim is not None:
        return _transforms.remove_batch_dim(tangent, level, batch_size, dim)
    if _transforms.level_of(tangent) == level:
        raise RuntimeError(
            "autograd.Function: jvp returned a tangent that differs within the batch for an output "
            "that does not"
        )
    return tangent


class _Proxy:
    """Gives the attributes of a ctx and sets them there."""

    def __init__(self, ctx: Any) -> None:
        self.__dict__["_ctx"] = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx, name, value)


class _SetupContext(_Proxy):
    """Keeps the values behind batched tensors, and notes where their batches are."""

    def __init__(self, ctx: Any, level: int, seen: Any, originals: Any) -> None:
        super().__init__(ctx)
        pairs = zip(tree_flatten(seen)[0], tree_flatten(originals)[0], strict=True)
        self.__dict__["_level"] = level
        self.__dict__["_seen"] = seen  # alive, so that no id is used again
        self.__dict__["_original"] = {id(x): original for x, original in pairs}
        self.__dict__["_dims"] = {"backward": [], "forward": []}

    def _split(self, tensors: tuple[Any, ...], purpose: str) -> list[Any]:
        values, self._dims[purpose] = split_batched(list(tensors), self._level)
        # The objects themselves, so that ctx knows its inputs and outputs again.
        return [self._original.get(id(x), v) for x, v in zip(tensors, values, strict=True)]

    def save_for_backward(self, *tensors: Any) -> None:
        self._ctx.save_for_backward(*self._split(tensors, "backward"))

    def save_for_forward(self, *tensors: Any) -> None:
        self._ctx.save_for_forward(*self._split(tensors, "forward"))

    def mark_dirty(self, *args: Any) -> None:
        self._ctx.mark_dirty(*(self._original.get(id(x), x) for x in args))

    def mark_non_differentiable(self, *args: Any) -> None:
        self._ctx.mark_non_differentiable(*(self._original.get(id(x), x) for x in args))


class _ReadContext(_Proxy):
    """A ctx with other saved tensors."""

    def __init__(self, ctx: Any, saved: list[Any]) -> None:
        super().__init__(ctx)
        self.__dict__["saved_tensors"] = tuple(saved)
