"""The text of a tensor: what ``repr(tensor)`` shows, in PyTorch's wording to the letter.

Printing goes in four steps: fetch the elements that will be seen as Python numbers, turn each into
a text, lay the texts out in rows and brackets, and append the suffixes (device, dtype, grad_fn).
A tensor above the threshold is read only at its edges, so a huge one prints as fast as a small one.
"""

from __future__ import annotations

import math
import sys
import textwrap
from contextlib import contextmanager, nullcontext

from facula.sparse import _printing as _sparse_printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Any

    from facula import Tensor

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed. An option that is left out keeps its value.

    Args:
        precision: digits after the decimal point (4).
        threshold: a tensor of more elements than this is summarised (1000).
        edgeitems: elements shown at both ends of each dimension of a summary (3).
        linewidth: characters in a line before it is broken (80).
        profile: ``"default"``, ``"short"`` or ``"full"``: values for the four options above, which
            each of them, when given too, overrides.
        sci_mode: scientific notation always (``True``), never (``False``), or where the values
            call for it (``None``). Every call sets this one: left out, it returns to ``None``.

    Example::

        >>> import facula
        >>> facula.set_printoptions(precision=2)
        >>> facula.tensor([1.12345])
        tensor([1.12])
        >>> facula.set_printoptions(profile="default")
        >>> facula.tensor([1.12345])
        tensor([1.1235])
    """
    for name, value in (("precision", precision), ("edgeitems", edgeitems)):
        # Refused here: a bad value would otherwise break every later repr, far from its cause.
        if value is not None and (not hasattr(value, "__index__") or value < 0):
            raise ValueError(
                f"set_printoptions(): {name} must be a non-negative int, but got {value!r}"
            )
    if profile is not None:
        # As in PyTorch, an unknown name changes nothing.
        _options.update(_PROFILES.get(profile, {}))
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _options.update((name, value) for name, value in given.items() if value is not None)
    _options["sci_mode"] = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the current print options, in a form that ``set_printoptions(**options)`` takes.

    Example::

        >>> from facula._tensor_str import get_printoptions
        >>> get_printoptions()["precision"]
        4
    """
    return dict(_options)


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Set print options (those of :func:`set_printoptions`) for the length of a ``with`` block.

    Example::

        >>> import facula
        >>> from facula._tensor_str import printoptions
        >>> with printoptions(precision=2):
        ...     print(facula.tensor([0.5, 1.0]))
        tensor([0.50, 1.00])
    """
    saved = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options.update(saved)


def _package(tensor: Tensor) -> ModuleType:
    """Return the package whose ``Tensor`` this is, or is a subclass of.

    Asked of the classes and not imported, so that this file can be compared with PyTorch on
    PyTorch's own tensors; no attribute of the tensor is read, since a subclass may override it.
    """
    for base in reversed(type(tensor).__mro__):
        package = sys.modules.get(base.__module__.partition(".")[0])
        if package is not None and getattr(package, "Tensor", None) is base:
            return package
    raise TypeError(f"expected a Tensor, but got {type(tensor).__name__}")


# Elements: from the tensor to a flat, row-major list of Python numbers.


def _shown_elements(tensor: Tensor, summarise: bool) -> list[Any]:
    if tensor.dim() == 0:
        return [tensor.tolist()]
    rows = _edges(tensor, 0, _options["edgeitems"]) if summarise else tensor.tolist()
    for _ in range(tensor.dim() - 1):
        rows = [element for row in rows for element in row]
    return rows


def _edges(tensor: Tensor, dim: int, edge: int) -> list[Any]:
    """Nested lists of the elements of a summary, cut in dimension ``dim`` and those after it.

    Cuts the long dimensions in two, so that a tensor on a device is read in few pieces.
    """
    while dim < tensor.dim() and tensor.shape[dim] <= 2 * edge:
        dim += 1
    if dim == tensor.dim():
        whole: list[Any] = tensor.tolist()
        return whole
    before = (slice(None),) * dim
    size = tensor.shape[dim]
    head = _edges(tensor[(*before, slice(0, edge))], dim + 1, edge)
    tail = _edges(tensor[(*before, slice(size - edge, size))], dim + 1, edge)
    return _concatenated(head, tail, dim)


def _concatenated(head: list[Any], tail: list[Any], dim: int) -> list[Any]:
    if dim == 0:
        return head + tail
    return [_concatenated(h, t, dim - 1) for h, t in zip(head, tail, strict=True)]


# Texts: each element as it will stand in the rows, and the column width that lines are filled by.


def _element_texts(values: list[Any], dtype: Any) -> tuple[list[str], int]:
    if dtype.is_complex:
        real, real_width = _real_texts([value.real for value in values])
        imag, imag_width = _real_texts([value.imag for value in values])
        texts = [
            f"{r:>{real_width}}{i}j" if i[0] == "-" else f"{r:>{real_width}}+{i}j"
            for r, i in zip(real, imag, strict=True)
        ]
        return texts, real_width + imag_width + 1
    if dtype.is_floating_point:
        texts, width = _real_texts(values)
    else:
        texts = list(map(str, values))
        width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _real_texts(values: list[float]) -> tuple[list[str], int]:
    """Texts of equal notation, not yet padded, and their width.

    Zeros, infinities and nans have no say in the notation, nor in the width.
    """
    magnitudes = [m for m in map(abs, values) if 0.0 < m < math.inf]
    if not magnitudes:
        return _whole_texts(values), 1
    whole = all(map(float.is_integer, magnitudes))
    scientific = _options["sci_mode"]
    if scientific is None:
        largest, smallest = max(magnitudes), min(magnitudes)
        scientific = (
            largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4)
        )
    if whole and not scientific:
        texts = _whole_texts(values)
    else:
        spec = f"%.{_options['precision']}{'e' if scientific else 'f'}"
        texts = [spec % value for value in values]
    if len(magnitudes) == len(values):
        return texts, max(map(len, texts))
    return texts, max(len(t) for t, v in zip(texts, values, strict=True) if 0.0 < abs(v) < math.inf)


def _whole_texts(values: list[float]) -> list[str]:
    """``2.`` for 2.0: the point alone tells it from an integer. ``inf`` and ``nan`` have none."""
    return [f"{v:.0f}." if -math.inf < v < math.inf else f"{v:.0f}" for v in values]


# Layout: rows of texts in nested brackets.


def _brackets(texts: Iterator[str], shape: Sequence[int], cut: int, indent: int, width: int) -> str:
    """Take the texts of a tensor of ``shape`` from ``texts`` and set them ``indent`` columns in.

    A dimension of more than ``2 * cut`` elements has ``cut`` texts for each of its ends.
    """
    if not shape:
        return next(texts)
    size, inner = shape[0], shape[1:]
    ends = (size,) if size <= 2 * cut else (cut, cut)
    if inner:
        parts = [
            [_brackets(texts, inner, cut, indent + 1, width) for _ in range(end)] for end in ends
        ]
        pieces = parts[0] if len(parts) == 1 else [*parts[0], "...", *parts[1]]
        separator = "," + "\n" * len(inner) + " " * (indent + 1)
        return "[" + separator.join(pieces) + "]"
    parts = [[next(texts) for _ in range(end)] for end in ends]
    row = parts[0] if len(parts) == 1 else [*parts[0], " ...", *parts[1]]
    # min() first: a linewidth may be infinite.
    per_line = max(1, int(min(len(row), (_options["linewidth"] - indent) / (width + 2))))
    lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _contents(tensor: Tensor, indent: int) -> str:
    if tensor.device.type == "meta":
        return "..."
    numel = tensor.numel()
    if numel == 0:
        return "[]"
    summarise = tensor.dim() > 0 and numel > _options["threshold"]
    edge = _options["edgeitems"]
    if summarise and edge == 0:
        return "[...]"
    texts, width = _element_texts(_shown_elements(tensor, summarise), tensor.dtype)
    return _brackets(iter(texts), tuple(tensor.shape), edge if summarise else numel, indent, width)


# Suffixes: what follows the elements.


def _suffixes(tensor: Tensor, package: ModuleType) -> Iterator[str]:
    device = tensor.device
    if device.type != "cpu":
        yield f"device='{device}'"

    # Elements show their kind, so the usual dtypes go without saying; where none are seen, only
    # the default dtype does.
    without_elements = device.type == "meta" or tensor.numel() == 0
    default = str(package.get_default_dtype()).rpartition(".")[2]
    implied = [default]
    is_sparse = bool(_sparse_printing.layout_name(tensor))
    if not without_elements or is_sparse:
        implied += ["int64", "bool", "complex128" if default == "float64" else "complex64"]
        shows_size = _options["edgeitems"] == 0
    else:
        shows_size = device.type == "meta" or tensor.dim() != 1
    if is_sparse:
        yield from _sparse_printing.suffixes(tensor, implied)
    else:
        if shows_size:
            yield f"size={tuple(tensor.shape)}"
        if str(tensor.dtype).rpartition(".")[2] not in implied:
            yield f"dtype={tensor.dtype}"

    try:
        node = tensor.grad_fn
    except RuntimeError:
        # A view made without recording has no valid history once its base is written to.
        yield "grad_fn=<Invalid>"
    else:
        if node is not None:
            yield f"grad_fn=<{node.name().rpartition('::')[2]}>"
        elif tensor.requires_grad:
            yield "requires_grad=True"

    # If nobody has imported forward mode, there are no dual tensors.
    forward_ad = sys.modules.get(f"{package.__name__}.autograd.forward_ad")
    if forward_ad is not None:
        tangent = forward_ad.unpack_dual(tensor).tangent
        if tangent is not None:
            yield f"tangent={tangent}"


def _overrides_disabled(package: ModuleType) -> AbstractContextManager[Any]:
    """Printing must not call back into a subclass's ``__torch_function__``, which may print."""
    core = getattr(package, "_C", None)
    return getattr(core, "DisableTorchFunctionSubclass", nullcontext)()


