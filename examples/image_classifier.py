#!/usr/bin/env python3
"""Reading digits with a convnet: modules, a data loader, an optimiser and a learning rate schedule.

The pictures are those of the digits example (digits/digits.npz): 1,797 of them, 8 x 8 grey pixels.
While training each one is shifted by up to a pixel, which makes many from few.

    python image_classifier.py           # trains, writes a checkpoint and a picture of mistakes
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from show import Progress, line_chart, smooth, tile, write_png

import facula
from facula import Tensor, nn
from facula.nn import functional as F
from facula.utils.data import DataLoader, TensorDataset

TEST_SIZE, BATCH = 360, 64


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """Training and test pictures, (1, 8, 8) from 0 to 1, with their labels."""
    with np.load(Path(__file__).parent / "digits" / "digits.npz") as file:
        pictures = facula.from_numpy(file["images"].astype(np.float32) / 16).view(-1, 1, 8, 8)
        labels = facula.from_numpy(file["labels"].astype(np.int64))
    order = facula.randperm(len(labels))
    test, train = order[:TEST_SIZE], order[TEST_SIZE:]
    return TensorDataset(pictures[train], labels[train]), TensorDataset(
        pictures[test], labels[test]
    )


class Convnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(  # (B, 1, 8, 8)
            nn.Conv2d(1, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (B, 32, 4, 4)
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),  # (B, 64, 2, 2)
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4, 10))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.classify(self.features(pictures))


def shifted(pictures: Tensor) -> Tensor:
    """Each picture moved by -1, 0 or 1 pixels in both directions."""
    padded = F.pad(pictures, (1, 1, 1, 1))
    n = len(pictures)
    rows = facula.randint(3, (n, 1, 1)) + facula.arange(8).view(1, 8, 1)
    columns = facula.randint(3, (n, 1, 1)) + facula.arange(8).view(1, 1, 8)
    return padded[facula.arange(n).view(n, 1, 1), 0, rows, columns].unsqueeze(1)


def train(model: Convnet, data: TensorDataset, epochs: int) -> list[float]:
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)
    steps = epochs * len(loader)
    optimizer = facula.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = facula.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    progress, losses = Progress(steps), []
    model.train()
    for _ in range(epochs):
        for pictures, labels in loader:
            loss = F.cross_entropy(model(shifted(pictures)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            progress.show(len(losses), f"loss {losses[-1]:.4f}")
    return losses


def predict(model: Convnet, pictures: Tensor) -> Tensor:
    model.eval()
    with facula.no_grad():
        return model(pictures).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a convnet on small digits.")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("image_classifier_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="6 epochs, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)
    train_data, test_data = load_digits()
    model = Convnet()
    losses = train(model, train_data, 6 if options.quick else options.epochs)

    # What is reported is what was saved.
    checkpoint = options.out / "convnet.pt"
    facula.save(model.state_dict(), checkpoint)
    restored = Convnet()
    restored.load_state_dict(facula.load(checkpoint))
    pictures, labels = test_data.tensors
    wrong = predict(restored, pictures) != labels
    print(f"test accuracy: {1 - wrong.float().mean().item():.2%} of {len(labels)} digits")
    print(f"wrote {checkpoint}")
    mistakes = pictures[wrong] if wrong.any() else pictures[:1]
    write_png(options.out / "mistakes.png", tile(mistakes.squeeze(1), 10), zoom=6)
    print(f"wrote {options.out / 'mistakes.png'}: the digits that it got wrong")
    window = max(1, len(losses) // 80)
    curve = {"training": smooth(losses, window)}
    line_chart(options.out / "loss.svg", "Cross-entropy", curve, f"step / {window}")
    print(f"wrote {options.out / 'loss.svg'}")


if __name__ == "__main__":
    main()
