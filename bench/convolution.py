#!/usr/bin/env python3
"""Convolutions in PyTorch and in Facula: forward, and the gradients by input and by weight.

    bench/convolution.py [--only NAME ...] [--rounds 3] [--seconds 0.3]

Names end in _f, _x and _w; "_last" has channels_last tensors.
"""

from __future__ import annotations

from typing import Any

import harness

# name -> batch, input channels, size, output channels, kernel, stride, padding, groups, dims
SHAPES = {
    "resnet_56": (8, 64, 56, 64, 3, 1, 1, 1, 2),
    "resnet_28": (8, 128, 28, 128, 3, 1, 1, 1, 2),
    "resnet_14": (8, 256, 14, 256, 3, 1, 1, 1, 2),
    "resnet_7": (8, 512, 7, 512, 3, 1, 1, 1, 2),
    "resnet_stem": (4, 3, 224, 64, 7, 2, 3, 1, 2),
    "resnet_stride": (4, 128, 56, 128, 3, 2, 1, 1, 2),
    "expand_56": (4, 64, 56, 256, 1, 1, 0, 1, 2),
    "reduce_56": (4, 256, 56, 64, 1, 1, 0, 1, 2),
    "reduce_14": (8, 1024, 14, 256, 1, 1, 0, 1, 2),
    "depthwise_56": (8, 144, 56, 144, 3, 1, 1, 144, 2),
    "depthwise_stride": (4, 96, 112, 96, 3, 2, 1, 96, 2),
    "resnext_28": (8, 128, 28, 128, 3, 1, 1, 32, 2),
    "mnist_1": (32, 1, 28, 32, 3, 1, 0, 1, 2),
    "mnist_2": (32, 32, 26, 64, 3, 1, 0, 1, 2),
    "cifar_1": (32, 3, 32, 32, 3, 1, 1, 1, 2),
    "cifar_2": (32, 32, 32, 32, 3, 1, 1, 1, 2),
    "one_image_56": (1, 64, 56, 64, 3, 1, 1, 1, 2),
    "one_image_7": (1, 512, 7, 512, 3, 1, 1, 1, 2),
    "one_image_cifar": (1, 3, 32, 32, 3, 1, 1, 1, 2),
    "audio_wave": (8, 1, 16000, 64, 80, 4, 38, 1, 1),
    "audio_deep": (8, 64, 4000, 64, 9, 1, 4, 1, 1),
    "volume": (2, 16, 16, 32, 3, 1, 1, 1, 3),
}
# Transposed ones, as in a U-Net.
TRANSPOSED = {"up_2x2": (4, 128, 28, 64, 2, 2, 0, 1, 2), "up_4x4": (4, 128, 14, 64, 4, 2, 1, 1, 2)}


def add(name: str, shape: tuple[int, ...], transposed: bool, last: bool, part: str) -> None:
    n, c, size, o, kernel, stride, padding, groups, dims = shape

    def setup(T: Any) -> harness.Work:
        def made(*sizes: int) -> Any:
            t = T.randn(*sizes)
            return t.contiguous(memory_format=T.channels_last) if last else t

        x = made(n, c, *[size] * dims)
        w = made(*((c, o // groups) if transposed else (o, c // groups)), *[kernel] * dims)
        options = ([stride] * dims, [padding] * dims, [1] * dims, transposed, [0] * dims, groups)
        if part == "f":
            return lambda: T.convolution(x, w, None, *options)
        leaf = (x if part == "x" else w).requires_grad_()
        y = T.convolution(x, w, None, *options)
        grad = T.ones_like(y)
        return lambda: T.autograd.grad(y, leaf, grad, retain_graph=True)

    setup.__name__ = f"{name}{'_last' if last else ''}_{part}"
    harness.work(setup)


for _transposed, _shapes in ((False, SHAPES), (True, TRANSPOSED)):
    for _name, _shape in _shapes.items():
        for _last in (False, True)[: 2 if _shape[-1] == 2 else 1]:
            for _part in "fxw":
                add(_name, _shape, _transposed, _last, _part)


if __name__ == "__main__":
    harness.main(__file__, __doc__)
