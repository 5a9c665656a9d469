"""Checks the derivatives that autograd computes against finite differences.

Everything here happens over the reals: a complex entry counts as two real ones, its real and its
imaginary part. In that picture the gradient that autograd returns for a complex tensor,
dL/d(re) + i dL/d(im), is the plain gradient of its two parts, backward multiplies by the transpose
of the real Jacobian, and no case for complex inputs or outputs is left to write.

A Jacobian is stored as a float64 matrix with a row per input part and a column per output part.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import facula

if TYPE_CHECKING:
    from facula import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised by :func:`gradcheck` and :func:`gradgradcheck` when a derivative is wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    r"""Compares the gradients of ``func`` with central finite differences.

    Every floating point or complex tensor in ``inputs`` that requires grad is checked against every
    differentiable output. An entry passes when
    ``|analytical - numerical| <= atol + rtol * |numerical|``. The default tolerances are made for
    float64 and complex128 inputs.

    The inputs are perturbed in place and restored, so ``func`` may also reach them through a
    closure.

    Args:
        func: takes the inputs, returns a tensor or a sequence of tensors. It has to be
            deterministic.
        inputs: a tensor, or a sequence that may hold other values as well.
        eps: the step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise :class:`GradcheckError` on failure; otherwise return ``False``.
        nondet_tol: how far two runs of the same backward may differ.
        check_undefined_grad: check that backward accepts outputs without an incoming gradient.
        check_grad_dtypes: check that gradients have the dtype of their inputs.
        check_batched_grad: check ``autograd.grad(..., is_grads_batched=True)`` against a loop.
        check_batched_forward_grad: check forward mode under ``vmap`` against a loop.
        check_forward_ad: check forward mode derivatives as well.
        check_backward_ad: check backward mode derivatives.
        fast_mode: compare one random projection of each Jacobian instead of all of its entries.
        masked: accepted for compatibility; dense tensors have no masked entries.

    Returns:
        ``True`` when all checks passed.

    Example::

        >>> x = facula.tensor([0.5, 2.0], dtype=facula.float64, requires_grad=True)
        >>> facula.autograd.gradcheck(facula.sin, (x,))
        True
    """
    del masked
    if not (check_backward_ad or check_forward_ad):
        raise ValueError(
            "gradcheck: at least one of check_backward_ad and check_forward_ad must be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise ValueError("gradcheck: check_batched_grad=True needs check_backward_ad=True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("gradcheck: check_batched_forward_grad=True needs check_forward_ad=True")
    subject = _Subject(func, inputs, eps, atol, rtol)
    try:
        if not subject.differentiable_outputs():
            _check_constant(subject)
            return True
        compare = _check_projections if fast_mode else _check_jacobians
        if check_backward_ad:
            compare(subject, forward=False)
            _check_repeatable(subject, nondet_tol)
            _check_linear_in_grad_outputs(subject, check_grad_dtypes)
            if check_undefined_grad:
                _check_undefined_grads(subject)
            if check_batched_grad:
                _check_batched_backward(subject)
        if check_forward_ad:
            compare(subject, forward=True)
            if check_batched_forward_grad:
                _check_batched_forward(subject)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    r"""Compares second derivatives of ``func`` with finite differences of its gradients.

    The function that is checked takes the inputs and the incoming gradients and returns
    ``autograd.grad(outputs, inputs, grad_outputs, create_graph=True)``.

    Args:
        func: takes the inputs, returns a tensor or a sequence of tensors.
        inputs: a tensor, or a sequence that may hold other values as well.
        grad_outputs: the incoming gradients, one for each differentiable output; drawn at random
            if not given.
        gen_non_contig_grad_outputs: draw incoming gradients that are not contiguous.
        check_fwd_over_rev: check forward mode derivatives of the gradients as well.
        check_rev_over_rev: check backward mode derivatives of the gradients.

    The other arguments are those of :func:`gradcheck`.

    Returns:
        ``True`` when all checks passed.

    Example::

        >>> x = facula.tensor([0.5, 2.0], dtype=facula.float64, requires_grad=True)
        >>> facula.autograd.gradgradcheck(lambda x: x**3, (x,))
        True
    """
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        source = random.Random(0)
        outputs = _differentiable(func(*inputs))
        grad_outputs = tuple(
            _random_like(output, source, gen_non_contig_grad_outputs).requires_grad_()
            for output in outputs
        )
    else:
        grad_outputs = _as_tuple(grad_outputs)
    split = len(inputs)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        outputs = _differentiable(func(*args[:split]))
        sources = [arg for arg in args[:split] if _varies(arg)]
        grads = facula.autograd.grad(
            outputs, sources, args[split:], create_graph=True, allow_unused=True
        )
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# -- Tensors as vectors of real parts -------------------------------------------------------------


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _is_continuous(value: Any) -> bool:
    """Whether value is a tensor of a dtype that derivatives exist for."""
    return isinstance(value, facula.Tensor) and (value.is_floating_point() or value.is_complex())


def _varies(value: Any) -> bool:
    return _is_continuous(value) and value.requires_grad


def _differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(output for output in _as_tuple(outputs) if _varies(output))


def _parts(tensor: Tensor) -> Tensor:
    """A float64 copy on the CPU, as a vector; a complex entry gives its real and imaginary part."""
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = facula.stack((flat.real, flat.imag), 1).reshape(-1)
    return flat.to(facula.float64).cpu().clone()


def _part_count(tensor: Tensor) -> int:
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _part_range(tensor: Tensor) -> range:
    return range(_part_count(tensor))


def _from_parts(parts: Tensor, like: Tensor) -> Tensor:
    """The inverse of _parts: a tensor with the shape, dtype and device of `like`."""
    if like.is_complex():
        parts = facula.complex(parts[0::2].contiguous(), parts[1::2].contiguous())
    return parts.to(like.dtype).to(like.device).reshape(like.shape)


def _basis_vector(position: int, like: Tensor) -> Tensor:
    parts = facula.zeros(_part_count(like), dtype=facula.float64, device="cpu")
    parts[position] = 1.0
    return _from_parts(parts, like)


def _unit_vector(like: Tensor, source: random.Random) -> Tensor:
    """A random direction, as parts. From Python's generator: func may depend on ours."""
    values = [source.gauss(0.0, 1.0) for _ in range(_part_count(like))]
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    entries = [value / length for value in values]
    return facula.tensor(entries, dtype=facula.float64, device="cpu")


