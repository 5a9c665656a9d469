"""Activation checkpointing: compute again in backward instead of keeping what forward saved.

Two variants share this interface. The reentrant one hides the region from the tape, keeps its
arguments, and in backward runs it again and calls backward inside backward. The other, to be
preferred, records the region as usual but replaces every tensor that the tape saves by a
placeholder; the first placeholder that backward opens runs the region again and fills all of them.
"""

from __future__ import annotations

import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import facula
from facula._C import transforms as _transforms
from facula.utils._pytree import tree_map
from facula.utils._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

if TYPE_CHECKING:
    from facula import Tensor

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """Raised when a checkpointed region does not save the same tensors the second time."""


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple without their history, requiring grad as before.

    Example::

        >>> x = facula.ones(2, requires_grad=True) * 2
        >>> detach_variable((x, 3))[0].is_leaf
        True
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, facula.Tensor) else x
        for x in inputs
    )


def check_backward_validity(inputs: Any) -> None:
    """Warns when no tensor among the arguments requires grad, so that none will reach them.

    Example::

        >>> check_backward_validity([facula.ones(1, requires_grad=True)])
    """
    if not any(isinstance(x, facula.Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None")


class DefaultDeviceType:
    """The kind of device whose random state is meant when no tensor tells.

    Example::

        >>> from facula.utils.checkpoint import DefaultDeviceType
        >>> DefaultDeviceType.set_device_type("cpu")
        >>> DefaultDeviceType.get_device_type()
        'cpu'
        >>> DefaultDeviceType.set_device_type()
    """

    _chosen: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the kind of device."""
        if device not in ("cuda", "cpu", "meta"):
            raise ValueError(f"the device type must be 'cuda', 'cpu' or 'meta', got {device!r}")
        DefaultDeviceType._chosen = device

    @staticmethod
    def get_device_type() -> str:
        """What was set; otherwise CUDA where there is such a device, and the CPU elsewhere."""
        if DefaultDeviceType._chosen is not None:
            return DefaultDeviceType._chosen
        return "cuda" if facula.cuda.is_available() else "cpu"


def _infer_device_type(*args: Any) -> str:
    """The kind of device that the tensors lie on, beside the CPU: CUDA where there are several."""
    found: list[str] = []

    def note(value: Any) -> Any:
        if isinstance(value, facula.Tensor) and value.device.type != "cpu":
            found.append(value.device.type)
        return value

    tree_map(note, args)
    if not found:
        return DefaultDeviceType.get_device_type()
    if len(set(found)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of "
            f"devices, {sorted(set(found))}: random state is kept for one of them only, CUDA or "
            "else the first.",
            stacklevel=2,
        )
    return "cuda" if "cuda" in found else found[0]


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the CUDA devices that the tensors lie on, and the states of their generators.

    Example::

        >>> facula.utils.checkpoint.get_device_states(facula.ones(1))
        ([], [])
    """
    tensors = (arg for arg in args if isinstance(arg, facula.Tensor) and arg.device.type == "cuda")
    indices = sorted({tensor.get_device() for tensor in tensors})
    return indices, [facula.cuda.get_rng_state(index) for index in indices]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Sets what :func:`get_device_states` returned; only CUDA devices have states."""
    if device_type not in (None, "cuda", "cpu", "meta"):
        raise ValueError(f"device_type must be 'cuda', 'cpu' or 'meta', got {device_type!r}")
    if (device_type or DefaultDeviceType._chosen or "cuda") == "cuda":
        for device, state in zip(devices, states, strict=True):
            facula.cuda.set_rng_state(state, device)


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """The default ``context_fn``: nothing around forward, nothing around the recomputation.

    Example::

        >>> forward_context, recompute_context = noop_context_fn()
    """
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[
        [], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
    ] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    r"""Calls ``function(*args, **kwargs)`` and keeps none of the tensors that its backward needs.

    They are computed again when backward reaches the region, which trades time for memory. The
    gradients are the same as without checkpointing, provided that the function does the same
    thing when it is called a second time.

    Args:
        function: what to run. It may return anything that contains tensors.
        args: its arguments.
        use_reentrant: which variant to use; pass it explicitly. ``False`` is recommended: it works
            with :func:`facula.autograd.grad`, keyword arguments, nested structures, arguments
            none of which requires grad, and higher derivatives. ``True`` needs ``backward()``
            without ``inputs`` and at least one tensor argument that requires grad.
        context_fn: returns two context managers, for forward and for the recomputation. Not
            reentrant only.
        determinism_check: ``"default"`` compares shape, dtype and device of what was saved the
            first and the second time, ``"none"`` does not. Not reentrant only.
        debug: record where each tensor was saved, and show both lists in the error when they
            differ. Not reentrant only.
        preserve_rng_state: give the recomputation the random numbers of the first run.
        early_stop: end the recomputation as soon as the last needed tensor is there. Not
            reentrant only.
        kwargs: keyword arguments of the function. Not reentrant only.

    Example::

        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        >>> y.sum().backward()
    """
    if use_reentrant is None:
        warnings.warn(
            "facula.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "It defaults to True as in PyTorch; use_reentrant=False is recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "checkpoint: context_fn and debug are only supported with use_reentrant=False"
            )
        if kwargs:
            raise ValueError(
                f"Unexpected keyword arguments: {','.join(kwargs)}. checkpoint passes them to the "
                "function with use_reentrant=False only"
            )
        if facula.is_grad_enabled():
            check_backward_validity(args)
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            "checkpoint: determinism_check should be one of ['default', 'none'], but got "
            f"{determinism_check!r}"
        )
    # Inside of a function transform derivatives are the transform's, which keeps what they need.
    if not facula.is_grad_enabled() or _transforms.current_level():
        return function(*args, **kwargs)
    return _record(
        function,
        args,
        kwargs,
        context_fn=context_fn,
        check_metadata=determinism_check == "default",
        debug=debug if _settings.debug is None else _settings.debug,
        preserve_rng_state=preserve_rng_state,
        early_stop=early_stop if _settings.early_stop is None else _settings.early_stop,
    )


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    r"""Runs functions one after the other, all but the last segment of them checkpointed.

    Args:
        functions: a sequence of functions or modules, or an ``nn.Sequential``.
        segments: into how many pieces to cut the sequence.
        input: the argument of the first function.
        use_reentrant: as in :func:`checkpoint`.
        kwargs: ``preserve_rng_state``, as in :func:`checkpoint`.

    Example::

        >>> x = facula.tensor([1.0, 2.0], requires_grad=True)
        >>> layers = [facula.sin, facula.exp, facula.tanh]
        >>> checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    """
    if use_reentrant is None:
        warnings.warn(
            "facula.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. It defaults to True as in PyTorch; use_reentrant=False is "
            "recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            f"Unexpected keyword arguments: {','.join(kwargs)} in checkpoint_sequential"
        )
    layers = list(functions.children() if hasattr(functions, "children") else functions)
    if not 1 <= segments <= max(len(layers), 1):
        raise ValueError(
            f"checkpoint_sequential: segments must be between 1 and the number of functions "
            f"({len(layers)}), but got {segments}"
        )
    size = len(layers) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(
            _chain(layers[start : start + size]),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    # What the last segment saves is needed at once, so nothing is gained by dropping it.
    return _chain(layers[size * (segments - 1) :])(input)


def _chain(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


class _Settings(threading.local):
    """What the context managers below impose on all checkpoints of this thread."""

    early_stop: bool | None = None
    debug: bool | None = None
    group: GraphExecGroup | None = None


_settings = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Sets ``early_stop`` for all calls of :func:`checkpoint` inside the context.

    Example::

        >>> with set_checkpoint_early_stop(False):
        ...     y = checkpoint(facula.sin, facula.ones(2), use_reentrant=False)
    """
    before = _settings.early_stop
    _settings.early_stop = enable
    try:
        yield
    finally:
        _settings.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Sets ``debug`` for all calls of :func:`checkpoint` inside the context; None ends that.

    Example::

        >>> with set_checkpoint_debug_enabled(True):
        ...     y = checkpoint(facula.sin, facula.ones(2), use_reentrant=False)
    """
    before = _settings.debug
    _settings.debug = enabled
    try:
        yield
    finally:
        _settings.debug = before


class GraphExecGroup:
    """While active, a region is computed again once, for all calls of backward inside.

    They must go through different parts of the graph: a tensor that one of them has used is gone
    when another asks for it, unless the graph is retained.

    Example::

        >>> x = facula.ones(2, requires_grad=True)
        >>> a, b = checkpoint(lambda t: (t.sin(), t.cos()), x, use_reentrant=False)
        >>> with GraphExecGroup():
        ...     a.sum().backward()
        ...     b.sum().backward()
        >>> x.grad
        tensor([-0.3012, -0.3012])
    """

    def __init__(self) -> None:
        self._regions: list[_Region] = []

    def __enter__(self) -> GraphExecGroup:
        if _settings.group is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        _settings.group = self
        return self

    def __exit__(self, *exc: object) -> None:
        _settings.group = None
        for region in self._regions:
            region.recomputed.clear()
        self._regions.clear()


# -- The state that the second run needs ----------------------------------------------------------


class _Surroundings:
    """The random and autocast state at the first run, to be brought back for the second."""

    def __init__(self, args: Sequence[Any], preserve_rng_state: bool) -> None:
        devices = {arg.device for arg in args if isinstance(arg, facula.Tensor)}
        self._autocast = _autocast_settings({"cpu", *(device.type for device in devices)})
        self._preserve_rng_state = preserve_rng_state
        if preserve_rng_state:
            self._cpu_state = facula.get_rng_state()
            self._cuda_states = {
                device: facula.cuda.get_rng_state(device)
                for device in devices
                if device.type == "cuda"
            }

    @contextmanager
    def restored(self) -> Iterator[None]:
        with ExitStack() as stack:
            for settings in self._autocast:
                stack.enter_context(facula.autocast(**settings))
            if self._preserve_rng_state:
                stack.callback(facula.set_rng_state, facula.get_rng_state())
                facula.set_rng_state(self._cpu_state)
                for device, state in self._cuda_states.items():
                    current = facula.cuda.get_rng_state(device)
                    stack.callback(facula.cuda.set_rng_state, current, device)
                    facula.cuda.set_rng_state(state, device)
            yield


def _autocast_settings(device_types: set[str]) -> list[dict[str, Any]]:
    if not hasattr(facula, "autocast"):
        return []
    return [
        {
            "device_type": device_type,
            "enabled": facula.is_autocast_enabled(device_type),
            "dtype": facula.get_autocast_dtype(device_type),
            "cache_enabled": facula.is_autocast_cache_enabled(),
        }
        for device_type in sorted(device_types)
    ]


# -- The reentrant variant ------------------------------------------------------------------------


class CheckpointFunction(facula.autograd.Function):
    """Runs a function without a tape in forward, and with one inside of backward."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any
    ) -> Any:
        ctx.function = function
        ctx.surroundings = _Surroundings(args, preserve_rng_state)
        # Tensors go through save_for_backward, so that later changes in place are noticed.
        ctx.tensor_positions = [i for i, a in enumerate(args) if isinstance(a, facula.Tensor)]
        ctx.other_args = [None if isinstance(a, facula.Tensor) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_positions))
        with facula.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if not facula.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, facula.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(): the gradients of everything else "
                "in the region would be accumulated as well. Set use_reentrant=False, or call "
                ".backward() without inputs."
            )
        args = list(ctx.other_args)
        for position, tensor in zip(ctx.tensor_positions, ctx.saved_tensors, strict=True):
            args[position] = tensor.detach().requires_grad_(tensor.requires_grad)
        with ctx.surroundings.restored(), facula.enable_grad():
            outputs = ctx.function(*args)
        pairs = [
            (output, grad)
            for output, grad in zip(_as_tuple(outputs), grads, strict=True)
            if isinstance(output, facula.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "checkpoint: none of the outputs of the region require grad, so this backward is "
                "not necessary"
            )
        facula.autograd.backward(*map(list, zip(*pairs, strict=True)))
        return (
            None,
            None,
            *(arg.grad if isinstance(arg, facula.Tensor) else None for arg in args),
        )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


# -- The variant without reentry ------------------------------------------------------------------


class _Placeholder:
    """What the tape keeps instead of the tensor that it saved `index`-th in the region."""

    __slots__ = ("__weakref__", "index", "region")

    def __init__(self, region: _Region, index: int) -> None:
        self.region = region
        self.index = index


class _SavedTensor(NamedTuple):
    """What is remembered of a tensor that the tape saved."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any

    def __str__(self) -> str:
        return f"shape {self.shape}, {self.dtype}, {self.device}"


class _StopRecomputation(BaseException):
    """Leaves the second run once everything is there, past any `except Exception` on the way."""


class _SaveArguments(facula.autograd.Function):
    """Keeps tensors as a node does: checked for changes, and visible to an enclosing checkpoint.

    The latter is what makes nesting pay: the enclosing region drops the arguments of the inner one
    and computes them again.
    """

    @staticmethod
    def forward(ctx: Any, keeper: list[Any], anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        keeper.append(ctx)
        return anchor.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> NoReturn:
        raise AssertionError("this node only keeps tensors and is never part of a backward")


class _Arguments:
    """The arguments of a region, its tensors kept by a node."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._names = list(kwargs)
        values = [*args, *kwargs.values()]
        self._positions = [i for i, v in enumerate(values) if isinstance(v, facula.Tensor)]
        self._others = [None if isinstance(v, facula.Tensor) else v for v in values]
        keeper: list[Any] = []
        # A node exists only while its output does; and only for an input that requires grad.
        anchor = facula.zeros((), requires_grad=True)
        tensors = [values[i] for i in self._positions]
        self._output = _SaveArguments.apply(keeper, anchor, *tensors)
        (self._node,) = keeper

    def restored(self) -> tuple[list[Any], dict[str, Any]]:
        values = list(self._others)
        for position, tensor in zip(self._positions, self._node.saved_tensors, strict=True):
            values[position] = tensor
        split = len(values) - len(self._names)
        return values[:split], dict(zip(self._names, values[split:], strict=True))


class _Region:
    """One checkpointed call: how to run it again, and the tensors of the last such run.

    The tape owns the placeholders, and the placeholders own the region. The region refers to its
    placeholders weakly, so a recomputed tensor goes as soon as the tape releases its placeholder.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        arguments: _Arguments,
        surroundings: _Surroundings,
        check_metadata: bool,
        debug: bool,
        early_stop: bool,
    ) -> None:
        self.run = run
        self.arguments = arguments
        self.surroundings = surroundings
        self.check_metadata = check_metadata
        self.debug = debug
        self.early_stop = early_stop
        self.complete = False
        self.saved: list[_SavedTensor] = []
        self.places: list[str] = []
        self.placeholders: list[weakref.ref[_Placeholder]] = []
        self.recomputed: dict[int, Tensor] = {}
        # Several threads may go backward through one graph.
        self.lock = threading.RLock()

    def pack(self, tensor: Tensor) -> _Placeholder:
        index = len(self.saved)
        self.saved.append(_describe(tensor))
        if self.debug:
            self.places.append(_calling_line())
        placeholder = _Placeholder(self, index)
        recomputed = self.recomputed
        self.placeholders.append(weakref.ref(placeholder, lambda _: recomputed.pop(index, None)))
        return placeholder

    @staticmethod
    def unpack(placeholder: _Placeholder) -> Tensor:
        region = placeholder.region
        with region.lock:
            tensor = region.recomputed.get(placeholder.index)
            if tensor is None:
                region.recompute()
                tensor = region.recomputed[placeholder.index]
                region.forget_after_backward()
            return tensor

    def forget_after_backward(self) -> None:
        """Drops the tensors when this backward ends, for the sake of graphs that are retained."""
        if _settings.group is not None:
            _settings.group._regions.append(self)
            return
        try:
            facula.autograd.Variable._execution_engine.queue_callback(self.recomputed.clear)
        except RuntimeError:  # not in a backward: someone looks at what a node has saved
            self.recomputed.clear()

    def recompute(self) -> None:
        """Runs the function again and keeps the tensors that it saves, in their order."""
        again: list[_SavedTensor] = []
        places: list[str] = []

        def keep(tensor: Tensor) -> Tensor:
            index = len(again)
            again.append(_describe(tensor))
            if self.debug:
                places.append(_calling_line())
            # Detached: the tape itself knows where the tensor belongs in the graph.
            detached = tensor.detach()
            if index < len(self.saved) and self.placeholders[index]() is not None:
                self.recomputed[index] = detached
            if self.early_stop and len(again) == len(self.saved):
                raise _StopRecomputation
            return detached

        args, kwargs = self.arguments.restored()
        # Nothing to undo in the second hook: it serves a backward inside of the function.
        hooks = facula.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        stopping = suppress(_StopRecomputation)
        with stopping, self.surroundings.restored(), facula.enable_grad(), hooks:
            self.run(*args, **kwargs)
        self._compare(again, places)

    def _compare(self, again: list[_SavedTensor], places: list[str]) -> None:
        # While the first run is still inside of the function it may have saved less.
        if len(again) < len(self.saved) or (self.complete and len(again) > len(self.saved)):
            problem = (
                "a different number of tensors was saved during the original forward and "
                f"recomputation: {len(self.saved)} during forward, {len(again)} during "
                "recomputation"
            )
        else:
            differing = [
                f"  tensor {i}: {first} during forward, {second} during recomputation"
                for i, (first, second) in enumerate(zip(self.saved, again, strict=False))
                if first != second
            ]
            if not (differing and self.check_metadata):
                return
            problem = (
                "Recomputed values for the following tensors have different metadata than during "
                "the forward pass.\n" + "\n".join(differing)
            )
        self.recomputed.clear()
        if self.debug:
            problem += _listing("forward", self.saved, self.places)
            problem += _listing("recomputation", again, places)
        else:
            problem += ".\nPass debug=True to checkpoint to see where each tensor was saved."
        raise CheckpointError(
            f"facula.utils.checkpoint: {problem}\nThe function has to do the same both times: look "
            "for state that changed in between, such as a counter, a cache, a global or a module's "
            "training mode."
        )


def _describe(tensor: Tensor) -> _SavedTensor:
    return _SavedTensor(tuple(tensor.shape), tensor.dtype, tensor.device)


def _calling_line() -> str:
    """The innermost line on the stack outside of this file."""
    frames = traceback.extract_stack()
    frame = next(frame for frame in reversed(frames) if frame.filename != __file__)
    return f"{frame.filename}:{frame.lineno}: {frame.line}"


def _listing(title: str, saved: list[_SavedTensor], places: list[str]) -> str:
    lines = [f"\nSaved during {title}:"]
    for i, (tensor, place) in enumerate(zip(saved, places, strict=True)):
        lines.append(f"  tensor {i}: {tensor}, at {place}")
    return "\n".join(lines)


def _record(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]],
    check_metadata: bool,
    debug: bool,
    preserve_rng_state: bool,
    early_stop: bool,
) -> Any:
    forward_context, recompute_context = context_fn()

    def run_again(*args: Any, **kwargs: Any) -> None:
        with recompute_context:
            function(*args, **kwargs)

    region = _Region(
        run_again,
        _Arguments(args, kwargs),
        _Surroundings([*args, *kwargs.values()], preserve_rng_state),
        check_metadata,
        debug,
        early_stop,
    )
    hooks = facula.autograd.graph.saved_tensors_hooks(region.pack, region.unpack)
    with hooks, forward_context:
        result = function(*args, **kwargs)
    region.complete = True
    return result
