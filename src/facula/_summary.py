"""``summary``: the layers of a model with shapes, parameters, work and memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import facula
from facula import _C
from facula.autograd.profiler import profile
from facula.autograd.profiler_util import FunctionEvent
from facula.nn.parameter import is_lazy
from facula.overrides import TorchFunctionMode

__all__ = ["ModelSummary", "summary"]


# ---- how much work an operator is: two operations for each product that is added

_Shapes = Sequence[tuple[int, ...]]


def _product_of_matrices(shapes: _Shapes) -> int:
    a, b = shapes[:2]  # (..., n, m), (..., m, p) or (m,)
    return 2 * math.prod(a) * (b[-1] if len(b) > 1 else 1)


def _linear(shapes: _Shapes) -> int:
    x, weight = shapes[:2]  # (..., n), (m, n)
    return 2 * math.prod(x) * (weight[0] if len(weight) > 1 else 1)


def _attention(shapes: _Shapes) -> int:
    query, key, value = shapes[:3]  # (..., T, D), (..., S, D), (..., S, E)
    scores = math.prod(query[:-1]) * key[-2]
    return 2 * scores * (query[-1] + value[-1])


def _recurrent(shapes: _Shapes) -> int:
    """Every weight matrix is applied at every step of every sequence."""
    x, weights = shapes[0], (shapes[3], shapes[4], shapes[7])
    return 2 * math.prod(x[:-1]) * sum(math.prod(w) for w in weights if w)


# Operators by the shapes of their arguments. What one of them is made of does not count again.
_FLOPS: dict[str, Callable[[_Shapes], int]] = {
    "aten::mm": _product_of_matrices,
    "aten::bmm": _product_of_matrices,
    "aten::mv": _product_of_matrices,
    "aten::dot": _product_of_matrices,
    "aten::addmm": lambda shapes: _product_of_matrices(shapes[1:]),
    "aten::addmv": lambda shapes: _product_of_matrices(shapes[1:]),
    "aten::baddbmm": lambda shapes: _product_of_matrices(shapes[1:]),
    "aten::addbmm": lambda shapes: _product_of_matrices(shapes[1:]),
    "aten::linear": _linear,
    "aten::scaled_dot_product_attention": _attention,
    "aten::_recurrent_layer": _recurrent,
}


def _convolution(args: tuple[Any, ...], out: Any) -> int:
    return 2 * out.numel() * math.prod(args[1].shape[1:])  # (out, in / groups, *kernel)


def _transposed_convolution(args: tuple[Any, ...], out: Any) -> int:
    return 2 * args[0].numel() * math.prod(args[1].shape[1:])  # (in, out / groups, *kernel)


# Convolutions, whose work is known from the result.
_CONVOLUTIONS = {
    **{f"conv{n}d": _convolution for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed_convolution for n in (1, 2, 3)},
}


# ---- recording one forward pass


@dataclass
class LayerInfo:
    """One call of one module."""

    path: str
    kind: str
    depth: int
    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    output_bytes: int = 0
    parameters: int = 0
    trainable: int = 0
    flops: int = 0
    is_leaf: bool = True
    is_repeated: bool = False  # its parameters have been counted in an earlier row


class _Recording(TorchFunctionMode):
    """Counts the work of convolutions, and lets the profiler know which layers are being called."""

    def __init__(self, layers: list[LayerInfo]) -> None:
        super().__init__()
        self.layers = layers
        self.open: list[tuple[LayerInfo, Any]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        count = _CONVOLUTIONS.get(getattr(func, "__name__", ""))
        if count is not None:
            flops = count((*args, *kwargs.values()), out)
            for layer, _ in self.open:
                layer.flops += flops
        return out

    def begin(self, layer: LayerInfo) -> None:
        self.open.append((layer, _C._ProfiledRange(f"{_LAYER}{len(self.layers)}")))
        self.layers.append(layer)

    def end(self) -> LayerInfo:
        layer, recorded = self.open.pop()
        recorded.close()
        return layer

    def add_events(self, events: Iterable[FunctionEvent]) -> None:
        """Adds the work of operators that the profiler saw, inside of others, too."""
        for event in events:
            count = _FLOPS.get(event.name)
            if count is None:
                continue
            outer = list(_around(event))
            if any(e.name in _FLOPS for e in outer):
                continue
            flops = count(event.input_shapes)
            for e in outer:
                if e.name.startswith(_LAYER):
                    self.layers[int(e.name[len(_LAYER) :])].flops += flops


_LAYER = "facula.summary#"  # and a layer's number: a range in the profiler's record


def _around(event: FunctionEvent) -> Iterator[FunctionEvent]:
    outer = event.cpu_parent
    while outer is not None:
        yield outer
        outer = outer.cpu_parent


def _tensors(value: Any) -> Iterator[facula.Tensor]:
    for leaf in facula.utils._pytree.tree_leaves(value):
        if isinstance(leaf, facula.Tensor):
            yield leaf


def _inputs(
    given: tuple[Any, ...], dtype: Any, device: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the model is called with: tensors as they are, sizes as zeros."""

    def is_size(x: Any) -> bool:
        return isinstance(x, (tuple, list)) and len(x) > 0 and all(type(n) is int for n in x)

    def made(x: Any) -> Any:
        return facula.zeros(*x, dtype=dtype, device=device) if is_size(x) else x

    if len(given) == 1 and isinstance(given[0], dict):
        return (), {name: made(x) for name, x in given[0].items()}
    if len(given) == 1 and isinstance(given[0], (tuple, list)) and not is_size(given[0]):
        given = tuple(given[0])
    return tuple(made(x) for x in given), {}


