"""Checkpoints that keep the results of chosen operators and compute only the others again.

Both contexts watch the kernels that run inside of a region, below the tape. The first keeps the
results that a policy chooses. In the second run they take the place of what the kernel would
compute; everything around them, the tape included, goes as before.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from facula import _C
from facula._library.namespaces import own_operator

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What to do with the results of an operator.

    ``MUST_SAVE`` and ``PREFER_SAVE`` keep them, ``MUST_RECOMPUTE`` and ``PREFER_RECOMPUTE`` compute
    them again. The difference matters to compilers only.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """The first argument of a policy.

    Attributes:
        is_recompute: whether the region runs for the second time.
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


# Operators that policies are not asked about: they compute nothing.
SAC_IGNORED_OPS = {own_operator(name) for name in ("detach", "numel", "dim", "size", "stride")}


class _Kept:
    """The results of one call, and their versions."""

    def __init__(self, results: tuple[Any, ...]) -> None:
        self.results = results
        self.versions = [None if r is None else r._version for r in results]

    def get(self, name: str, allow_mutation: bool) -> tuple[Any, ...]:
        for result, version in zip(self.results, self.versions, strict=True):
            if result is not None and result._version != version and not allow_mutation:
                raise RuntimeError(
                    f"a result of {name} that a selective checkpoint kept has been changed in "
                    "place since. Pass allow_cache_entry_mutation=True to "
                    "create_selective_checkpoint_contexts to use it nevertheless."
                )
        return tuple(None if r is None else r.detach() for r in self.results)


class _Watch(AbstractContextManager[None]):
    """Asks the policy about each kernel of this thread."""

    def __init__(self, policy: Callable[..., Any], kept: dict[str, deque[_Kept]]) -> None:
        self.policy, self.kept = policy, kept
        self.context = SelectiveCheckpointContext(is_recompute=False)
        self.name = ""

    def __enter__(self) -> None:
        self.outer = _C._set_kernel_hook(self.before, self.after, None)

    def __exit__(self, *exc: object) -> None:
        _C._set_kernel_hook(*self.outer)

    def keeps(self, name: str, args: tuple[Any, ...]) -> bool:
        operator = own_operator(name)
        if operator in SAC_IGNORED_OPS:
            return False
        answer = self.policy(self.context, operator, *args)
        if isinstance(answer, bool):  # as in the first version of this interface
            return answer
        if not isinstance(answer, CheckpointPolicy):
            raise TypeError(f"a policy should return a CheckpointPolicy, got {answer!r}")
        return answer in _KEPT

    def before(self, name: str, args: tuple[Any, ...]) -> Any:
        self.name = name
        return True if self.keeps(name, args) else None

    def after(self, results: tuple[Any, ...]) -> None:
        self.kept[self.name].append(_Kept(results))


class _Replay(_Watch):
    """The second run: what was kept takes the place of what would be computed."""

    def __init__(
        self, policy: Callable[..., Any], kept: dict[str, deque[_Kept]], allow_mutation: bool
    ) -> None:
        super().__init__(policy, kept)
        self.context = SelectiveCheckpointContext(is_recompute=True)
        self.allow_mutation = allow_mutation

    def __enter__(self) -> None:
        # A graph that is retained may be gone through again.
        self.left = {name: deque(calls) for name, calls in self.kept.items()}
        super().__enter__()

    def before(self, name: str, args: tuple[Any, ...]) -> Any:
        if not self.keeps(name, args):
            return None
        if not self.left.get(name):
            raise RuntimeError(
                f"the recomputation of a selective checkpoint calls {name} more often than the "
                "first run did; the policy and the function have to do the same both times"
            )
        return self.left[name].popleft().get(name, self.allow_mutation)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any],
    allow_cache_entry_mutation: bool = False,
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Contexts for ``context_fn`` of :func:`checkpoint` that keep the results of some operators.

    Views, random numbers and what is written in place are computed again in any case.

    Args:
        policy_fn_or_list: ``policy(ctx, op, *args)`` returns a :class:`CheckpointPolicy`; or a list
            of the operators to keep, such as ``facula.ops.aten.mm.default``.
        allow_cache_entry_mutation: whether what was kept may be changed in place meanwhile.

    Example::

        >>> import functools
        >>> from facula.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> keep = [facula.ops.aten.mm.default]
        >>> contexts = functools.partial(create_selective_checkpoint_contexts, keep)
        >>> x = facula.ones(2, 2, requires_grad=True)
        >>> y = checkpoint(lambda x: x.mm(x).exp(), x, use_reentrant=False, context_fn=contexts)
        >>> y.sum().backward()
    """
    if callable(policy_fn_or_list):
        policy = policy_fn_or_list
    elif isinstance(policy_fn_or_list, (list, tuple, set, frozenset)):
        from facula._library.namespaces import OpOverload

        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                raise ValueError(
                    "Expected op in `op_list` to be an OpOverload, such as "
                    f"facula.ops.aten.mm.default, but got: {op!r} of type {type(op)}"
                )
        chosen = set(policy_fn_or_list)

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            if op in chosen:
                return CheckpointPolicy.MUST_SAVE
            return CheckpointPolicy.PREFER_RECOMPUTE
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, deque[_Kept]] = defaultdict(deque)
    return _Watch(policy, kept), _Replay(policy, kept, allow_cache_entry_mutation)
