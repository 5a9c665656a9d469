#!/usr/bin/env python3
"""Teach a small network to read handwritten digits, with every layer written by hand.

The data is 1,797 grey pictures of 8 x 8 pixels (digits.npz, see README.md). The network has one
hidden layer; its parameters are four plain tensors, and autograd does the calculus. There is no
module, loss or optimiser class here: the whole method is in `scores`, `cross_entropy` and `train`.

    python train.py                      # trains and leaves model and picture in ./digits_out
    python train.py --epochs 5 --seed 3  # another length, another split and initialisation
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

import facula
from facula import Tensor

PIXELS, HIDDEN, CLASSES = 64, 256, 10
TEST_SIZE = 360
BATCH = 64
NOISE = 0.2  # added to the pixels while training, so that no picture is seen twice
LEARNING_RATE, MOMENTUM = 0.1, 0.9


# ---------------------------------------------------------------------------------- the data


def load_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures scaled to 0 .. 1 and their labels, shuffled and split into train and test."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        pictures = facula.from_numpy(file["images"].astype(np.float32) / 16)  # (1797, 64)
        labels = facula.from_numpy(file["labels"].astype(np.int64))  # (1797,)
    order = facula.randperm(len(labels))
    test, train = order[:TEST_SIZE], order[TEST_SIZE:]
    return pictures[train], labels[train], pictures[test], labels[test]


# ------------------------------------------------------------------------------- the network


def initial_parameters() -> dict[str, Tensor]:
    """Weights drawn so that a relu layer keeps the variance of its input (He et al., 2015)."""
    parameters = {
        "weight1": facula.randn(PIXELS, HIDDEN) * math.sqrt(2 / PIXELS),
        "bias1": facula.zeros(HIDDEN),
        "weight2": facula.randn(HIDDEN, CLASSES) * math.sqrt(1 / HIDDEN),
        "bias2": facula.zeros(CLASSES),
    }
    for parameter in parameters.values():
        parameter.requires_grad_()
    return parameters


def scores(parameters: dict[str, Tensor], pictures: Tensor) -> Tensor:
    """One score per class: the largest is the network's answer."""
    hidden = (pictures @ parameters["weight1"] + parameters["bias1"]).relu()  # (B, HIDDEN)
    return hidden @ parameters["weight2"] + parameters["bias2"]  # (B, CLASSES)


def cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log(probability given to the right class)."""
    # Subtracting the row's maximum changes no probability and keeps exp from overflowing.
    shifted = scores - scores.max(dim=1, keepdim=True).values
    log_probability = shifted - shifted.exp().sum(dim=1, keepdim=True).log()  # (B, CLASSES)
    return -log_probability.gather(1, labels.reshape(-1, 1)).mean()


def predict(parameters: dict[str, Tensor], pictures: Tensor) -> list[int]:
    with facula.no_grad():
        return scores(parameters, pictures).argmax(dim=1).tolist()


def accuracy(parameters: dict[str, Tensor], pictures: Tensor, labels: Tensor) -> float:
    right = [p == t for p, t in zip(predict(parameters, pictures), labels.tolist(), strict=True)]
    return sum(right) / len(right)


# ------------------------------------------------------------------------------- the training


def train(
    parameters: dict[str, Tensor], pictures: Tensor, labels: Tensor, epochs: int
) -> list[float]:
    """Stochastic gradient descent with momentum; returns the loss of every step."""
    velocity = {name: facula.zeros(*p.shape) for name, p in parameters.items()}
    steps = epochs * math.ceil(len(labels) / BATCH)
    progress, losses = Progress(steps), []
    for _ in range(epochs):
        order = facula.randperm(len(labels))
        for start in range(0, len(labels), BATCH):
            batch = order[start : start + BATCH]
            noisy = pictures[batch] + NOISE * facula.randn(len(batch), PIXELS)
            loss = cross_entropy(scores(parameters, noisy), labels[batch])
            loss.backward()
            # The rate falls from LEARNING_RATE to 0 along half a cosine.
            rate = LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * len(losses) / steps))
            with facula.no_grad():  # the update itself is no part of the function we derive
                for name, parameter in parameters.items():
                    velocity[name] = MOMENTUM * velocity[name] + parameter.grad
                    parameter -= rate * velocity[name]
                    parameter.grad = None  # backward adds to .grad: start the next step afresh
            losses.append(loss.item())
            progress.show(len(losses), losses[-1])
    return losses


class Progress:
    """A bar redrawn in place on a terminal; ten plain lines where the output is a file."""

    def __init__(self, total: int) -> None:
        self.total, self.start = total, time.perf_counter()
        self.live = sys.stdout.isatty()
        self.full, self.empty = "█·" if sys.stdout.encoding.lower() == "utf-8" else "#."
        self.next_draw = 0.0

    def show(self, done: int, loss: float) -> None:
        now = time.perf_counter()
        if self.live and now < self.next_draw and done < self.total:
            return  # at most 20 frames a second: drawing must not slow the training
        if not self.live and done * 10 // self.total == (done - 1) * 10 // self.total:
            return
        self.next_draw = now + 0.05
        filled = 30 * done // self.total
        rate = done / max(now - self.start, 1e-9)
        text = f"{done:5d}/{self.total} steps  {rate:6.0f} steps/s  loss {loss:.4f}"
        if self.live:
            end = "\n" if done == self.total else ""
            bar = self.full * filled + self.empty * (30 - filled)
            print(f"\r[{bar}] {text}", end=end, flush=True)
        else:
            print(text, flush=True)


# ------------------------------------------------------------------------- the model file


def save(path: Path, parameters: dict[str, Tensor]) -> None:
    np.savez(path, **{name: p.detach().numpy() for name, p in parameters.items()})


def load(path: Path) -> dict[str, Tensor]:
    with np.load(path) as file:
        return {name: facula.from_numpy(file[name]) for name in file.files}


# ------------------------------------------------------------------------------- the command


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a digit reader on 1,797 small pictures.")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the data (default 40)")
    parser.add_argument("--out", type=Path, default=Path("digits_out"), help="folder for results")
    parser.add_argument("--seed", type=int, default=0, help="split, initialisation and order")
    parser.add_argument("--quick", action="store_true", help="8 epochs, for a fast check")
    options = parser.parse_args()
    epochs = 8 if options.quick else options.epochs
    if epochs < 1:
        parser.error("--epochs must be at least 1")
    options.out.mkdir(parents=True, exist_ok=True)

    facula.manual_seed(options.seed)
    train_pictures, train_labels, test_pictures, test_labels = load_digits()
    parameters = initial_parameters()
    print(f"training on {len(train_labels)} digits, {epochs} epochs, seed {options.seed}")
    losses = train(parameters, train_pictures, train_labels, epochs)

    # What is reported is what was saved: the test runs on the parameters read back from the file.
    model_file = options.out / "digits_model.npz"
    save(model_file, parameters)
    restored = load(model_file)
    test_accuracy = accuracy(restored, test_pictures, test_labels)
    print(f"train accuracy: {accuracy(restored, train_pictures, train_labels):.2%}")
    print(f"test accuracy:  {test_accuracy:.2%}  ({len(test_labels)} digits never trained on)")
    print(f"wrote {model_file}")

    try:
        from picture import draw
    except ImportError as missing:
        print(f"no picture: {missing} (matplotlib comes with `pip install .[demo]`)")
        return
    picture_file = options.out / "digits.png"
    predicted = predict(restored, test_pictures)
    draw(
        picture_file, losses, test_accuracy, test_pictures.numpy(), test_labels.tolist(), predicted
    )
    print(f"wrote {picture_file}")


if __name__ == "__main__":
    main()