def _parameters(module: Any, seen: set[int]) -> tuple[int, int, int]:
    """Parameters, trainable ones, and bytes, each tensor once."""
    count = trainable = size = 0
    for p in module.parameters():
        if id(p) in seen or is_lazy(p):
            continue
        seen.add(id(p))
        count += p.numel()
        trainable += p.numel() if p.requires_grad else 0
        size += p.nbytes
    return count, trainable, size


def summary(
    model: Any,
    *input: Any,
    depth: int = 3,
    dtype: Any = None,
    device: Any = None,
    train: bool = False,
) -> ModelSummary:
    """Calls a model once and tells its layers, with shapes, parameters, work and memory.

    Args:
        model: a module.
        input: what it is called with: tensors or sizes, a tuple of them, or a dict by name.
        depth: how deep the table goes into modules of modules.
        dtype: of tensors that are made of sizes; that of the parameters by default.
        device: of tensors that are made of sizes; that of the parameters by default.
        train: whether the call is in training mode.

    The model, its buffers' statistics (in evaluation mode) and the random numbers of the program
    stay as they were. The work is that of matrix products, convolutions and attention, with two
    operations for each product that is added; the rest is small beside it.

    Example::

        >>> class Net(facula.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = facula.nn.Parameter(facula.ones(3, 2))
        ...     def forward(self, x):
        ...         return x @ self.weight
        >>> print(facula.summary(Net(), (4, 3)))
        Layer      Output shape  Parameters  FLOPs  Output memory
        ─────────  ────────────  ──────────  ─────  ─────────────
        Net        (4, 2)                 6     48           32 B
        ─────────  ────────────  ──────────  ─────  ─────────────
        Parameters: 6 (6 trainable), 24 B
        Buffers: 0 B
        FLOPs: 48
        Input: 48 B, outputs of layers: 32 B
    """
    made = (t for t in (*model.parameters(), *model.buffers()) if not is_lazy(t))
    first = next(made, None)
    if device is None:
        device = first.device if first is not None else "cpu"
    if dtype is None and first is not None and first.is_floating_point():
        dtype = first.dtype
    args, kwargs = _inputs(input, dtype, device)
    paths = {id(m): name for name, m in model.named_modules()}
    layers: list[LayerInfo] = []
    recording = _Recording(layers)
    counted: set[int] = set()

    def before(module: Any, given: Any) -> None:
        path = paths.get(id(module), "")
        layer = LayerInfo(path, type(module).__name__, path.count(".") + 1 if path else 0)
        layer.is_repeated = id(module) in counted
        counted.add(id(module))
        layer.is_leaf = next(iter(module.children()), None) is None
        recording.begin(layer)

    def after(module: Any, given: Any, output: Any) -> None:
        layer = recording.end()
        # Only now: what is lazy has got its parameters in the call.
        layer.parameters, layer.trainable, _ = _parameters(module, set())
        for t in _tensors(output):
            layer.output_shapes.append(tuple(t.shape))
            layer.output_bytes += t.nbytes

    handles = []
    training = {id(m): m.training for m in model.modules()}
    try:
        for module in model.modules():
            handles.append(module.register_forward_pre_hook(before))
            handles.append(module.register_forward_hook(after))
        model.train(train)
        profiler = profile(record_shapes=True)
        with facula.no_grad(), facula.random.fork_rng(), profiler, recording:
            try:
                model(*args, **kwargs)
            finally:
                while recording.open:
                    recording.end()
        recording.add_events(profiler.function_events)
    finally:
        for handle in handles:
            handle.remove()
        for module in model.modules():
            module.training = training.get(id(module), module.training)
    count, trainable, size = _parameters(model, set())
    return ModelSummary(
        layers=layers,
        depth=depth,
        total_params=count,
        trainable_params=trainable,
        parameter_bytes=size,
        buffer_bytes=sum(b.nbytes for b in model.buffers() if not is_lazy(b)),
        input_bytes=sum(t.nbytes for t in _tensors((args, kwargs))),
        total_flops=layers[0].flops if layers else 0,
    )


