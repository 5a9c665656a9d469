#!/usr/bin/env python3
"""Work in bfloat16 and half against PyTorch: products, convolutions, inference, autocast training.

bench/halves.py [--only NAME ...] [--rounds 3] [--seconds 0.3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main

DTYPES = {"bf16": "bfloat16", "f16": "float16"}


def add(name: str, make: Callable[[Any, Any], tuple[Any, ...]]) -> None:
    """``make(package, dtype)`` returns a function and its arguments."""

    def setup(T: Any, dtype: str) -> Work:
        T.manual_seed(0)
        f, *arguments = make(T, getattr(T, dtype))

        def run() -> Any:
            with T.no_grad():
                return f(*arguments)

        return run

    for short, dtype in DTYPES.items():
        WORK[f"{name}_{short}"] = lambda T, dtype=dtype: setup(T, dtype)


# ---- products: rows x depth x columns
SHAPES = [(64, 64, 64), (256, 256, 256), (1024, 1024, 1024), (2048, 2048, 2048)]
SHAPES += [(1, 1024, 4096), (16, 1024, 4096), (4096, 512, 64), (64, 8192, 64), (33, 300, 77)]
for _m, _k, _n in SHAPES:
    add(
        f"product_{_m}x{_k}x{_n}",
        lambda T, d, m=_m, k=_k, n=_n: (T.mm, T.randn(m, k).to(d), T.randn(k, n).to(d)),
    )
for _rows in (1, 8, 128):
    add(
        f"linear_{_rows}x768x3072",
        lambda T, d, rows=_rows: (T.nn.Linear(768, 3072).to(d), T.randn(rows, 768).to(d)),
    )
add(
    "many_products_96x64x64x64",
    lambda T, d: (T.bmm, T.randn(96, 64, 64).to(d), T.randn(96, 64, 64).to(d)),
)

# ---- convolutions: batch, channels, size, channels out, kernel, step, groups
CONVOLUTIONS = {
    "3x3_56": (4, 64, 56, 64, 3, 1, 1),
    "3x3_14": (8, 256, 14, 256, 3, 1, 1),
    "3x3_stride": (4, 128, 56, 128, 3, 2, 1),
    "1x1_28": (4, 256, 28, 128, 1, 1, 1),
    "stem": (4, 3, 224, 64, 7, 2, 1),
    "depthwise_56": (4, 144, 56, 144, 3, 1, 144),
    "one_image_28": (1, 128, 28, 128, 3, 1, 1),
}


def convolution(T: Any, d: Any, shape: tuple[int, ...], last: bool) -> tuple[Any, Any]:
    batch, channels, size, out, kernel, step, groups = shape
    layer = T.nn.Conv2d(channels, out, kernel, step, kernel // 2, groups=groups).to(d)
    x = T.randn(batch, channels, size, size).to(d)
    if last:
        layer = layer.to(memory_format=T.channels_last)
        x = x.contiguous(memory_format=T.channels_last)
    return layer, x


def gradients(layer: Any, x: Any, T: Any) -> Callable[[], Any]:
    leaves = [x.requires_grad_(), *layer.parameters()]

    def run() -> Any:
        with T.enable_grad():
            y = layer(x)
        return T.autograd.grad(y, leaves, T.ones_like(y))

    return run


for _name, _shape in CONVOLUTIONS.items():
    for _last in (False, True):
        _full = f"conv_{_name}{'_last' if _last else ''}"
        add(_full, lambda T, d, s=_shape, x=_last: convolution(T, d, s, x))
        add(
            f"{_full}_train",
            lambda T, d, s=_shape, x=_last: (gradients(*convolution(T, d, s, x), T),),
        )


# ---- inference
def digits(T: Any) -> Any:
    nn = T.nn
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers)


def residual_network(T: Any) -> Any:
    """Blocks of two convolutions as in ResNet-18."""
    nn = T.nn

    class Block(nn.Module):
        def __init__(self, inside: int, out: int, step: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inside, out, 3, step, 1, bias=False),
                nn.BatchNorm2d(out),
                nn.ReLU(),
                nn.Conv2d(out, out, 3, 1, 1, bias=False),
                nn.BatchNorm2d(out),
            )
            self.skip = nn.Conv2d(inside, out, 1, step) if step > 1 else nn.Identity()

        def forward(self, x: Any) -> Any:
            return T.relu(self.body(x) + self.skip(x))

    stem = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [b for i, o, s in widths for b in (Block(i, o, s), Block(o, o, 1))]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def encoder(T: Any) -> Any:
    layer = T.nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True, norm_first=True)
    return T.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


INFERENCE: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "mlp": (digits, (64, 784)),
    "mlp_one": (digits, (1, 784)),
    "resnet": (residual_network, (4, 3, 224, 224)),
    "resnet_one": (residual_network, (1, 3, 224, 224)),
    "encoder": (encoder, (8, 128, 256)),
    "encoder_one": (encoder, (1, 32, 256)),
    "lstm": (lambda T: T.nn.LSTM(128, 256, batch_first=True), (16, 32, 128)),
    "lstm_one": (lambda T: T.nn.LSTM(128, 256, batch_first=True), (1, 32, 128)),
}
for _name, (_net, _size) in INFERENCE.items():
    add(
        f"infer_{_name}",
        lambda T, d, net=_net, s=_size: (net(T).eval().to(d), T.randn(*s).to(d)),
    )


# ---- attention: batch, heads, steps, width
def attention(T: Any, d: Any, shape: tuple[int, ...], **options: Any) -> tuple[Any, ...]:
    f = T.nn.functional.scaled_dot_product_attention
    tensors = [T.randn(*shape).to(d) for _ in range(3)]
    return (lambda *qkv: f(*qkv, **options)), *tensors


def attention_gradients(T: Any, d: Any, shape: tuple[int, ...], causal: bool) -> tuple[Any, ...]:
    f, *tensors = attention(T, d, shape, is_causal=causal)
    leaves = [t.requires_grad_() for t in tensors]
    grad = T.randn(*shape).to(d)

    def run() -> Any:
        with T.enable_grad():
            y = f(*leaves)
        return T.autograd.grad(y, leaves, grad)

    return (run,)


def masked_attention(T: Any, d: Any, shape: tuple[int, ...], boolean: bool) -> tuple[Any, ...]:
    mask = T.randn(shape[2], shape[2])
    return attention(T, d, shape, attn_mask=mask > 0 if boolean else mask.to(d))


def decoding(T: Any, d: Any, batch: int, heads: int, key_heads: int, width: int) -> Any:
    """One query for each of 1024 keys."""
    f = T.nn.functional.scaled_dot_product_attention
    kv = [T.randn(batch, key_heads, 1024, width).to(d) for _ in range(2)]
    q = T.randn(batch, heads, 1, width).to(d)
    return (lambda *qkv: f(*qkv, enable_gqa=heads > key_heads)), q, *kv


ATTENTION = {
    "": (4, 8, 512, 64),
    "_long": (1, 8, 2048, 64),
    "_short": (8, 4, 64, 64),
    "_wide": (2, 8, 512, 128),
    "_197x80": (4, 8, 197, 80),
    "_one": (1, 4, 32, 64),
}
for _name, _shape in ATTENTION.items():
    for _causal in (False, True):
        _full = f"attention{_name}{'_causal' if _causal else ''}"
        add(_full, lambda T, d, s=_shape, c=_causal: attention(T, d, s, is_causal=c))
        add(f"{_full}_train", lambda T, d, s=_shape, c=_causal: attention_gradients(T, d, s, c))
for _name, _boolean in (("added", False), ("boolean", True)):
    add(
        f"attention_mask_{_name}",
        lambda T, d, b=_boolean: masked_attention(T, d, (4, 8, 256, 64), b),
    )
add("attention_decode", lambda T, d: decoding(T, d, 1, 16, 16, 64))
add("attention_decode_batch", lambda T, d: decoding(T, d, 8, 16, 16, 64))
add("attention_decode_shared", lambda T, d: decoding(T, d, 4, 32, 8, 128))


# ---- training under autocast
def training(name: str, net_of: Callable[[Any], Any], size: tuple[int, ...]) -> None:
    def setup(T: Any) -> Work:
        T.manual_seed(0)
        net = net_of(T)
        x = T.randn(*size)
        optimizer = T.optim.SGD(net.parameters(), lr=1e-4)

        def run() -> None:
            optimizer.zero_grad()
            with T.autocast("cpu", dtype=T.bfloat16):
                loss = net(x).float().square().mean()
            loss.backward()
            optimizer.step()

        return run

    WORK[f"autocast_train_{name}_bf16"] = setup


training("mlp", digits, (64, 784))
training("resnet", residual_network, (2, 3, 128, 128))
training("encoder", encoder, (8, 128, 256))


if __name__ == "__main__":
    main(__file__, __doc__)
