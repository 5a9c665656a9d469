#!/usr/bin/env python3
"""Layers, forward and backward, small and large, against PyTorch.

bench/layers.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main


def forward(name: str, make: Callable[[Any], tuple[Any, ...]]) -> None:
    """``make`` returns a function and its arguments; under no_grad."""

    def prepared(T: Any) -> Work:
        T.manual_seed(0)
        f, *arguments = make(T)

        def run() -> Any:
            with T.no_grad():
                return f(*arguments)

        return run

    WORK[name] = prepared


def training(name: str, make: Callable[[Any], tuple[Any, ...]]) -> None:
    """The gradient of the first result by all arguments that are floats, and by the parameters."""

    def prepared(T: Any) -> Work:
        T.manual_seed(0)
        f, *arguments = make(T)
        leaves = [a.requires_grad_() for a in arguments if a.is_floating_point()]
        if isinstance(f, T.nn.Module):
            leaves += list(f.parameters())
        out = f(*arguments)
        gradient = T.ones_like(out if isinstance(out, T.Tensor) else out[0])

        def run() -> Any:
            out = f(*arguments)
            out = out if isinstance(out, T.Tensor) else out[0]
            return T.autograd.grad(out, leaves, gradient)

        return run

    WORK[name + "_grad"] = prepared


def both(name: str, make: Callable[[Any], tuple[Any, ...]]) -> None:
    forward(name, make)
    training(name, make)


# ---- elementwise
for _f in ("softplus", "hardswish", "silu", "mish", "gelu"):
    for _n, _shape in (("small", (64, 128)), ("large", (32, 256, 28, 28))):
        both(f"{_f}_{_n}", lambda T, f=_f, s=_shape: (getattr(T.nn.functional, f), T.randn(*s)))

# ---- over rows
for _f in ("softmax", "log_softmax"):
    for _n, _shape in (("small", (32, 10)), ("rows", (128, 1000)), ("large", (64, 12, 128, 128))):
        both(
            f"{_f}_{_n}",
            lambda T, f=_f, s=_shape: (lambda x: getattr(T.nn.functional, f)(x, -1), T.randn(*s)),
        )
for _n, _shape in (("small", (32, 64)), ("large", (32, 128, 768))):
    both(f"layer_norm_{_n}", lambda T, s=_shape: (T.nn.LayerNorm(s[-1]), T.randn(*s)))
for _n, _shape in (("small", (8, 16, 8, 8)), ("large", (32, 64, 56, 56))):
    both(f"batch_norm_{_n}", lambda T, s=_shape: (T.nn.BatchNorm2d(s[1]), T.randn(*s)))
    forward(
        f"batch_norm_eval_{_n}", lambda T, s=_shape: (T.nn.BatchNorm2d(s[1]).eval(), T.randn(*s))
    )

for _d in ("bfloat16", "float16"):
    both(
        f"layer_norm_{_d}",
        lambda T, d=_d: (
            T.nn.LayerNorm(768).to(getattr(T, d)),
            T.randn(32, 128, 768).to(getattr(T, d)),
        ),
    )
    both(
        f"embedding_{_d}",
        lambda T, d=_d: (
            T.nn.Embedding(10_000, 64).to(getattr(T, d)),
            T.randint(0, 10_000, (20_000,)),
        ),
    )

# ---- products
both("linear_64x784x512", lambda T: (T.nn.Linear(784, 512), T.randn(64, 784)))


def _encoder(T: Any) -> tuple[Any, ...]:
    layer = T.nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
    padding = T.arange(64).expand(4, 64) >= 48
    return (lambda x: layer(x, src_key_padding_mask=padding)), T.randn(4, 64, 128)


both("encoder_with_padding", _encoder)
for _b in (1, 32):
    for _f in ("LSTM", "GRU"):
        both(
            f"{_f.lower()}_batch_{_b}",
            lambda T, f=_f, b=_b: (getattr(T.nn, f)(64, 128), T.randn(32, b, 64)),
        )

# ---- convolutions
for _b in (1, 16):
    both(
        f"conv1d_batch_{_b}",
        lambda T, b=_b: (T.nn.Conv1d(64, 64, 5, padding=2), T.randn(b, 64, 256)),
    )
    both(
        f"conv2d_batch_{_b}",
        lambda T, b=_b: (T.nn.Conv2d(64, 64, 3, padding=1), T.randn(b, 64, 28, 28)),
    )
    both(
        f"conv3d_batch_{_b}",
        lambda T, b=_b: (T.nn.Conv3d(8, 16, 3, padding=1), T.randn(b, 8, 8, 16, 16)),
    )
    both(
        f"conv_transpose2d_batch_{_b}",
        lambda T, b=_b: (T.nn.ConvTranspose2d(32, 16, 4, 2, 1), T.randn(b, 32, 16, 16)),
    )
    both(
        f"depthwise_batch_{_b}",
        lambda T, b=_b: (T.nn.Conv2d(96, 96, 3, padding=1, groups=96), T.randn(b, 96, 28, 28)),
    )

# ---- images
_SIZES = (8, 64, 56, 56)
both("adaptive_avg_pool2d_7", lambda T: (T.nn.AdaptiveAvgPool2d(7), T.randn(8, 256, 14, 14)))
both("adaptive_avg_pool2d_7_odd", lambda T: (T.nn.AdaptiveAvgPool2d(7), T.randn(8, 256, 20, 20)))
both("adaptive_avg_pool2d_1", lambda T: (T.nn.AdaptiveAvgPool2d(1), T.randn(8, 256, 14, 14)))
both("avg_pool2d_2", lambda T: (T.nn.AvgPool2d(2), T.randn(*_SIZES)))
both("max_pool2d_2", lambda T: (T.nn.MaxPool2d(2), T.randn(*_SIZES)))
both("max_pool2d_3", lambda T: (T.nn.MaxPool2d(3, 2, 1), T.randn(*_SIZES)))
both("pixel_shuffle", lambda T: (T.nn.PixelShuffle(2), T.randn(*_SIZES)))
for _m in ("nearest", "bilinear", "bicubic"):
    both(
        f"interpolate_{_m}",
        lambda T, m=_m: (
            lambda x: T.nn.functional.interpolate(x, scale_factor=2, mode=m),
            T.randn(4, 32, 32, 32),
        ),
    )
both(
    "grid_sample",
    lambda T: (
        lambda x, g: T.nn.functional.grid_sample(x, g, align_corners=False),
        T.randn(4, 16, 64, 64),
        T.rand(4, 64, 64, 2) * 2 - 1,
    ),
)

# ---- tables and losses
both("embedding", lambda T: (T.nn.Embedding(10_000, 128), T.randint(0, 10_000, (32, 64))))
for _m in ("sum", "mean", "max"):
    both(
        f"embedding_bag_{_m}",
        lambda T, m=_m: (T.nn.EmbeddingBag(10_000, 64, mode=m), T.randint(0, 10_000, (256, 20))),
    )
both(
    "cross_entropy",
    lambda T: (T.nn.functional.cross_entropy, T.randn(128, 1000), T.randint(0, 1000, (128,))),
)


if __name__ == "__main__":
    main(__file__, __doc__)
