"""Pruning: parts of a parameter are set to zero and stay so while it is trained.

A pruned parameter ``weight`` is kept as ``weight_orig`` beside a buffer ``weight_mask``; before
each forward pass ``weight`` is their product.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import facula
from facula import Tensor
from facula.nn.modules.module import Module
from facula.nn.utils.convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """What decides which parts of a tensor are pruned, and the hook that prunes them.

    A subclass has ``PRUNING_TYPE`` ("unstructured", "structured" or "global") and
    :meth:`compute_mask`.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor, on top of ``default_mask``.

        Args:
            t: the importance of each element, by default the tensor itself.
            default_mask: what was pruned before.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The original times the mask."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{name}_orig")
        return getattr(module, f"{name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prunes a parameter, on top of earlier pruning.

        Args:
            module: the module.
            name: the name of its parameter.
            args: the arguments of the method.
            importance_scores: the importance of each element, by default the parameter itself.
            kwargs: the keyword arguments of the method.

        Returns:
            The method, or a :class:`PruningContainer` with all methods of this parameter.
        """
        tensor = getattr(module, name)
        if importance_scores is None:
            importance_scores = tensor
        elif importance_scores.shape != tensor.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {tensor.shape}"
            )
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hooks_on(module, name)
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module "
                f"{module}. Use a PruningContainer."
            )
        if earlier:
            ((key, old),) = earlier.items()
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            mask = getattr(module, f"{name}_mask").detach().clone()
            mask = container.compute_mask(importance_scores, default_mask=mask)
            del module._forward_pre_hooks[key]
            method = container
        else:
            mask = method.compute_mask(importance_scores, default_mask=facula.ones_like(tensor))
            module.register_parameter(f"{name}_orig", tensor)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """A pruned copy of a tensor.

        Args:
            t: the tensor.
            default_mask: what was pruned before.
            importance_scores: the importance of each element, by default the tensor itself.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = facula.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned tensor the parameter: what is zero can change again."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _hooks_on(module: Module, name: str) -> dict[int, BasePruningMethod]:
    return {
        key: hook
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    }


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor, each on what the ones before it left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Adds a method that acts on the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method, which sees only what is not pruned yet."""
        method = self._pruning_methods[-1]
        left = self._left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype, copy=True)
        part = method.compute_mask(t[left], default_mask=default_mask[left])
        mask[left] = part.to(dtype=mask.dtype)
        return mask

    @staticmethod
    def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
        """An index of the elements, or channels, that are not pruned yet."""
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            return mask == 1
        if kind == "global":
            return (slice(None),) * t.dim()
        if kind != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` '
                "defined."
            )
        dim = method.dim + t.dim() if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        others = [d for d in range(t.dim()) if d != dim]
        index: list[Any] = [slice(None)] * t.dim()
        index[dim] = mask.sum(dim=others) != 0
        return tuple(index)


# ---- amounts


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _count(amount: Any, size: int) -> int:
    """How many of ``size`` an amount is, a number or a share."""
    count = amount if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return count  # type: ignore[return-value]


def _validate_structured(t: Tensor, dim: int) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


# ---- methods


class Identity(BasePruningMethod):
    """Prunes nothing, but keeps the parameter as a pruned one is kept."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is there."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """Puts the method on a parameter."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes the elements with the smallest scores."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the elements that are pruned."""
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=facula.contiguous_format)
        if count != 0:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: a share, or how many.
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return facula.topk(facula.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: float) -> Any:  # type: ignore[override]
        """Puts the method on a parameter."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements with the smallest absolute values.

    Args:
        amount: a share, or how many.
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return facula.topk(t.abs().reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Tensor | None = None
    ) -> Any:
        """Puts the method on a parameter."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prunes channels: all elements with one index in a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _kept(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the channels that are pruned."""
        _validate_structured(t, self.dim)
        count = _count(self.amount, t.shape[self.dim])
        if count == 0:
            return default_mask
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = self._kept(t, count)
        mask = facula.zeros_like(t)
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random.

    Args:
        amount: a share, or how many.
        dim: the dimension of the channels.
    """

    def _kept(self, t: Tensor, count: int) -> Tensor:
        chance = facula.rand(t.shape[self.dim])
        return chance > facula.kthvalue(chance, k=count).values

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, dim: int = -1
    ) -> Any:
        """Puts the method on a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels with the smallest norms.

    Args:
        amount: a share, or how many.
        n: the order of the norm.
        dim: the dimension of the channels.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, count: int) -> Tensor:
        dims = list(range(t.dim()))
        del dims[self.dim]
        norms = facula.norm(t, p=self.n, dim=dims)
        return facula.topk(norms, k=t.shape[self.dim] - count, largest=True).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> Any:
        """Puts the method on a parameter."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask: 1 for what stays, 0 for what is pruned.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """Puts the method on a parameter."""
        return super().apply(module, name, mask=mask)


# ---- functions


def identity(module: Module, name: str) -> Module:
    """Keeps a parameter as a pruned one is kept, without pruning anything.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.ones(2))
        >>> _ = facula.nn.utils.prune.identity(m, "weight")
        >>> m.weight_mask
        tensor([1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prunes elements of a parameter at random.

    Args:
        module: the module.
        name: the name of its parameter.
        amount: a share, or how many.

    Returns:
        The module.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the elements of a parameter with the smallest absolute values.

    Args:
        module: the module.
        name: the name of its parameter.
        amount: a share, or how many.
        importance_scores: what is compared, by default the parameter itself.

    Returns:
        The module.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([1., -3., 2.]))
        >>> _ = facula.nn.utils.prune.l1_unstructured(m, "weight", amount=1)
        >>> m.weight.detach()
        tensor([ 0., -3.,  2.])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prunes channels of a parameter at random.

    Args:
        module: the module.
        name: the name of its parameter.
        amount: a share, or how many.
        dim: the dimension of the channels.

    Returns:
        The module.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prunes the channels of a parameter with the smallest norms.

    Args:
        module: the module.
        name: the name of its parameter.
        amount: a share, or how many.
        n: the order of the norm.
        dim: the dimension of the channels.
        importance_scores: what is compared, by default the parameter itself.

    Returns:
        The module.

    Example::

        >>> m = facula.nn.Module()
        >>> m.weight = facula.nn.Parameter(facula.tensor([[1., 2.], [3., 4.]]))
        >>> _ = facula.nn.utils.prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
        >>> m.weight.detach()
        tensor([[0., 0.],
                [3., 4.]])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters together: an amount of all their elements.

    Args:
        parameters: pairs of modules and names.
        pruning_method: a method without structure, such as :class:`L1Unstructured`.
        importance_scores: what is compared, by pair; by default the parameters themselves.
        kwargs: the arguments of the method, such as ``amount``.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name) for module, name in parameters]
    masks = [
        getattr(module, f"{name}_mask", facula.ones_like(tensor))
        for (module, name), tensor in zip(parameters, tensors, strict=True)
    ]
    compared = [scores.get(pair, tensor) for pair, tensor in zip(parameters, tensors, strict=True)]
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    mask = container.compute_mask(parameters_to_vector(compared), parameters_to_vector(masks))
    for (module, name), tensor, part in zip(
        parameters, tensors, mask.split([t.numel() for t in tensors]), strict=True
    ):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes a parameter by a mask.

    Args:
        module: the module.
        name: the name of its parameter.
        mask: 1 for what stays, 0 for what is pruned.

    Returns:
        The module.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Makes a pruned tensor an ordinary parameter again; what was pruned stays zero for now.

    Args:
        module: the module.
        name: the name of its parameter.

    Returns:
        The module.
    """
    for key, hook in _hooks_on(module, name).items():
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """True when a parameter of a module, or of one inside it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
    )
