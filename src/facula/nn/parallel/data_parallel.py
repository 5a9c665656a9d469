"""A module whose batches are shared out among the CUDA devices of one machine."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import facula
from facula.nn.modules.module import Module
from facula.nn.parallel.parallel_apply import parallel_apply
from facula.nn.parallel.replicate import replicate
from facula.nn.parallel.scatter_gather import as_device, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


class DataParallel(Module, Generic[T]):
    """Calls a module with shares of its batch on several CUDA devices at the same time.

    In each call the module is copied to the devices, tensors among the arguments are cut along
    ``dim``, and the results are put together on ``output_device``. Gradients add up in the module.
    On a machine without CUDA it calls the module, as PyTorch's does.

    Args:
        module: what is called; it lies on the first of the devices.
        device_ids: the devices; all of them by default.
        output_device: where the results go; the first device by default.
        dim: the dimension of the batch.

    Attributes:
        module: the module.

    Example::

        >>> model = facula.nn.DataParallel(facula.nn.Linear(3, 2))
        >>> model(facula.ones(4, 3)).shape
        facula.Size([4, 2])
        >>> [name for name, _ in model.named_parameters()]
        ['module.weight', 'module.bias']
    """

    module: T

    def __init__(
        self,
        module: T,
        device_ids: Sequence[int | facula.device] | None = None,
        output_device: int | facula.device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = []
        if not facula.cuda.is_available():
            return
        if device_ids is None:
            device_ids = list(range(facula.cuda.device_count()))
        if not device_ids:
            raise RuntimeError("no available devices were found")
        self.device_ids = [as_device(d).index or 0 for d in device_ids]
        chosen = self.device_ids[0] if output_device is None else output_device
        self.output_device = as_device(chosen).index or 0
        self.src_device_obj = as_device(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in itertools.chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: "
                    f"{t.device}"
                )
        shares, named = self.scatter(inputs, kwargs, self.device_ids)
        if not shares:  # a module without arguments
            shares, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*shares[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(shares)])
        return self.gather(self.parallel_apply(replicas, shares, named), self.output_device)

    def replicate(self, module: T, device_ids: Sequence[Any]) -> list[T]:
        """Copies of the module."""
        return replicate(module, device_ids, not facula.is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Arguments for each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Any, kwargs: Any) -> list[Any]:
        """The results of the copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """One result of several."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Calls a module with shares of its batch on several devices, once.

    Example::

        >>> layer = facula.nn.Linear(3, 2)
        >>> facula.nn.parallel.data_parallel(layer, facula.ones(4, 3), ["cpu", "cpu"]).shape
        facula.Size([4, 2])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    if device_ids is None:
        device_ids = list(range(facula.cuda.device_count())) or ["cpu"]
    shares, named = scatter_kwargs(inputs, module_kwargs, device_ids, dim)
    if not shares:
        shares, named = ((),), ({},)
    if len(device_ids) == 1:
        return module(*shares[0], **named[0])
    used = device_ids[: len(shares)]
    results = parallel_apply(replicate(module, used), shares, named, used)
    return gather(results, device_ids[0] if output_device is None else output_device, dim)