def _wrapped_text(tensor: Tensor, package: ModuleType) -> str | None:
    """The text of a tensor inside of a function transform, which stands for another one."""
    transforms = getattr(getattr(package, "_C", None), "transforms", None)
    kind = "" if transforms is None else transforms.kind_of(tensor)
    if transforms is None or not kind:
        return None
    level, value = transforms.level_of(tensor), transforms.value_of(tensor)
    live = [number for number, _ in transforms.level_stack()]
    if level not in live:
        return repr(value)
    fields = [f"lvl={live.index(level) + 1}"]
    if kind == "vmap":
        fields.append(f"bdim={transforms.batch_dim_of(tensor)}")
    fields.append("value=\n" + textwrap.indent(repr(value), "    ") + "\n")
    if kind == "jvp":
        tangent = transforms.unpack_dual(tensor, level)[1]
        if package.autograd.forward_ad.is_dual_level(level):
            shown = "" if tangent is None else f", tangent={tangent}"
            return repr(value)[:-1] + shown + ")"
        if tangent is not None:
            fields.append("tangent=\n" + textwrap.indent(repr(tangent), "    ") + "\n")
    name = "BatchedTensor" if kind == "vmap" else "GradTrackingTensor"
    return f"{name}({', '.join(fields)})"


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Return the text of ``repr(self)``; ``tensor_contents``, if given, replaces its elements.

    Example::

        >>> import facula
        >>> from facula._tensor_str import _str
        >>> _str(facula.zeros(2, 2, dtype=facula.int32))
        'tensor([[0, 0],\\n        [0, 0]], dtype=facula.int32)'
    """
    package = _package(self)
    wrapped = _wrapped_text(self, package)
    if wrapped is not None:
        return wrapped
    # If nobody has imported nn, there are no parameters.
    parameter = getattr(sys.modules.get(f"{package.__name__}.nn.parameter"), "Parameter", None)
    plain = type(self) is package.Tensor or type(self) is parameter
    prefix = "tensor(" if plain else f"{type(self).__name__}("
    indent = len(prefix)
    with _overrides_disabled(package):
        layout = _sparse_printing.layout_name(self)
        if tensor_contents is None and layout:
            tensor_contents = _sparse_printing.contents(self, indent, _contents)
        elif tensor_contents is None:
            values = self.detach() if self.requires_grad else self
            tensor_contents = _contents(values, indent)
        text = prefix + tensor_contents
        # PyTorch counts the last line two columns too long, and so breaks it that much early.
        column = len(text) - text.rfind("\n") + 1
        linewidth = _options["linewidth"]
        if layout == "sparse_coo":
            column = linewidth  # what follows the elements starts on a line of its own
        for suffix in _suffixes(self, package):
            if column + len(suffix) + 2 > linewidth:
                text += ",\n" + " " * indent + suffix
                column = indent + len(suffix)
            else:
                text += ", " + suffix
                column += len(suffix) + 2
        text += ")"
        if not plain and parameter is not None and isinstance(self, parameter):
            return f"Parameter({text})"
        return text