def _random_like(tensor: Tensor, source: random.Random, non_contiguous: bool) -> Tensor:
    count = _part_count(tensor)
    entries = [source.gauss(0.0, 1.0) for _ in range(count)]
    values = facula.tensor(entries, dtype=facula.float64, device="cpu")
    result = _from_parts(values, tensor)
    # Every second entry of a longer last dimension.
    return facula.stack((result, result), -1).select(-1, 0) if non_contiguous else result


# -- The function that is checked -----------------------------------------------------------------


class _Subject:
    """The function, its inputs and tolerances, and the derivatives in each of their forms."""

    def __init__(
        self, func: Callable[..., Any], inputs: Any, eps: float, atol: float, rtol: float
    ) -> None:
        self.func = func
        self.inputs = _as_tuple(inputs)
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.positions = [i for i, value in enumerate(self.inputs) if _varies(value)]
        self.varying = [self.inputs[i] for i in self.positions]
        self.positioned = list(zip(self.positions, self.varying, strict=True))
        if not self.varying:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them "
                "have requires_grad=True. Call requires_grad_() on the floating point or complex "
                "tensors whose derivatives are to be checked"
            )
        for position, tensor in self.positioned:
            if tensor.dtype not in (facula.float64, facula.complex128):
                warnings.warn(
                    f"Input #{position} requires gradient and is not a double precision floating "
                    "point or complex. This check will likely fail if all the inputs are not of "
                    "double precision floating point or complex.",
                    stacklevel=3,
                )
            if any(tensor.stride(dim) == 0 and size > 1 for dim, size in enumerate(tensor.shape)):
                raise RuntimeError(
                    f"gradcheck: input {position} has a dimension with stride 0, so its entries "
                    "cannot be changed one by one; pass input.contiguous() instead of an expanded "
                    "tensor"
                )

    def differentiable_outputs(self) -> tuple[Tensor, ...]:
        return _differentiable(self.func(*self.inputs))

    def output_parts(self) -> list[Tensor]:
        return [_parts(output) for output in self.differentiable_outputs()]

    def continuous_output_parts(self) -> list[Tensor]:
        outputs = _as_tuple(self.func(*self.inputs))
        return [_parts(output) for output in outputs if _is_continuous(output)]

    def numerical_jacobians(
        self, tensor: Tensor, evaluate: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """The Jacobians of all outputs with respect to one input."""
        rows: list[list[Tensor]] = []
        units = (1.0, 1j) if tensor.is_complex() else (1.0,)
        for index in itertools.product(*map(range, tensor.shape)):
            for unit in units:
                with _entry_moved(tensor, index, unit * self.eps) as upper:
                    after = evaluate()
                with _entry_moved(tensor, index, -unit * self.eps) as lower:
                    before = evaluate()
                # The step that the dtype really allowed, not the one that was asked for.
                step = ((upper - lower) / unit).real
                rows.append([(a - b) / step for a, b in zip(after, before, strict=True)])
        if not rows:
            width = [parts.numel() for parts in evaluate()]
            return [facula.zeros((0, count), dtype=facula.float64, device="cpu") for count in width]
        return [facula.stack(columns) for columns in zip(*rows, strict=True)]

    def numerical_projections(self, tensor: Tensor, direction: Tensor) -> list[Tensor]:
        """The derivatives of all outputs along one direction of one input."""
        step = self.eps * _from_parts(direction, tensor)
        with _shifted(tensor, step):
            after = self.output_parts()
        with _shifted(tensor, -step):
            before = self.output_parts()
        return [(a - b) / (2.0 * self.eps) for a, b in zip(after, before, strict=True)]

    def vjp(self, outputs: Sequence[Tensor], which: int, cotangent: Tensor) -> list[Tensor]:
        """The gradients of all inputs for one output's cotangent, as parts."""
        grads = facula.autograd.grad(
            outputs[which], self.varying, cotangent, retain_graph=True, allow_unused=True
        )
        return [
            _parts(facula.zeros_like(tensor) if grad is None else grad)
            for tensor, grad in zip(self.varying, grads, strict=True)
        ]

    def backward_jacobians(self, outputs: Sequence[Tensor], which: int) -> list[Tensor]:
        """The Jacobians of one output with respect to all inputs, a backward per column."""
        output = outputs[which]
        columns = [self.vjp(outputs, which, _basis_vector(i, output)) for i in _part_range(output)]
        return [facula.stack(column, 1) for column in zip(*columns, strict=True)]

    @functools.cached_property
    def forward_jacobians(self) -> list[list[Tensor]]:
        """The Jacobians by input and then by output, a forward mode pass per row."""
        result = []
        for which, tensor in enumerate(self.varying):
            rows = [
                [_parts(tangent) for tangent in self.jvp(which, _basis_vector(i, tensor))]
                for i in _part_range(tensor)
            ]
            result.append([facula.stack(row) for row in zip(*rows, strict=True)])
        return result

    def jvp(self, which: int, tangent: Tensor) -> list[Tensor]:
        """The tangents of all differentiable outputs for the tangent of one input."""
        forward = facula.autograd.forward_ad
        with forward.dual_level():
            arguments = list(self.inputs)
            arguments[self.positions[which]] = forward.make_dual(self.varying[which], tangent)
            unpacked = [forward.unpack_dual(o) for o in _differentiable(self.func(*arguments))]
            return [
                facula.zeros_like(dual.primal) if dual.tangent is None else dual.tangent
                for dual in unpacked
            ]

    def batched_jvp(self, which: int, tangents: Tensor) -> tuple[Tensor, ...]:
        """jvp for each of a batch of tangents, in one vectorised pass."""
        kept = [i for i, o in enumerate(_as_tuple(self.func(*self.inputs))) if _varies(o)]

        def outputs(tensor: Tensor) -> tuple[Tensor, ...]:
            arguments = list(self.inputs)
            arguments[self.positions[which]] = tensor
            results = _as_tuple(self.func(*arguments))
            return tuple(results[i] for i in kept)

        def push(tangent: Tensor) -> tuple[Tensor, ...]:
            return facula.func.jvp(outputs, (self.varying[which],), (tangent,))[1]

        return facula.func.vmap(push)(tangents)


@contextmanager
def _entry_moved(tensor: Tensor, index: tuple[int, ...], step: complex) -> Iterator[complex]:
    """Adds step to one entry; gives the value that was stored, and restores the entry."""
    # Through .data, so that graphs which saved the tensor do not see a new version.
    data = tensor.data
    original = data[index].item()
    data[index] = original + step
    try:
        yield data[index].item()
    finally:
        data[index] = original


@contextmanager
def _shifted(tensor: Tensor, step: Tensor) -> Iterator[None]:
    data = tensor.data
    original = data.clone()
    data.copy_(original + step)
    try:
        yield
    finally:
        data.copy_(original)


# -- The checks -----------------------------------------------------------------------------------


def _check_jacobians(subject: _Subject, forward: bool) -> None:
    """Compares all entries of all Jacobians."""
    outputs = subject.differentiable_outputs()
    by_input = [subject.numerical_jacobians(t, subject.output_parts) for t in subject.varying]
    for which, output in enumerate(outputs):
        if output.numel() == 0:
            continue
        backward = [] if forward else subject.backward_jacobians(outputs, which)
        for i, (position, tensor) in enumerate(subject.positioned):
            if tensor.numel() == 0:
                continue
            analytical = subject.forward_jacobians[i][which] if forward else backward[i]
            numerical = by_input[i][which]
            if not _all_close(analytical, numerical, subject.atol, subject.rtol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {which} with respect to input {position},\n"
                    f"numerical:{numerical}\nanalytical:{analytical}\n"
                    f"{_worst_entry(analytical, numerical, tensor, output)}"
                    f"{' in forward mode' if forward else ''}"
                )


def _check_projections(subject: _Subject, forward: bool) -> None:
    """Compares one number per Jacobian J: u.J v for random unit vectors u and v."""
    source = random.Random(0)
    outputs = subject.differentiable_outputs()
    cotangents = [_unit_vector(output, source) for output in outputs]
    directions = [_unit_vector(tensor, source) for tensor in subject.varying]
    grads = []
    if not forward:
        for which, (parts, output) in enumerate(zip(cotangents, outputs, strict=True)):
            grads.append(subject.vjp(outputs, which, _from_parts(parts, output)))
    for i, (position, tensor) in enumerate(subject.positioned):
        direction = directions[i]
        tangents = subject.jvp(i, _from_parts(direction, tensor)) if forward else []
        changes = subject.numerical_projections(tensor, direction)
        for which, (change, cotangent) in enumerate(zip(changes, cotangents, strict=True)):
            numerical = (cotangent * change).sum()
            if forward:
                analytical = (cotangent * _parts(tangents[which])).sum()
            else:
                analytical = (grads[which][i] * direction).sum()
            # What entries that are each wrong by atol can add up to.
            atol = subject.atol * float(cotangent.abs().sum()) * float(direction.abs().sum())
            if _all_close(analytical, numerical, atol, subject.rtol):
                continue
            # All entries tell the user more than the projection can.
            _check_jacobians(subject, forward)
            raise GradcheckError(
                f"Jacobian mismatch for output {which} with respect to input {position} along a "
                f"random direction: numerical {float(numerical)}, analytical {float(analytical)}. "
                "All single entries are within the tolerances (fast_mode=False passes), so either "
                "the function is not deterministic or the tolerances are too tight."
            )


def _all_close(actual: Tensor, expected: Tensor, atol: float, rtol: float) -> bool:
    if actual.numel() == 0:
        return True
    near = (actual - expected).abs() <= atol + rtol * expected.abs()
    same = (actual == expected) | (actual.isnan() & expected.isnan())  # inf, NaN
    return bool((near | same).all())


def _worst_entry(analytical: Tensor, numerical: Tensor, source: Tensor, output: Tensor) -> str:
    """Says in which entry the Jacobians differ most."""
    difference = (analytical - numerical).abs().reshape(-1).tolist()
    # NaN counts as the largest difference.
    flat = max(range(len(difference)), key=lambda i: (math.isnan(difference[i]), difference[i]))
    row, column = divmod(flat, analytical.shape[1])
    expected, actual = (matrix[row, column].item() for matrix in (numerical, analytical))
    return (
        f"d output{_entry_name(output, column)} / d input{_entry_name(source, row)} is "
        f"{expected:.6g} by finite differences and {actual:.6g} by autograd"
    )


def _entry_name(tensor: Tensor, part: int) -> str:
    suffix = ""
    if tensor.is_complex():
        part, imaginary = divmod(part, 2)
        suffix = ".imag" if imaginary else ".real"
    index = []
    for size in reversed(tensor.shape):
        part, coordinate = divmod(part, size)
        index.append(coordinate)
    return (f"{list(reversed(index))}" if index else "") + suffix


def _check_constant(subject: _Subject) -> None:
    """No output requires grad: then the inputs must not change any of them."""
    for position, tensor in subject.positioned:
        jacobians = subject.numerical_jacobians(tensor, subject.continuous_output_parts)
        for which, jacobian in enumerate(jacobians):
            if not _all_close(facula.zeros_like(jacobian), jacobian, subject.atol, subject.rtol):
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero: no output requires grad, "
                    f"but that of output {which} with respect to input {position} is\n{jacobian}"
                )


