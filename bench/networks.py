#!/usr/bin/env python3
"""Convolutional networks beyond image classifiers, against PyTorch: inference and training steps.

    bench/networks.py [--only NAME ...] [--rounds 3] [--seconds 0.3]

Names end in _infer and _train; "_last" has channels_last tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import WORK, Work, main


def network(name: str, make: Callable[[Any], tuple[Any, Any]], last: bool = False) -> None:
    """``make`` returns a module and its input."""

    def made(T: Any) -> tuple[Any, Any]:
        T.manual_seed(0)
        net, x = make(T)
        if not last:
            return net, x
        return net.to(memory_format=T.channels_last), x.contiguous(memory_format=T.channels_last)

    def inference(T: Any) -> Work:
        net, x = made(T)
        net.eval()

        def run() -> Any:
            with T.no_grad():
                return net(x)

        return run

    def training(T: Any) -> Work:
        net, x = made(T)
        optimizer = T.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)

        def run() -> None:
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()

        return run

    WORK[f"{name}{'_last' if last else ''}_infer"] = inference
    WORK[f"{name}{'_last' if last else ''}_train"] = training


def unet(T: Any, batch: int, width: int, size: int) -> tuple[Any, Any]:
    """Two levels down and up again, with transposed convolutions and skips."""
    nn = T.nn

    def double(inside: int, outside: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
        )

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([double(3, width), double(width, 2 * width)])
            self.middle = double(2 * width, 4 * width)
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in (2 * width, width))
            self.join = nn.ModuleList(double(2 * c, c) for c in (2 * width, width))
            self.head = nn.Conv2d(width, 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for layer in self.down:
                x = layer(x)
                kept.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = self.middle(x)
            for up, join in zip(self.up, self.join, strict=True):
                x = join(T.cat([kept.pop(), up(x)], 1))
            return self.head(x)

    return UNet(), T.randn(batch, 3, size, size)


def generator(T: Any) -> tuple[Any, Any]:
    """Images of 64x64 from noise, by transposed convolutions (as in DCGAN)."""
    nn = T.nn
    layers = [nn.ConvTranspose2d(100, 256, 4, 1, 0, bias=False), nn.BatchNorm2d(256), nn.ReLU()]
    for c in (256, 128, 64):
        up = nn.ConvTranspose2d(c, c // 2, 4, 2, 1, bias=False)
        layers += [up, nn.BatchNorm2d(c // 2), nn.ReLU()]
    layers += [nn.ConvTranspose2d(32, 3, 4, 2, 1, bias=False), nn.Tanh()]
    return nn.Sequential(*layers), T.randn(16, 100, 1, 1)


def volumes(T: Any) -> tuple[Any, Any]:
    """A classifier of clips, with the volume halved by steps and by pooling."""
    nn = T.nn
    return nn.Sequential(
        nn.Conv3d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv3d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv3d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ), T.randn(4, 3, 8, 32, 32)


def waves(T: Any) -> tuple[Any, Any]:
    """A classifier of raw audio: a long first kernel, then short ones with pooling."""
    nn = T.nn
    layers = [nn.Conv1d(1, 64, 80, 4), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(4)]
    for c, o in ((64, 64), (64, 128), (128, 256)):
        layers += [nn.Conv1d(c, o, 3), nn.BatchNorm1d(o), nn.ReLU(), nn.MaxPool1d(4)]
    layers += [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(256, 35)]
    return nn.Sequential(*layers), T.randn(8, 1, 16000)


def dilated(T: Any) -> tuple[Any, Any]:
    """Gated convolutions with growing dilation (as in WaveNet), and one that gives samples back."""
    nn = T.nn

    class Dilated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(1, 32, 16, 8, 4)
            self.gated = nn.ModuleList(
                nn.Conv1d(32, 64, 3, padding=2**i, dilation=2**i) for i in range(6)
            )
            self.mix = nn.ModuleList(nn.Conv1d(32, 32, 1) for _ in range(6))
            self.last = nn.ConvTranspose1d(32, 1, 16, 8, 4)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            for gated, mix in zip(self.gated, self.mix, strict=True):
                x = x + mix(nn.functional.glu(gated(x), 1))
            return self.last(x)

    return Dilated(), T.randn(4, 1, 16000)


for _last in (False, True):
    network("unet", lambda T: unet(T, 2, 32, 96), _last)
    network("unet_one_image", lambda T: unet(T, 1, 16, 64), _last)
    network("generator", generator, _last)
network("volumes", volumes)
network("waves", waves)
network("dilated", dilated)


if __name__ == "__main__":
    main(__file__, __doc__)
