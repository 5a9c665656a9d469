"""CUDA graphs: work that is recorded once and launched as a whole.

A graph replays the very same kernels on the very same memory. So inputs are copied into the tensors
that were used in the capture, and results are read from those that it returned.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import facula
from facula import _C
from facula.cuda.streams import Stream, StreamContext
from facula.utils import _pytree as pytree

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def is_current_stream_capturing() -> bool:
    """True while the work of the current stream becomes a graph; False without a device."""
    if not _C._cuda_is_available():
        return False
    index = _C._cuda_current_device()
    return _C._cuda_stream_is_capturing(index, _C._cuda_stream_current(index))


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that several graphs may share, if they are replayed one after another."""
    return (_C._cuda_new_memory_pool(), 0)


class CUDAGraph:
    """A recording of the work of a stream.

    Args:
        keep_graph: the recording is kept as it is; ``instantiate`` or the first ``replay`` makes it
            executable.

    Example::

        >>> if facula.cuda.is_available():
        ...     x = facula.zeros(3, device="cuda")
        ...     g = facula.cuda.CUDAGraph()
        ...     with facula.cuda.graph(g):
        ...         y = x + 1
        ...     _ = x.fill_(4)
        ...     g.replay()
        ...     assert y.tolist() == [5.0, 5.0, 5.0]
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = _C._CudaGraph(bool(keep_graph))

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Starts to record the current stream, which must not be the default one."""
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, "
                f"got {capture_error_mode}"
            )
        self._graph.begin(0 if pool is None else pool[0], _MODES[capture_error_mode])

    def capture_end(self) -> None:
        """Ends the recording."""
        self._graph.end()

    def instantiate(self) -> None:
        """Makes a kept recording executable."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Queues the recorded work on the current stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Forgets the recording and lets go of its memory."""
        self._graph.reset()

    def register_generator_state(self, generator: Any) -> None:
        """Accepted for PyTorch's sake: a generator that is drawn from in a recording belongs to it.

        Every replay draws new numbers, and takes the generator as far as the same work without a
        graph would.
        """
        if not isinstance(generator, facula.Generator) or generator.device.type != "cuda":
            raise TypeError(f"expected a generator of a CUDA device, got {generator!r}")

    def pool(self) -> tuple[int, int]:
        """The memory of this graph, to be given to others that shall share it."""
        return (self._graph.pool(), 0)

    def enable_debug_mode(self) -> None:
        """Accepted for PyTorch's sake; use ``keep_graph=True`` to be able to dump."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the recording as a DOT file; it must have been kept."""
        self._graph.write_dot(str(debug_path))


class graph:
    """Records the work inside ``with`` into a :class:`CUDAGraph`.

    Args:
        cuda_graph: where to.
        pool: memory of another graph to share, from ``pool()`` or :func:`graph_pool_handle`.
        stream: which stream to record; one of its own by default.
        capture_error_mode: what other threads may do in the meantime, as CUDA names it.
        enable_annotations: accepted; graphs carry no annotations.
    """

    _streams: dict[int, Stream] = {}  # of each device

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
    ) -> None:
        if stream is None:
            device = _C._cuda_current_device()
            if device not in graph._streams:
                graph._streams[device] = Stream(device)
            stream = graph._streams[device]
        self.cuda_graph, self.pool, self.mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        if is_current_stream_capturing() or self.capture_stream.is_capturing():
            # Found here, since waiting for the device would break the other capture.
            raise RuntimeError("captures cannot be nested: this stream is being captured already")
        facula.cuda.synchronize(self.capture_stream.device_index)
        gc.collect()
        facula.cuda.empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.reset()
        except BaseException:
            if kind is None:
                raise  # else the body's own error is the one to be heard of
        finally:
            self._context.__exit__()