def _check_repeatable(subject: _Subject, tolerance: float) -> None:
    source = random.Random(1)
    outputs = subject.differentiable_outputs()
    for which, output in enumerate(outputs):
        cotangent = _random_like(output, source, False)
        runs = [subject.vjp(outputs, which, cotangent) for _ in range(2)]
        for position, first, second in zip(subject.positions, *runs, strict=True):
            if not _all_close(first, second, tolerance, 0.0):
                raise GradcheckError(
                    f"backward of output {which} is not reentrant: two runs with the same gradient "
                    f"give different gradients for input {position}. Set nondet_tol (now "
                    f"{tolerance}) if the operator is known to be nondeterministic.\n"
                    f"first run:\n{first}\nsecond run:\n{second}"
                )


def _check_linear_in_grad_outputs(subject: _Subject, check_dtypes: bool) -> None:
    """Zero gradients must give zero gradients of the right shape, and dtype if asked for."""
    outputs = subject.differentiable_outputs()
    zeros = [facula.zeros_like(output) for output in outputs]
    grads = facula.autograd.grad(outputs, subject.varying, zeros, allow_unused=True)
    for position, tensor, grad in zip(subject.positions, subject.varying, grads, strict=True):
        if grad is None:
            continue
        if grad.shape != tensor.shape:
            raise GradcheckError(
                f"the gradient for input {position} has shape {tuple(grad.shape)}, but the input "
                f"has shape {tuple(tensor.shape)}"
            )
        if check_dtypes and grad.dtype != tensor.dtype:
            raise GradcheckError(
                f"the gradient for input {position} has dtype {grad.dtype}, but the input has "
                f"dtype {tensor.dtype}"
            )
        if bool((grad != 0).any()):
            raise GradcheckError(
                "backward not multiplied by grad_output: gradients of zero for all outputs give "
                f"a gradient that is not zero for input {position}:\n{grad}"
            )


