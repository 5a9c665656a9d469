"""Random shapes and layouts to time an operator with.

A seed gives the same numbers, shapes and layouts as in PyTorch: the draws come from one
``numpy.random.RandomState``, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import facula
from facula import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]


class ParameterAlias:
    """A value of a distribution that stands for that of another parameter.

    Example::

        >>> ParameterAlias("k0").alias_to
        'k0'
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn for each sample.

    Args:
        name: how sizes, steps and constraints refer to it.
        minval, maxval: the bounds, both possible.
        distribution: ``"uniform"``, ``"loguniform"`` (of whole numbers), or a dictionary of values
            with their probabilities.
        strict: keep the drawn number while others are drawn anew for the constraints' sake.

    Example::

        >>> from numpy.random import RandomState
        >>> FuzzedParameter("k", 1, 4, "uniform").sample(RandomState(0))
        1
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | Mapping[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        if isinstance(distribution, Mapping):
            if any(p < 0 for p in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError("Distribution is not normalized")
            if minval is not None or maxval is not None:
                raise AssertionError("a distribution of given values has no minval and no maxval")
        elif distribution not in ("uniform", "loguniform"):
            raise AssertionError(f"Unknown distribution: {distribution}")
        self._name = name
        self._bounds: Any = (minval, maxval)
        self._distribution = distribution
        self.strict = strict

    @property
    def name(self) -> str:
        """How it is referred to."""
        return self._name

    def sample(self, state: Any) -> Any:
        """One value, drawn from a ``numpy.random.RandomState``."""
        if isinstance(self._distribution, Mapping):
            values = list(self._distribution)
            chances = tuple(self._distribution.values())
            return values[state.choice(len(values), p=chances)]
        low, high = self._bounds
        if self._distribution == "loguniform":
            drawn = int(2 ** state.uniform(low=math.log2(low), high=math.log2(high)))
            return min(max(drawn, low), high)  # rounding may lead out of the bounds
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class FuzzedTensor:
    """A tensor whose shape and layout depend on parameters.

    Args:
        name: how it is called among the tensors of a sample.
        size: the sizes, as numbers or names of parameters.
        steps: the steps between elements, which lie in a larger tensor then.
        probability_contiguous: of the dimensions lying in memory in their order.
        min_elements, max_elements, max_allocation_bytes: samples beyond them are drawn again.
        dim_parameter: the parameter that says how many dimensions there are.
        roll_parameter: the parameter that says how far the order of dimensions is turned; unused.
        dtype: of the elements: random numbers in [0, 1), or from 1 to 126 where they are whole.
        cuda: whether it lies on the CUDA device.
        tensor_constructor: makes it instead, of ``size``, ``dtype`` and the parameters.

    Example::

        >>> FuzzedTensor("x", size=("k", 2)).name
        'x'
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: facula.dtype = facula.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self._name = name
        self._size = size
        self._steps = steps or ()
        self._probability_contiguous = probability_contiguous
        self._elements = (min_elements or 0, math.inf if max_elements is None else max_elements)
        self._most_bytes = math.inf if max_allocation_bytes is None else max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._roll_parameter = roll_parameter
        self._dtype = dtype
        self._cuda = cuda
        self._constructor = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self) -> str:
        """How it is called."""
        return self._name

    @staticmethod
    def default_tensor_constructor(
        size: Sequence[int], dtype: facula.dtype, **kwargs: Any
    ) -> Tensor:
        """Random numbers in the memory of the host."""
        if dtype.is_floating_point or dtype.is_complex:
            return facula.rand(size=size, dtype=dtype, device="cpu")
        return facula.randint(1, 127, size=size, dtype=dtype, device="cpu")

    def satisfies_constraints(self, params: Mapping[str, Any]) -> bool:
        """Whether the tensor of these parameters is within the bounds."""
        sizes, steps = self._sizes_and_steps(params)
        fewest, most = self._elements
        elements = math.prod(sizes)
        taken = elements * math.prod(steps) * self._dtype.itemsize
        return fewest <= elements <= most and taken <= self._most_bytes

    def _sizes_and_steps(self, params: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        by_name = self._dim_parameter
        dims = len(self._size) if by_name is None else params[by_name]

        def resolved(values: Sequence[str | int]) -> list[int]:
            numbers = [params.get(v, v) for v in values[:dims]]  # type: ignore[arg-type]
            return numbers + [1] * (dims - len(numbers))

        return resolved(self._size), resolved(self._steps)

    def _make_tensor(self, params: Mapping[str, Any], state: Any) -> tuple[Tensor, dict[str, Any]]:
        import numpy as np

        sizes, steps = self._sizes_and_steps(params)
        allocated = tuple(size * step for size, step in zip(sizes, steps, strict=True))
        whole = self._constructor(size=allocated, dtype=self._dtype, **params)
        if self._cuda:
            whole = whole.cuda()
        straight = order = np.arange(len(sizes))
        if state.rand() > self._probability_contiguous:
            while len(sizes) > 1 and np.array_equal(order, straight):
                order = state.permutation(len(sizes))
            # The memory is in that order, the dimensions are not.
            whole = whole.permute(tuple(order.tolist())).contiguous()
            whole = whole.permute(tuple(np.argsort(order).tolist()))
        tensor = whole[
            tuple(slice(0, n * step, step) for n, step in zip(sizes, steps, strict=True))
        ]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": tuple(steps),
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters until they fit, and makes tensors of them.

    Args:
        parameters: :class:`FuzzedParameter`s, or lists of them.
        tensors: :class:`FuzzedTensor`s, or lists of them.
        constraints: functions of the dictionary of parameters that say whether they fit.
        seed: of all that is drawn; a random one by default.

    Example::

        >>> fuzzer = Fuzzer(
        ...     [FuzzedParameter("k", 2, 5, "uniform")], [FuzzedTensor("x", size=("k", 3))], seed=0
        ... )
        >>> for tensors, properties, params in fuzzer.take(1):
        ...     assert tensors["x"].shape == (params["k"], 3)
        ...     assert properties["x"]["numel"] == 3 * params["k"]
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        tensors: Sequence[Any],
        constraints: Sequence[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        import numpy as np

        if seed is None:
            seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        self._seed = seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = tuple(constraints or ())
        names = {parameter.name for parameter in self._parameters}
        both = names & {tensor.name for tensor in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejections = 0
        self._drawn = 0

    def take(
        self, n: int
    ) -> Iterator[tuple[dict[str, Tensor], dict[str, dict[str, Any]], dict[str, Any]]]:
        """``n`` samples: tensors by name, what is known of them, and the parameters."""
        import numpy as np

        state = np.random.RandomState(self._seed)
        facula.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._draw(state)
            made = {tensor.name: tensor._make_tensor(params, state) for tensor in self._tensors}
            yield (
                {name: tensor for name, (tensor, _) in made.items()},
                {name: properties for name, (_, properties) in made.items()},
                params,
            )

    @property
    def rejection_rate(self) -> float:
        """The share of draws that did not fit."""
        return self._rejections / self._drawn if self._drawn else 0.0

    def _draw(self, state: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for _ in range(1000):
            drawn = {}
            for parameter in self._parameters:
                name = parameter.name
                drawn[name] = kept[name] if name in kept else parameter.sample(state)
                if parameter.strict:
                    kept[name] = drawn[name]
            drawn = _without_aliases(drawn)
            self._drawn += 1
            if all(fits(drawn) for fits in self._constraints) and all(
                tensor.satisfies_constraints(drawn) for tensor in self._tensors
            ):
                return drawn
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(values: Sequence[Any], kind: type) -> list[Any]:
    """The values, and those in lists among them."""
    return [v for value in values for v in ((value,) if isinstance(value, kind) else value)]


def _without_aliases(drawn: dict[str, Any]) -> dict[str, Any]:
    """Aliases replaced by what they stand for, which may be an alias itself."""
    while any(isinstance(value, ParameterAlias) for value in drawn.values()):
        before = drawn
        drawn = {
            name: before[value.alias_to] if isinstance(value, ParameterAlias) else value
            for name, value in before.items()
        }
        if drawn == before:
            raise ValueError("ParameterAliases stand for one another in a circle")
    return drawn
