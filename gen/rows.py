"""What a row of ``ops/`` may say: the families and ``op``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gen.schema import Schema, parse

BOOL = ["Bool"]
INTS = ["UInt8", "Int8", "Int16", "Int32", "Int64", "UInt16", "UInt32", "UInt64"]
FLOATS = ["Float32", "Float64"]
COMPLEX = ["Complex64", "Complex128"]
DTYPE_GROUPS = {"b": BOOL, "i": INTS, "f": FLOATS, "c": COMPLEX}


@dataclass
class Family:
    """What the rows of one kind have in common."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


def elementwise(
    types: str = "bifc", promote: str = "Common", out: str = "Compute", **options: Any
) -> Family:
    """One loop from the formula ``f``; every Tensor argument (or number) is an operand.

    types: letters of the compute types that have a loop (b bool, i integers, f floats, c complex).
    promote: Common, Float (integers become the default float) or First (the first operand's dtype).
    out: Compute, Bool or Real.
    masks: names of operands that are read as booleans and take no part in promotion.
    numbers: True when Python may pass a number for ``self`` too, as in ``pow(2, x)``; "all" when
        every operand may be one, as in ``add(1, 2)``; False when none may. By default all but
        ``self`` may.
    number_loops: True for formulas that meet numbers all the time: they get loops of their own.
    halves: True for cheap formulas, which get loops that read and write half precision; others
        compute in buffers of float32. The formula must make sense of vectors (``cpu/half_lanes.h``
        has the functions it may call). Or a formula over the bits of one operand.
    check: a function of ``csrc/op/operand_checks.h`` that refuses arguments.
    into_repeated: a function of ``csrc/op/repeated.h`` that writes to a tensor whose elements repeat.
    refuses: a letter that is not among the types, an ``ErrorKind`` and the words of the refusal,
        where those that are usual do not say what is to be done instead.
    fallback: by dtype letter, a condition under which the formula holds and another formula
        for blocks of elements where it does not: ``{"f": ("angle_in_range(a)", "sin_full_range(a)")}``.
    """
    return Family("elementwise", {"types": types, "promote": promote, "out": out, **options})


def reduction(types: str = "bifc", **options: Any) -> Family:
    """``combine`` folds values of the accumulation type; ``init`` is its identity.

    integers: the dtype that integral inputs are accumulated in ("Int64") or "" to keep theirs.
    """
    return Family("reduction", {"types": types, **options})


def view(**options: Any) -> Family:
    """The kernel returns an alias of the first argument."""
    return Family("view", options)


def kernel(**options: Any) -> Family:
    """A primitive with a kernel written by hand in ``csrc/kernels`` or ``csrc/cpu``.

    own_out=True: the kernel writes into given destinations itself (it gets ``Rets&``).
    """
    return Family("kernel", options)


def composite(**options: Any) -> Family:
    """Made of other operators, in ``csrc/kernels``; their derivatives are its derivative."""
    return Family("composite", options)


@dataclass
class Row:
    schema: Schema
    family: Family
    f: dict[str, str]
    grad: dict[str, str]
    doc: str
    ref: Callable[..., Any] | str | None
    python: str  # dotted name under the package, "" when not public
    method: bool
    function: bool
    inplace: bool
    out: bool
    aliases: tuple[str, ...]
    node: str
    nondifferentiable: tuple[str, ...]
    module: str
    example: str
    samples: str | None
    jvp: str
    batch: str
    constant_slope: bool
    grad_groups: tuple[tuple[str, ...], ...] = ()  # arguments whose derivatives are one call

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def mutates(self) -> bool:
        return self.name.endswith("_") and not self.name.startswith("_")

    @property
    def is_elementwise(self) -> bool:
        return self.family.name == "elementwise"


ROWS: list[Row] = []
_current_module = ""


def begin_module(name: str) -> None:
    global _current_module
    _current_module = name