@functools.cache
def _dropping_gradients() -> Any:
    """An identity whose backward returns None, so that what precedes it gets no gradient."""

    class DropGradient(facula.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: Tensor) -> Tensor:
            return tensor.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> None:
            return None

    return DropGradient


def _check_undefined_grads(subject: _Subject) -> None:
    """Backward must treat missing gradients of all outputs, or of any one of them, as zero."""
    count = len(subject.differentiable_outputs())
    cases: list[set[int]] = [set(range(count))]
    if count > 1:
        cases += [{i} for i in range(count)]
    drop = _dropping_gradients().apply
    for dropped in cases:
        outputs = [
            drop(output) if i in dropped else output
            for i, output in enumerate(subject.differentiable_outputs())
        ]
        which = "all outputs" if len(dropped) == count else f"output {min(dropped)}"
        zeros = [facula.zeros_like(output) for output in outputs]
        try:
            grads = facula.autograd.grad(outputs, subject.varying, zeros, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                f"backward does not accept an undefined gradient (None) of {which}; treat None as "
                f"zeros, or pass check_undefined_grad=False. It raised: {error}"
            ) from error
        for position, grad in zip(subject.positions, grads, strict=True):
            if grad is not None and bool((grad != 0).any()):
                raise GradcheckError(
                    f"with an undefined gradient (None) of {which} and zeros elsewhere, the "
                    f"gradient for input {position} should be undefined or zero, but it is\n{grad}"
                )


