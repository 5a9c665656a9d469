"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import facula

_MISSING = object()


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers in place of its own.

    What the module assigns to its parameters and buffers during the call is put into the
    dictionaries; the module is left as it was.

    Args:
        module: the module to call.
        parameter_and_buffer_dicts: tensors by name, as in ``named_parameters()``, or several such
            dictionaries without a name in common.
        args: the arguments of the call: a tuple, or a single one.
        kwargs: the keyword arguments of the call.
        tie_weights: a tensor that the module has under several names is replaced under all of
            them when one is given; giving different tensors for them raises.
        strict: raise unless the names are exactly those of the module.

    Returns:
        What the module returns.

    Example::

        >>> class Scale(facula.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = facula.nn.Parameter(facula.tensor(1.))
        ...     def forward(self, x):
        ...         return self.factor * x
        >>> module = Scale()
        >>> facula.func.functional_call(module, {"factor": facula.tensor(3.)}, facula.ones(2))
        tensor([3., 3.])
        >>> module(facula.ones(2))
        tensor([1., 1.], grad_fn=<MulBackward0>)
    """
    tensors = _joined(parameter_and_buffer_dicts)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrized(module, tensors, tie_weights, strict) as after:
        result = module(*args, **(kwargs or {}))
    dicts = parameter_and_buffer_dicts
    for given in (dicts,) if isinstance(dicts, dict) else dicts:
        given.update({name: after[name] for name in given if after[name] is not _MISSING})
    return result


def _joined(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [name for name, n in Counter(k for d in dicts for k in d).items() if n > 1]
    if repeated:
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return {name: tensor for d in dicts for name, tensor in d.items()}


@contextlib.contextmanager
def _reparametrized(
    module: Any, tensors: dict[str, Any], tie_weights: bool, strict: bool
) -> Iterator[dict[str, Any]]:
    """Puts the tensors into the module; gives a dict that holds what is there at the end."""
    if tie_weights:
        tensors = _with_tied_names(module, tensors)
    if strict:
        _check_names(module, tensors)
    for name, tensor in tensors.items():
        if tensor is not None and not isinstance(tensor, facula.Tensor):
            raise TypeError(f"{tensor} is not an instance of facula.Tensor (parameter {name!r})")
    own: dict[str, Any] = {}
    after: dict[str, Any] = {}
    try:
        for name, tensor in tensors.items():
            own[name] = _swap(module, name, tensor)
        yield after
    finally:
        for name, tensor in own.items():
            after[name] = _swap(module, name, tensor)


def _all_tensors(module: Any) -> dict[str, Any]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied_names(module: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors, each under all the names that the module has for the one it replaces."""
    names: dict[int, list[str]] = {}
    for name, tensor in _all_tensors(module).items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(tensors)
    for tied in names.values():
        given = [name for name in tied if name in tensors]
        if not given:
            continue
        if any(tensors[name] is not tensors[given[0]] for name in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. "
                "Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(tied, tensors[given[0]]))
    return result


def _check_names(module: Any, tensors: dict[str, Any]) -> None:
    names = _all_tensors(module)
    unexpected = sorted(set(tensors) - set(names))
    missing = sorted(set(names) - set(tensors))
    lines = []
    if unexpected:
        lines.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        lines.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if lines:
        kind = type(module).__name__
        raise RuntimeError(f"Error(s) in reparametrizing for {kind}:\n\t" + "\n\t".join(lines))


def _swap(module: Any, name: str, tensor: Any) -> Any:
    """Puts a tensor (or with _MISSING nothing) under a dotted name and gives what was there."""
    *path, last = name.split(".")
    for part in path:
        try:
            module = module._modules[part]
        except KeyError:
            raise AttributeError(
                f"functional_call: {type(module).__name__} has no submodule {part!r} for the "
                f"parameter {name!r}"
            ) from None
    for members in (module._parameters, module._buffers):
        if last in members:
            before = members[last]
            if tensor is _MISSING:
                del members[last]
            else:
                members[last] = tensor
            return before
    before = getattr(module, last, _MISSING)
    if tensor is not _MISSING:
        setattr(module, last, tensor)
    elif before is not _MISSING:
        delattr(module, last)
    return before


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one class, stacked by name.

    With :func:`functional_call` and :func:`vmap` they run as one ensemble. The stacked parameters
    are new leaves, which an optimizer can take.

    Args:
        models: modules that are alike in everything but the values of their tensors.

    Returns:
        ``(params, buffers)``, two dictionaries.

    Example::

        >>> class Scale(facula.nn.Module):
        ...     def __init__(self, factor):
        ...         super().__init__()
        ...         self.factor = facula.nn.Parameter(facula.tensor(factor))
        >>> params, buffers = facula.func.stack_module_state([Scale(1.), Scale(2.)])
        >>> params
        {'factor': tensor([1., 2.], requires_grad=True)}
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(m.training) for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = _stacked([dict(m.named_parameters()) for m in models])
    buffers = _stacked([dict(m.named_buffers()) for m in models])
    return params, buffers


def _stacked(states: list[dict[str, Any]]) -> dict[str, Any]:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = facula.stack(tensors)
        result[name] = stacked.detach().requires_grad_() if tensors[0].requires_grad else stacked
    return result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Takes the running statistics from all batch norms of a module, in place, and returns it.

    ``vmap`` cannot update statistics that its elements share.

    Args:
        root: the module.

    Example::

        >>> m = facula.nn.Sequential(facula.nn.BatchNorm1d(2))
        >>> facula.func.replace_all_batch_norm_modules_(m)[0].running_mean is None
        True
    """
    from facula.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