def op(
    schema: str,
    family: Family,
    *,
    f: str | dict[str, str] | None = None,
    grad: str | dict[str, str] | None = None,
    doc: str = "",
    ref: Callable[..., Any] | str | None = None,
    python: str | None = None,
    method: bool | None = None,
    function: bool | None = None,
    inplace: bool | None = None,
    out: bool | None = None,
    aliases: tuple[str, ...] = (),
    node: str = "",
    nondifferentiable: tuple[str, ...] = (),
    example: str = "",
    samples: str | None = None,
    jvp: str = "",
    batch: str = "",
    constant_slope: bool = False,
) -> None:
    """Adds a row. See CONTRIBUTING.md for a walk through one.

    schema: name, arguments with types and defaults, results; ``name.overload`` for overloads.
    f: the formula over a, b, c ... (operands) and parameter names; a dict by dtype letter
       when it differs ("" is the rest). None for a ``float?`` parameter arrives as NaN.
    grad: argument -> derivative, over ``grad``, arguments, results and operators; reducing to the
       argument's shape and dtype is done by the engine. Of several results, ``grad_<result>`` is
       zero where no gradient arrived, ``given_<result>`` is no tensor then. One operator with several
       results, or a list of them, may give several derivatives: ``{"input, weight": "_f_grad(grad, ..., wanted)"}``, where
       bit i of ``wanted`` says that the i-th of them is asked for.
    python: public dotted name ("" hides the row); method/function/inplace/out: which variants exist.
    aliases: further public names; one with a dot is a function of that namespace.
    node: the name of the tape's node; of a composite, that of the last node which it made.
    samples: name of a sample generator in tests/samples.py when the family's own does not fit.
    jvp: forward mode. "linear": the operator is linear in its differentiable arguments taken together
       (it is applied to the tangents); "each": linear in each of them (one tangent at a time, summed);
       "by vjp": by differentiating the derivative, which is right for all but slower, and the default
       except for elementwise rows, whose ``grad`` formula is applied to the tangents; "by vjp at 0":
       likewise, for derivatives that refuse some gradients (those by the phase of a vector); "by vjp
       if complex": for elementwise rows that are not holomorphic, to whose tangents no formula for
       gradients can be applied.
    batch: how vmap runs a row that is no composite (elementwise rows and reductions need nothing).
       "leading": every Tensor argument may have further leading dimensions, which broadcast (linalg);
       "core 2 1": likewise for matrices with vectors, whose batches must be equal;
       "dims": arguments that name dimensions (dim, dims, dim0 ...) are shifted by one, sizes get the
       batch size in front, and all Tensor arguments get the batch dimension in front;
       "new dims": likewise, with dims counted in the result, which has one more (unsqueeze);
       "all": a reduction over everything, which has an overload ``dim`` of the same name;
       "random"; "loop": one call per element, for which tests/skips.py has the reason; else a rule of csrc/transform/rules.h.
    constant_slope: the derivative does not depend on ``self``, by which second derivatives are zeros
       instead of none, as in PyTorch, whose formula takes ``self`` (``autograd/constant_slope.h``).
    """
    s = parse(schema)
    first_is_self = bool(s.args) and s.args[0].name == "self" and s.args[0].is_tensor
    is_mutating = s.name.endswith("_")
    if family.name == "elementwise":
        for a in s.args:
            if a.type in ("Tensor", "Tensor?"):
                a.operand = True
    groups = []
    if isinstance(grad, dict):
        together = [tuple(n.strip() for n in key.split(",")) for key in grad]
        groups = [names for names in together if len(names) > 1]
        texts = zip(together, grad.values(), strict=True)
        grad = {name: text for names, text in texts for name in names}
    hidden = python == "" or (python is None and s.name.startswith("_"))
    row = Row(
        schema=s,
        family=family,
        f={"": f} if isinstance(f, str) else dict(f or {}),
        grad={"self": grad} if isinstance(grad, str) else dict(grad or {}),
        doc=doc,
        ref=ref,
        python="" if hidden else (python or s.name),
        method=first_is_self and not hidden if method is None else method,
        function=(not is_mutating) and not hidden if function is None else function,
        inplace=(family.name == "elementwise" and first_is_self and not is_mutating)
        if inplace is None
        else inplace,
        out=(
            family.name in ("elementwise", "reduction", "kernel", "composite")
            and not is_mutating
            and all(t == "Tensor" for t, _ in s.rets)
        )
        if out is None
        else out,
        aliases=aliases,
        node=node,
        nondifferentiable=nondifferentiable,
        module=_current_module,
        example=example,
        samples=samples,
        jvp=jvp,
        batch=batch,
        constant_slope=constant_slope,
        grad_groups=tuple(groups),
    )
    for name in row.grad:
        if name not in [a.name for a in s.args]:
            raise ValueError(f"{schema}: derivative for unknown argument {name!r}")
    ROWS.append(row)


def load_table() -> list[Row]:
    """Imports every module of ``ops`` once and returns the rows in order."""
    if not ROWS:
        import importlib
        import pkgutil

        import ops

        for info in sorted(pkgutil.iter_modules(ops.__path__), key=lambda m: m.name):
            begin_module(info.name)
            importlib.import_module(f"ops.{info.name}")
    return ROWS