def _check_batched_backward(subject: _Subject) -> None:
    """A batch of gradients at once must give what they give one by one."""
    source = random.Random(2)
    outputs = subject.differentiable_outputs()
    for which, output in enumerate(outputs):
        cotangents = [_random_like(output, source, False) for _ in range(2)]
        one_by_one = [subject.vjp(outputs, which, cotangent) for cotangent in cotangents]
        try:
            batched = facula.autograd.grad(
                output,
                subject.varying,
                facula.stack(cotangents),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"backward of output {which} failed on a batch of gradients: {error}"
            ) from error
        for i, position in enumerate(subject.positions):
            expected = facula.stack([run[i] for run in one_by_one]).reshape(-1)
            actual = facula.zeros_like(expected) if batched[i] is None else _parts(batched[i])
            if not _all_close(actual, expected, subject.atol, subject.rtol):
                raise GradcheckError(
                    f"a batch of gradients of output {which} gives other gradients for input "
                    f"{position} than they give one by one:\nbatched:\n{actual}\n"
                    f"one by one:\n{expected}"
                )


def _check_batched_forward(subject: _Subject) -> None:
    """A batch of tangents under vmap must give what they give one by one."""
    source = random.Random(3)
    for which, tensor in enumerate(subject.varying):
        tangents = [_random_like(tensor, source, False) for _ in range(2)]
        one_by_one = [subject.jvp(which, tangent) for tangent in tangents]
        try:
            batched = subject.batched_jvp(which, facula.stack(tangents))
        except RuntimeError as error:
            raise GradcheckError(
                f"forward mode failed on a batch of tangents of input "
                f"{subject.positions[which]}: {error}"
            ) from error
        for i, (actual, *expected) in enumerate(zip(batched, *one_by_one, strict=True)):
            wanted = _parts(facula.stack(expected))
            if not _all_close(_parts(actual), wanted, subject.atol, subject.rtol):
                raise GradcheckError(
                    f"a batch of tangents of input {subject.positions[which]} gives other tangents "
                    f"for output {i} than they give one by one:\nbatched:\n{actual}\n"
                    f"one by one:\n{wanted}"
                )
