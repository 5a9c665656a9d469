"""vmap: a function of single examples becomes one of batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import facula
from facula import _C
from facula.func.levels import entered
from facula.utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_iter

_transforms = _C.transforms

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps ``func`` over a dimension of its inputs, all entries at once.

    ``func`` is written for one entry: inside of it the mapped dimension does not exist. It may
    take and return any tree of tensors. Values that are not mapped, such as those with the
    dimension None, keyword arguments and what the function closes over, are the same for every
    entry. vmap nests, and goes with the other transforms in any order.

    Args:
        func: takes one or more arguments, at least one of them with a tensor, and returns tensors.
        in_dims: the dimension of the inputs to map over: an int for all of them, or a tuple with
            one entry per argument, each an int, None or a tree of those for the leaves of it.
        out_dims: where the mapped dimension goes in the outputs: an int, or a tree of ints in the
            structure of the outputs. None returns an output as it is; it may not depend on a
            mapped input.
        randomness: what random operators do inside: ``"error"`` raises, ``"different"`` draws
            anew for every entry, ``"same"`` draws once for all.
        chunk_size: compute at most so many entries at a time, to save memory.

    Example::

        >>> x, y = facula.tensor([[1., 2.], [3., 4.]]), facula.tensor([[1., 1.], [2., 2.]])
        >>> facula.vmap(facula.dot)(x, y)
        tensor([ 3., 14.])
        >>> facula.vmap(facula.dot, in_dims=(1, None))(x, facula.tensor([1., 10.]))
        tensor([31., 42.])

    Gradients of single examples::

        >>> def loss(weight, x):
        ...     return (weight * x).sum() ** 2
        >>> weight = facula.tensor([1., 2.])
        >>> facula.vmap(facula.func.grad(loss), in_dims=(None, 0))(weight, x)
        tensor([[10., 20.],
                [66., 88.]])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "vmap: Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        flat_args, spec = tree_flatten(args)
        dims = _flat_in_dims(in_dims, args, flat_args, spec, func)
        size = _batch_size(dims, flat_args)

        def run(count: int, flat: list[Any]) -> tuple[list[Any], list[Any], TreeSpec]:
            with entered("vmap", count, randomness) as level:
                inputs = spec.unflatten(add_dims(flat, dims, level))
                return _remove_dims(func(*inputs, **kwargs), out_dims, level, count, func)

        if chunk_size is None or chunk_size >= size:
            outputs, _, out_spec = run(size, flat_args)
        else:
            outputs, out_spec = _run_in_chunks(run, flat_args, dims, size, chunk_size, randomness)
        return out_spec.unflatten(outputs)

    return mapped


def name_of(func: Any) -> str:
    """How messages call a function."""
    if hasattr(func, "__name__"):
        return str(func.__name__)
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return repr(func)


# ---- inputs


def _flat_in_dims(
    in_dims: Any, args: tuple[Any, ...], flat_args: list[Any], spec: TreeSpec, func: Any
) -> list[int | None]:
    """The dimension of each leaf of the arguments, counted from the front; None: not mapped."""

    def refuse(message: str) -> NoReturn:
        raise ValueError(f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): {message}")

    if not isinstance(in_dims, (int, tuple)):
        refuse(
            "expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
            f"of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        refuse(
            "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (arg, dim) in enumerate(zip(flat_args, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            refuse(
                f"Got in_dim={dim} for an input but in_dim must be either an integer dimension "
                "or None."
            )
        if not isinstance(arg, _C.Tensor):
            refuse(
                f"Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -arg.dim() <= dim < arg.dim():
            refuse(
                f"Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{arg.dim()} so expected in_dim to satisfy -{arg.dim()} <= in_dim < {arg.dim()}."
            )
        dims[i] = dim % arg.dim()
    return dims


def _batch_size(dims: list[int | None], flat_args: list[Any]) -> int:
    sizes = [x.shape[d] for d, x in zip(dims, flat_args, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def add_dims(flat: list[Any], dims: list[int | None], level: int) -> list[Any]:
    """The leaves as a function under the level sees them: without their mapped dimensions."""
    return [
        x if d is None else _transforms.add_batch_dim(x, d, level)
        for x, d in zip(flat, dims, strict=True)
    ]


# ---- outputs


def _check_out_dims(out_dims: Any, func: Any) -> None:
    if isinstance(out_dims, int):
        return
    for dim in tree_iter(out_dims):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, "
                "None or a python collection of ints representing where in the outputs the "
                "vmapped dimension should appear."
            )


def _remove_dims(
    outputs: Any, out_dims: Any, level: int, size: int, func: Any
) -> tuple[list[Any], list[int | None], TreeSpec]:
    """The leaves of the outputs with their mapped dimension, these dimensions, the structure."""
    flat, spec = tree_flatten(outputs)
    # A single tensor also goes with a tuple of one dimension.
    single = isinstance(outputs, _C.Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = list(out_dims) if single else _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            "compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return (
        [_remove_dim(x, d, level, size, func) for x, d in zip(flat, dims, strict=True)],
        dims,
        spec,
    )


def _remove_dim(output: Any, dim: int | None, level: int, size: int, func: Any) -> Any:
    is_tensor = isinstance(output, _C.Tensor)
    if dim is None:
        if is_tensor and _transforms.level_of(output) == level:
            raise ValueError(
                f"vmap({name_of(func)}, ...): `{name_of(func)}` can not return a BatchedTensor "
                "when out_dim is None"
            )
        return output
    if not is_tensor:
        raise ValueError(
            f"vmap({name_of(func)}, ...): `{name_of(func)}` must only return Tensors, got type "
            f"{type(output)}. Did you mean to set out_dims= to None for output?"
        )
    return _transforms.remove_batch_dim(output, level, size, dim)


def split_batched(flat: list[Any], level: int) -> tuple[list[Any], list[int | None]]:
    """Leaves of a function under the level, each as its value and the mapped dimension in it."""
    values, dims = [], []
    for x in flat:
        batched = isinstance(x, _C.Tensor) and _transforms.level_of(x) == level
        values.append(_transforms.value_of(x) if batched else x)
        dims.append(_transforms.batch_dim_of(x) if batched else None)
    return values, dims


# ---- chunks


def _run_in_chunks(
    run: Callable[[int, list[Any]], tuple[list[Any], list[int | None], TreeSpec]],
    flat_args: list[Any],
    dims: list[int | None],
    size: int,
    chunk_size: int,
    randomness: str,
) -> tuple[list[Any], TreeSpec]:
    random_state = facula.get_rng_state() if randomness == "same" else None
    pieces = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        if random_state is not None:
            facula.set_rng_state(random_state)
        chunk = [
            x if d is None else x.narrow(d, start, count)
            for x, d in zip(flat_args, dims, strict=True)
        ]
        outputs, out_dims, spec = run(count, chunk)
        pieces.append(outputs)
    joined = [
        column[0] if d is None else facula.cat(column, dim=d)
        for column, d in zip(zip(*pieces, strict=True), out_dims, strict=True)
    ]
    return joined, spec
