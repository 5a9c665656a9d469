"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import Any

from facula import Tensor
from facula.nn import functional
from facula.nn.modules.batchnorm import _expect_dims, _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        """How many dimensions an input without a batch has."""
        raise NotImplementedError

    def _check_input_dim(self, input: Tensor) -> None:
        few = self._get_no_batch_dim()
        _expect_dims(input, few, few + 1)

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
        # States of old versions hold running moments also where they were not tracked.
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = [prefix + name for name in ("running_mean", "running_var")]
            found = [name for name in names if name in state_dict]
            if found:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, found))} for "
                    f"{type(self).__name__} with track_running_stats=False. If the checkpoint was "
                    "saved before running moments became optional, remove them from state_dict, or "
                    "make the module with track_running_stats=True."
                )
                for name in found:
                    state_dict.pop(name)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == self._get_no_batch_dim()
        channels = input.size(0 if alone else 1)
        if channels != self.num_features:
            words = (
                f"expected input's size at dim={0 if alone else 1} to match num_features "
                f"({self.num_features}), but got: {channels}."
            )
            if self.affine:
                raise ValueError(words)
            warnings.warn(
                f"input's size at dim={0 if alone else 1} does not match num_features. "
                "You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
                stacklevel=2,
            )
        out = functional.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """Brings each channel of each sequence to mean 0 and variance 1.

    Args:
        num_features: the number of channels C.
        eps: is added to the variance.
        momentum: how fast running moments move, where ``track_running_stats`` keeps them for
            evaluation.
        affine: whether there are a scale ``weight`` and a shift ``bias`` for each channel.

    Shape: (N, C, L) or (C, L), to the same.

    Example::

        >>> facula.nn.InstanceNorm1d(2)(facula.randn(1, 2, 8)).mean(2).abs().max() < 1e-5
        tensor(True)
    """

    def _get_no_batch_dim(self) -> int:
        return 2


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm1d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyInstanceNorm1d()
        >>> _ = layer(facula.ones(4, 3, 2))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm1d

    def _get_no_batch_dim(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """:class:`InstanceNorm1d` for images.

    Shape: (N, C, H, W) or (C, H, W), to the same.

    Example::

        >>> facula.nn.InstanceNorm2d(3)(facula.randn(2, 3, 4, 4)).shape
        facula.Size([2, 3, 4, 4])
    """

    def _get_no_batch_dim(self) -> int:
        return 3


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm2d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyInstanceNorm2d()
        >>> _ = layer(facula.ones(4, 3, 2, 2))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm2d

    def _get_no_batch_dim(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """:class:`InstanceNorm1d` for volumes.

    Shape: (N, C, D, H, W) or (C, D, H, W), to the same.

    Example::

        >>> facula.nn.InstanceNorm3d(3)(facula.randn(2, 3, 4, 4, 4)).shape
        facula.Size([2, 3, 4, 4, 4])
    """

    def _get_no_batch_dim(self) -> int:
        return 4


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An :class:`InstanceNorm3d` that takes the number of channels from its first input.

    Example::

        >>> layer = facula.nn.LazyInstanceNorm3d()
        >>> _ = layer(facula.ones(4, 3, 2, 2, 2))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm3d

    def _get_no_batch_dim(self) -> int:
        return 4
