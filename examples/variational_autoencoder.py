#!/usr/bin/env python3
"""A variational autoencoder that learns to draw digits (Kingma and Welling, 2014).

An encoder gives, for a picture, a normal distribution over a short code; a decoder gives, for a
code, a distribution over pictures. Both are trained to make the picture probable while the code
stays close to a standard normal: that is the evidence lower bound, written here with
`facula.distributions` as it stands in the paper. Afterwards codes drawn from the standard normal
become new digits.

    python variational_autoencoder.py    # trains, writes drawn digits as a picture
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from show import Progress, line_chart, smooth, tile, write_png

import facula
from facula import Tensor, nn
from facula.distributions import ContinuousBernoulli, Independent, Normal, kl_divergence

PIXELS, HIDDEN, CODE, BATCH = 64, 256, 8, 64


def load_pictures() -> Tensor:
    with np.load(Path(__file__).parent / "digits" / "digits.npz") as file:
        return facula.from_numpy(file["images"].astype(np.float32) / 16)  # (1797, 64)


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, 2 * CODE),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(CODE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, PIXELS),
        )  # fmt: skip

    def posterior(self, pictures: Tensor) -> Independent:
        """What the code may have been, given the picture."""
        loc, log_scale = self.encoder(pictures).chunk(2, dim=-1)
        return Independent(Normal(loc, log_scale.clamp(-6, 3).exp()), 1)

    def likelihood(self, code: Tensor) -> Independent:
        """Which pictures the code may become; grey pixels want a continuous Bernoulli."""
        return Independent(ContinuousBernoulli(logits=self.decoder(code)), 1)


def prior() -> Independent:
    return Independent(Normal(facula.zeros(CODE), facula.ones(CODE)), 1)


def evidence(model: Autoencoder, pictures: Tensor, weight: float = 1.0) -> Tensor:
    """The lower bound of the log-density of each picture, in nats."""
    posterior = model.posterior(pictures)
    code = posterior.rsample()  # the gradient flows through the sample
    return model.likelihood(code).log_prob(pictures) - weight * kl_divergence(posterior, prior())


def train(model: Autoencoder, pictures: Tensor, epochs: int) -> list[float]:
    optimizer = facula.optim.Adam(model.parameters(), lr=1e-3)
    steps = epochs * math.ceil(len(pictures) / BATCH)
    progress, losses = Progress(steps), []
    for epoch in range(epochs):
        weight = min(1.0, (epoch + 1) / (0.3 * epochs))  # codes may be far from normal at first
        for batch in facula.randperm(len(pictures)).split(BATCH):
            loss = -evidence(model, pictures[batch], weight).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress.show(len(losses), f"bound {-losses[-1]:8.2f} nats")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a variational autoencoder on digits.")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument(
        "--out", type=Path, default=Path("variational_autoencoder_out"), help="folder"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="6 epochs, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)
    pictures = load_pictures()
    pictures = pictures[facula.randperm(len(pictures))]
    test, known = pictures[:200], pictures[200:]
    model = Autoencoder()
    losses = train(model, known, 6 if options.quick else options.epochs)

    with facula.no_grad():
        bound = evidence(model, test).mean().item()
        print(f"evidence lower bound on pictures never seen: {bound:.2f} nats")
        some = test[:10]
        copies = facula.sigmoid(model.decoder(model.posterior(some).mean))
        drawn = facula.sigmoid(model.decoder(prior().sample((40,))))
    sheet = facula.cat([some, copies, drawn]).view(-1, 8, 8)
    picture = options.out / "digits.png"
    write_png(picture, tile(sheet, 10), zoom=6)
    print(f"wrote {picture}: a row of digits, a row of their copies, four rows of drawn digits")
    window = max(1, len(losses) // 80)
    curve = {"bound": [-v for v in smooth(losses, window)]}
    line_chart(options.out / "bound.svg", "Evidence lower bound", curve, f"step / {window}")
    print(f"wrote {options.out / 'bound.svg'}")


if __name__ == "__main__":
    main()