# ---- the table


def _bytes(n: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def _count(n: int) -> str:
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if n >= 10 * size:
            return f"{n / size:.1f} {unit}"
    return f"{n:,}"


@dataclass
class ModelSummary:
    """What :func:`facula.summary` found; printing it shows the table."""

    layers: list[LayerInfo]
    depth: int
    total_params: int
    trainable_params: int
    parameter_bytes: int
    buffer_bytes: int
    input_bytes: int
    total_flops: int

    @property
    def output_bytes(self) -> int:
        """Memory of what layers without layers in them returned."""
        return sum(layer.output_bytes for layer in self.layers if layer.is_leaf)

    def _row(self, layer: LayerInfo) -> list[str]:
        name = layer.path.rpartition(".")[2]
        shapes = layer.output_shapes
        more = f" + {len(shapes) - 1} more" if len(shapes) > 1 else ""
        shown = (str(shapes[0]) + more) if shapes else "-"
        parameters = f"{layer.parameters:,}" if layer.parameters else "-"
        return [
            "  " * layer.depth + (f"{name}: " if name else "") + layer.kind,
            shown,
            "(counted)" if layer.is_repeated and layer.parameters else parameters,
            _count(layer.flops) if layer.flops else "-",
            _bytes(layer.output_bytes),
        ]

    def __str__(self) -> str:
        head = ["Layer", "Output shape", "Parameters", "FLOPs", "Output memory"]
        rows = [self._row(layer) for layer in self.layers if layer.depth <= self.depth]
        widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
        widths[0] = max(widths[0], 9)

        def line(cells: list[str]) -> str:
            parts = [
                c.ljust(w) if i < 2 else c.rjust(w)
                for i, (c, w) in enumerate(zip(cells, widths, strict=True))
            ]
            return "  ".join(parts).rstrip()

        rule = "  ".join("─" * w for w in widths)
        return "\n".join(
            [
                line(head),
                rule,
                *map(line, rows),
                rule,
                f"Parameters: {self.total_params:,} ({self.trainable_params:,} trainable), "
                f"{_bytes(self.parameter_bytes)}",
                f"Buffers: {_bytes(self.buffer_bytes)}",
                f"FLOPs: {_count(self.total_flops)}",
                f"Input: {_bytes(self.input_bytes)}, "
                f"outputs of layers: {_bytes(self.output_bytes)}",
            ]
        )

    __repr__ = __str__
