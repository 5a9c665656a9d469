"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import facula
from facula import Tensor
from facula.nn import functional, init
from facula.nn.modules.lazy import LazyModuleMixin
from facula.nn.modules.module import Module
from facula.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """What batch and instance norm share: parameters and running moments of the channels."""

    _version = 2  # since version 2 the state has num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats

        def parameter() -> Parameter:
            return Parameter(facula.empty(num_features, **made))

        self.register_parameter("weight", parameter() if affine else None)
        self.register_parameter("bias", parameter() if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", facula.zeros(num_features, **made))
            self.register_buffer("running_var", facula.ones(num_features, **made))
            count = facula.tensor(0, dtype=facula.long, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, and no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scales of 1 and shifts of 0, and fresh running moments."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            known = own is not None and own.device.type != "meta"
            state_dict[key] = own if known else facula.tensor(0, dtype=facula.long)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        # In evaluation the running moments count where there are some, while training they are
        # moved where they are tracked.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracks = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if tracks else None,
            self.running_var if tracks else None,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    weight: UninitializedParameter  # type: ignore[assignment]
    bias: UninitializedParameter  # type: ignore[assignment]

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **made)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = facula.tensor(0, dtype=facula.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives the parameters the number of channels of the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        if self.affine:
            self.weight.materialize((self.num_features,))
            if self.bias is not None:
                self.bias.materialize((self.num_features,))
        if self.track_running_stats:
            self.running_mean.materialize((self.num_features,))
            self.running_var.materialize((self.num_features,))
        self.reset_parameters()


def _expect_dims(input: Tensor, *accepted: int) -> None:
    if input.dim() not in accepted:
        words = " or ".join(f"{n}D" for n in accepted)
        raise ValueError(f"expected {words} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Brings each channel to mean 0 and variance 1 over the batch, then scales and shifts it by
    learned numbers.

    In evaluation the moments are running averages of those of the batches, which move by
    ``momentum`` (``None``: the mean over all batches).

    Args:
        num_features: the number of channels C.
        eps: is added to the variance.
        affine: whether there are a scale ``weight`` and a shift ``bias``.
        track_running_stats: whether running moments are kept; without, evaluation uses the batch.

    Shape: (N, C) or (N, C, L), to the same.

    Example::

        >>> facula.nn.BatchNorm1d(2)(facula.randn(8, 2)).mean(0).abs().max() < 1e-5
        tensor(True)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm1d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyBatchNorm1d()
        >>> _ = layer(facula.ones(4, 3))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """:class:`BatchNorm1d` for images: moments over the batch and all pixels.

    Shape: (N, C, H, W), to the same.

    Example::

        >>> facula.nn.BatchNorm2d(3)(facula.randn(2, 3, 4, 4)).shape
        facula.Size([2, 3, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 4)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm2d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyBatchNorm2d()
        >>> _ = layer(facula.ones(4, 3, 2, 2))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """:class:`BatchNorm1d` for volumes.

    Shape: (N, C, D, H, W), to the same.

    Example::

        >>> facula.nn.BatchNorm3d(3)(facula.randn(2, 3, 4, 4, 4)).shape
        facula.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 5)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A :class:`BatchNorm3d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyBatchNorm3d()
        >>> _ = layer(facula.ones(4, 3, 2, 2, 2))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input: Tensor) -> None:
        _expect_dims(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes of a group. In one process it is that of its
    own batch.

    Shape: (N, C, *), to the same.

    Example::

        >>> model = facula.nn.Sequential(facula.nn.BatchNorm1d(2))
        >>> facula.nn.SyncBatchNorm.convert_sync_batchnorm(model)[0].num_features
        2
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every batch norm in it replaced by a SyncBatchNorm with its tensors."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
