#!/usr/bin/env python3
"""Teach a small network to read handwritten digits.

The data is 1,797 grey pictures of 8 x 8 pixels (digits.npz, see README.md). The program is what it
would be in PyTorch, with `facula` in the place of `torch`: layers of `nn`, a data loader, an
optimiser with a schedule for its rate, a checkpoint.

    python train.py                      # trains and leaves model and picture in ./digits_out
    python train.py --epochs 5 --seed 3  # another length, another split and initialisation
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import facula
from facula import Tensor, nn
from facula.nn import functional as F
from facula.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from show import Progress  # what all examples share

PIXELS, HIDDEN, CLASSES = 64, 256, 10
TEST_SIZE = 360
BATCH = 64
NOISE = 0.2  # added to the pixels while training, so that no picture is seen twice


# ---------------------------------------------------------------------------------- the data


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """Pictures scaled to 0 .. 1 with their labels, shuffled and split into train and test."""
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        pictures = facula.from_numpy(file["images"].astype(np.float32) / 16)  # (1797, 64)
        labels = facula.from_numpy(file["labels"].astype(np.int64))  # (1797,)
    order = facula.randperm(len(labels))
    test, train = order[:TEST_SIZE], order[TEST_SIZE:]
    return (
        TensorDataset(pictures[train], labels[train]),
        TensorDataset(pictures[test], labels[test]),
    )


# ------------------------------------------------------------------------------- the network


def make_model() -> nn.Sequential:
    """One score per class: the largest is the network's answer."""
    return nn.Sequential(
        nn.Linear(PIXELS, HIDDEN),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(HIDDEN, CLASSES),
    )


def predict(model: nn.Module, pictures: Tensor) -> Tensor:
    model.eval()
    with facula.no_grad():
        return model(pictures).argmax(dim=1)


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    pictures, labels = data.tensors
    return (predict(model, pictures) == labels).float().mean().item()


# ------------------------------------------------------------------------------- the training


def train(model: nn.Module, data: TensorDataset, epochs: int) -> list[float]:
    """Stochastic gradient descent with momentum; returns the loss of every step."""
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    steps = epochs * len(loader)
    optimizer = facula.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = facula.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    progress, losses = Progress(steps), []
    model.train()
    for _ in range(epochs):
        for pictures, labels in loader:
            noisy = pictures + NOISE * facula.randn_like(pictures)
            loss = F.cross_entropy(model(noisy), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            progress.show(len(losses), f"loss {losses[-1]:.4f}")
    return losses


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
    train_data, test_data = load_digits()
    model = make_model()
    print(f"training on {len(train_data)} digits, {epochs} epochs, seed {options.seed}")
    losses = train(model, train_data, epochs)

    # What is reported is what was saved: the test runs on a model read back from the file.
    model_file = options.out / "digits_model.pt"
    facula.save(model.state_dict(), model_file)
    restored = make_model()
    restored.load_state_dict(facula.load(model_file))
    test_accuracy = accuracy(restored, test_data)
    print(f"train accuracy: {accuracy(restored, train_data):.2%}")
    print(f"test accuracy:  {test_accuracy:.2%}  ({len(test_data)} digits never trained on)")
    print(f"wrote {model_file}")

    try:
        from picture import draw
    except ImportError as missing:
        print(f"no picture: {missing} (matplotlib comes with `pip install .[demo]`)")
        return
    picture_file = options.out / "digits.png"
    pictures, labels = test_data.tensors
    predicted = predict(restored, pictures).tolist()
    draw(picture_file, losses, test_accuracy, pictures.numpy(), labels.tolist(), predicted)
    print(f"wrote {picture_file}")


if __name__ == "__main__":
    main()
