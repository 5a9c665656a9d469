"""Looking into the graph: nodes, gradient edges, saved tensors."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from facula import _C

__all__ = [
    "GradientEdge",
    "InputMetadata",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

Node = _C.Node


class GradientEdge(NamedTuple):
    """A node and which of its inputs a gradient enters."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # PyTorch keeps the graph alive with it; the node does so here


class InputMetadata(NamedTuple):
    """What a gradient that enters a node looks like; see ``Node._input_metadata``.

    Example::

        >>> y = facula.ones(2, requires_grad=True) * 2
        >>> y.grad_fn._input_metadata[0].shape
        facula.Size([2])
    """

    dtype: Any
    device: Any
    shape: Any
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class SavedTensor:
    """A tensor that a node keeps for its derivative, such as ``node._raw_saved_self``.

    Example::

        >>> x = facula.tensor([1., 2.], requires_grad=True)
        >>> y = x * x
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), facula.tensor)
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, node: Any, index: int) -> None:
        self._node, self._index = node, index

    def register_hooks(
        self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any], /
    ) -> None:
        """Keeps ``pack_hook(tensor)`` in its place, which ``unpack_hook`` turns back."""
        with saved_tensors_hooks(pack_hook, unpack_hook):
            self._node._pack_again(self._index)


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Where the gradient of a tensor goes.

    Example::

        >>> x = facula.ones(1, requires_grad=True)
        >>> facula.autograd.graph.get_gradient_edge(x * 2).output_nr
        0
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Any) -> None:
    """Tells autograd that memory was written behind its back.

    Args:
        tensor: a tensor, or several of them.

    Example::

        >>> x = facula.ones(2)
        >>> facula.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for t in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _C._increment_version(t)


class saved_tensors_hooks:
    """Replaces what the graph saves: ``pack(tensor)`` goes in, ``unpack(packed)`` comes out.

    Example::

        >>> x = facula.tensor([2.], requires_grad=True)
        >>> with facula.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), facula.tensor):
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in host memory until backward needs them.

    Example::

        >>> x = facula.tensor([2.], requires_grad=True)
        >>> with facula.autograd.graph.save_on_cpu():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        tensor([4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            return tensor.device, tensor.cpu().clone() if tensor.is_cpu else tensor.cpu()

        def unpack(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Entering ``saved_tensors_hooks`` inside raises with this message."""
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before or None)


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., None], *, mode: str = "all"
) -> Any:
    """Calls ``fn`` when the gradients of all (or of any) of the tensors have been computed.

    Example::

        >>> a, b = facula.ones(1, requires_grad=True), facula.ones(1, requires_grad=True)
        >>> handle = facula.autograd.graph.register_multi_grad_hook([a, b], lambda g: print(g))
        >>> (a * 2 + b * 3).backward()
        [tensor([2.]), tensor([3.])]
    """
    import threading

    if mode not in ("all", "any"):
        raise ValueError(f"mode must be 'all' or 'any', got {mode!r}")
    lock = threading.Lock()
    nodes = [get_gradient_edge(t).node for t in tensors]
    # By pass: the gradients so far and how many are still to come.
    passes: dict[int, list[Any]] = {}

    def make(i: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            number = _C._current_graph_task_id()
            with lock:
                first = number not in passes
                if first:
                    expected = sum(_C._will_engine_execute_node(n) for n in nodes)
                    passes[number] = [[None] * len(tensors), expected]
                state = passes[number]
                state[0][i] = grad
                state[1] -= 1
                last = state[1] == 0
                if last:
                    del passes[number]
            if mode == "any" and first:
                fn(grad)
            elif mode == "all" and last:
                fn(state[0])

        return hook

    handles = [t.register_hook(make(i)) for i, t in enumerate(tensors)]

    class Handle:
        def remove(self) -> None:
            for h in handles:
                h.remove()

        def __enter__(self) -> Handle:
            return self

        def __exit__(self, *exc: object) -> None:
            self.remove()

    return Handle()


class _Kept:
    """A tensor that the tape has saved: the memory itself, until somebody writes to it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


class _SavedTensors:
    """Who keeps which memory, for :func:`allow_mutation_on_saved_tensors`."""

    def __init__(self) -> None:
        self.keepers: dict[int, weakref.WeakSet[_Kept]] = {}

    def pack(self, tensor: Any) -> _Kept:
        kept = _Kept(tensor.detach())
        memory = tensor.untyped_storage().data_ptr()
        self.keepers.setdefault(memory, weakref.WeakSet()).add(kept)
        return kept

    @staticmethod
    def unpack(kept: _Kept) -> Any:
        return kept.tensor

    def before_write(self, destinations: tuple[Any, ...]) -> None:
        for tensor in destinations:
            if tensor is None:
                continue
            for kept in self.keepers.pop(tensor.untyped_storage().data_ptr(), ()):
                kept.tensor = kept.tensor.clone()

    def clear(self) -> None:
        """Forgets whose memory is whose; what was copied stays."""
        self.keepers.clear()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Inside, tensors that the tape has saved may be written to: what backward needs is copied
    before the first write. Both the saving and the write have to be inside.

    Example::

        >>> with facula.autograd.graph.allow_mutation_on_saved_tensors():
        ...     x = facula.ones(2, requires_grad=True)
        ...     y = x.clone()
        ...     out = (y ** 2).sum()
        ...     _ = y.sin_()
        ...     out.backward()
        >>> x.grad
        tensor([2., 2.])
    """
    saved = _SavedTensors()
    outer = _C._set_kernel_hook(None, None, None)
    _C._set_kernel_hook(*outer[:2], saved.before_write)
    try:
        with saved_tensors_hooks(saved.pack, saved.unpack):
            yield saved
    finally:
        _C._set_kernel_hook(*outer)
        saved.clear()
