"""The base class of distributions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import facula
from facula import Size, Tensor
from facula.distributions import constraints
from facula.distributions.utils import _all_true, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A family of probability distributions, one for each element of a batch.

    Samples have the shape ``sample_shape + batch_shape + event_shape``. A subclass names its
    parameters in ``arg_constraints``; those that it keeps as attributes are checked, shown and
    expanded by this class.

    Args:
        batch_shape: the shape of the parameters, without the dimensions of one event.
        event_shape: the shape of one draw.
        validate_args: whether parameters and values are checked; None takes the default
            (:meth:`set_default_validate_args`).
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue  # needs the other parameters
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # follows from the parameters that were given
            value = getattr(self, name)
            if not _all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their parameters and values.

        Example::

            >>> from facula.distributions import Distribution, Normal
            >>> Distribution.set_default_validate_args(False)
            >>> Normal(0., -1.)  # senseless, and nobody says so
            Normal(loc: 0.0, scale: -1.0)
            >>> Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise ValueError(f"validate_args must be True or False, got {value!r}")
        Distribution._validate_args = value

    # ---- shapes

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw, without batching."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to ``batch_shape``, without copying.

        Example::

            >>> from facula.distributions import Normal
            >>> Normal(0., 1.).expand((3,)).batch_shape
            facula.Size([3])
        """
        new = self._get_checked_instance(self._own_class(), _instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.dim() - self._event_dim_of(name, constraint) :]
                new.__dict__[name] = value.expand(batch_shape + event)
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _event_dim_of(self, name: str, constraint: Any) -> int:
        return constraint.event_dim

    def _expand_rest(self, new: Any, batch_shape: Size) -> None:
        """Sets what an expanded instance has beside its parameters."""

    def _own_class(self) -> type:
        """The class of this package that ``self`` is or derives from: it knows how to expand."""
        package = Distribution.__module__.rpartition(".")[0]
        for cls in type(self).__mro__:
            if cls.__module__.startswith(package) and cls is not Distribution:
                return cls
        raise NotImplementedError(f"{type(self).__name__} does not define .expand()")

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of samples: sample_shape + batch_shape + event_shape."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    # ---- what a distribution offers

    @property
    def arg_constraints(self) -> Mapping[str, constraints.Constraint]:
        """The constraint that each parameter must satisfy. What is no tensor needs none."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws samples through which no gradient flows."""
        with facula.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws samples through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draws ``n`` samples. Use ``sample((n,))``."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of ``value``."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample up to ``value``."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of :meth:`cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along the first dimension.

        Args:
            expand: False leaves the dimensions of the batch at size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, for each element of the batch."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return facula.exp(self.entropy())

    # ---- checks

    def _validate_sample(self, value: Tensor) -> None:
        """Refuses a value of the wrong shape or outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor, got {type(value).__name__}"
            )
        first_event = value.dim() - len(self._event_shape)
        if value.shape[first_event:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        actual, expected = value.shape, self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i not in (1, j) and j != 1:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{actual} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not _all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"
