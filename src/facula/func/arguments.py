"""Which arguments a transform differentiates by, and checks that the transforms share."""

from __future__ import annotations

from typing import Any

from facula import _C
from facula.utils._pytree import tree_leaves

ArgNums = int | tuple[int, ...]


def positions_of(argnums: ArgNums, count: int) -> ArgNums:
    """``argnums`` counted from the front, for a call with ``count`` positional arguments."""

    def checked(argnum: Any) -> int:
        if not isinstance(argnum, int):
            raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
        if not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
        return argnum % count

    if isinstance(argnums, int):
        return checked(argnums)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    positions = tuple(map(checked, argnums))
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {positions}")
    return positions


def select(args: tuple[Any, ...], positions: ArgNums) -> Any:
    """The arguments at the positions: one, or a tuple of them."""
    if isinstance(positions, int):
        return args[positions]
    return tuple(args[i] for i in positions)


def replace(args: tuple[Any, ...], positions: ArgNums, chosen: Any) -> tuple[Any, ...]:
    """The arguments with those at the positions replaced; the reverse of ``select``."""
    result = list(args)
    if isinstance(positions, int):
        result[positions] = chosen
    else:
        for i, value in zip(positions, chosen, strict=True):
            result[i] = value
    return tuple(result)


def split_aux(output: Any, has_aux: bool, api: str) -> tuple[Any, Any]:
    """``(output, aux)`` of a function that returns both, ``(output, None)`` of any other."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def check_tensor_outputs(flat: list[Any], api: str) -> None:
    """Raises unless a function returned at least one tensor and nothing else."""
    if not flat or flat == [None]:
        raise RuntimeError(
            f"{api}: Expected f to be a function that has non-empty output (got output = {flat})"
        )
    for output in flat:
        if not isinstance(output, _C.Tensor):
            raise RuntimeError(
                f"{api}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(output)}"
            )


def check_tensors(flat: list[Any], api: str, name: str) -> None:
    """Raises unless a list of leaves holds at least one tensor and nothing else."""
    if not flat:
        raise RuntimeError(f"{api}: Expected {name} to contain at least one Tensor.")
    for value in flat:
        if not isinstance(value, _C.Tensor):
            raise RuntimeError(f"{api}: Expected {name} to only contain Tensors, got {type(value)}")


def check_real(api: str, tree: Any, is_input: bool) -> None:
    """Raises when there is a complex tensor among the leaves."""
    for i, leaf in enumerate(tree_leaves(tree)):
        if isinstance(leaf, _C.Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{api}: Expected all {'inputs' if is_input else 'outputs'} to be real but "
                f"received complex tensor at flattened input idx: {i}"
            )
