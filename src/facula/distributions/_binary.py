"""Distributions that are given by probabilities or by log-odds."""

from __future__ import annotations

from typing import Any

from facula import Size, Tensor
from facula.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ProbsOrLogits:
    """Keeps the parameter that was given; the other follows from it when it is asked for."""

    _is_binary = True

    def _set_probs_or_logits(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Broadcasts the given one with ``others``, which are returned."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        *rest, given = broadcast_all(*others, given)
        self.__dict__[name] = given
        return rest

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds, or the logarithms of the probabilities of categories."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()