def _tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, facula.Tensor)]


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Modules or functions whose forward and backward passes replay graphs.

    Args:
        callables: one, or a tuple of them in the order in which they will be called.
        sample_args: a tuple of tensors (for a tuple of callables: one tuple for each) with the
            shapes, dtypes and ``requires_grad`` of real arguments. What is replayed always works
            on memory of this shape. Calls may name these arguments.
        num_warmup_iters: calls before the recording, on a stream of their own.
        allow_unused_input: whether inputs may have no influence on the outputs.
        pool: memory to share, from :func:`graph_pool_handle`.

    Modules are changed in place (their ``forward`` replays while ``training`` is what it was) and
    returned; functions are returned wrapped.
    """
    if facula.is_autocast_enabled("cuda") and facula.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set "
            "`cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    arguments = (sample_args,) if single else sample_args
    if len(functions) != len(arguments):
        raise ValueError(f"{len(functions)} callables, but {len(arguments)} tuples of sample_args")
    pool = graph_pool_handle() if pool is None else pool
    work = [
        _Graphed(f, tuple(a), allow_unused_input) for f, a in zip(functions, arguments, strict=True)
    ]
    facula.cuda.synchronize()
    with StreamContext(Stream()):
        for piece in work:
            for _ in range(num_warmup_iters):
                piece.warm_up()
    facula.cuda.synchronize()
    for piece in work:
        piece.capture_forward(pool)
    for piece in reversed(work):  # the order in which a backward pass frees and reuses memory
        piece.capture_backward(pool)
    made = tuple(piece.callable() for piece in work)
    return made[0] if single else made


class _Graphed:
    """One callable with its forward and its backward graph and the tensors that these use."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], unused: bool) -> None:
        self.function, self.args, self.unused = function, args, unused
        self.is_module = isinstance(function, facula.nn.Module)
        if self.is_module:
            hooks = (
                function._backward_hooks,
                function._forward_hooks,
                function._forward_pre_hooks,
            )
            if any(len(found) for found in hooks):
                raise RuntimeError(
                    "Modules must not have hooks registered at the time they are passed. However, "
                    "registering hooks on modules after passing them through "
                    "make_graphed_callables is allowed."
                )
            if any(b.requires_grad for b in function.buffers()):
                raise RuntimeError(
                    "In any make_graphed_callables call, only parameters may require grad. All "
                    "buffers must have requires_grad=False."
                )
        leaves, self.tree = pytree.tree_flatten(args)
        self.signature = inspect.signature(function.forward if self.is_module else function)
        if not all(isinstance(leaf, facula.Tensor) for leaf in leaves):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other "
                "types are not allowed."
            )
        self.inputs = leaves
        self.parameters = tuple(function.parameters()) if self.is_module else ()
        self.surface = (*leaves, *self.parameters)
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()

    def _gradients(self, outputs: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        wanted = [t for t in self.surface if t.requires_grad]
        outputs = [o for o in outputs if o.requires_grad]
        if not wanted or not outputs:
            return []
        return list(
            facula.autograd.grad(
                outputs, wanted, [w for w in weights if w is not None], allow_unused=self.unused
            )
        )

    def warm_up(self) -> None:
        outputs = _tensors(self.function(*self.args))
        weights = [facula.empty_like(o) if o.requires_grad else None for o in outputs]
        self._gradients(outputs, weights)

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward_graph, pool=pool):
            result = self.function(*self.args)
        # What is no tensor is what every call returns.
        self.leaves, self.result_tree = pytree.tree_flatten(result)
        self.outputs = [leaf for leaf in self.leaves if isinstance(leaf, facula.Tensor)]

    def capture_backward(self, pool: Any) -> None:
        self.weights = [facula.empty_like(o) if o.requires_grad else None for o in self.outputs]
        found: list[Any] = []
        if any(t.requires_grad for t in self.surface) and any(w is not None for w in self.weights):
            with graph(self.backward_graph, pool=pool):
                found = self._gradients(self.outputs, self.weights)
        gradients = iter(found)
        self.gradients = [next(gradients, None) if t.requires_grad else None for t in self.surface]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call, in the order of the sample's."""
        if kwargs:
            bound = self.signature.bind(*args, **kwargs)
            if bound.kwargs:
                raise TypeError(
                    f"a graphed callable takes what its sample_args had; {sorted(bound.kwargs)} "
                    "cannot be given by position"
                )
            args = bound.args
        leaves, tree = pytree.tree_flatten(args)
        if tree != self.tree:
            raise TypeError(
                f"a graphed callable takes arguments built like its sample_args, {self.tree}; "
                f"got {tree}"
            )
        for place, (own, given) in enumerate(zip(self.inputs, leaves, strict=True)):
            expected = (own.shape, own.dtype, own.device)
            if not isinstance(given, facula.Tensor):
                raise TypeError(f"argument {place} of a graphed callable must be a tensor")
            if (given.shape, given.dtype, given.device) != expected:
                raise ValueError(
                    f"argument {place} of a graphed callable must be like the sample's: "
                    f"{tuple(own.shape)} {own.dtype} on {own.device}, got {tuple(given.shape)} "
                    f"{given.dtype} on {given.device}"
                )
        return leaves

    def callable(self) -> Any:
        piece = self

        class Replay(facula.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for own, given in zip(piece.inputs, inputs, strict=False):
                    if own.data_ptr() != given.data_ptr():
                        own.detach().copy_(given)
                piece.forward_graph.replay()
                outputs = tuple(o.detach() for o in piece.outputs)
                ctx.mark_non_differentiable(
                    *(
                        o
                        for o, own in zip(outputs, piece.outputs, strict=True)
                        if not own.requires_grad
                    )
                )
                return outputs

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for own, given in zip(piece.weights, grads, strict=True):
                    if own is not None and own.data_ptr() != given.data_ptr():
                        own.copy_(given)
                if any(g is not None for g in piece.gradients):
                    piece.backward_graph.replay()
                # A parameter that was frozen after the capture gets none.
                return tuple(
                    g.detach() if g is not None and wanted else None
                    for g, wanted in zip(piece.gradients, ctx.needs_input_grad, strict=True)
                )

        def replay(*args: Any, **kwargs: Any) -> Any:
            inputs = piece.arguments(args, kwargs)
            outputs = iter(Replay.apply(*inputs, *piece.parameters))
            results = [
                next(outputs) if isinstance(leaf, facula.Tensor) else leaf for leaf in piece.leaves
            ]
            return pytree.tree_unflatten(results, piece.result_tree)

        if not self.is_module:
            return replay
        module, eager, mode = self.function, self.function.forward, self.function.training

        def forward(*args: Any, **kwargs: Any) -> Any:
            return (replay if module.training == mode else eager)(*args, **kwargs)

        module.forward = forward
        return module
