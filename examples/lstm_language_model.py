#!/usr/bin/env python3
"""An LSTM that learns to add, by reading sentences such as "forty two plus nine is fifty one .".

The language is generated, so that we know what can be learnt: the first numbers of a sentence are
random, the words of the sum follow from them. A model of words alone cannot be better than the
entropy of the random part; sums that it gets right show that it carries digits in its state.

    python lstm_language_model.py        # trains, then completes sums
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from show import Progress, line_chart, smooth

import facula
from facula import Tensor, nn
from facula.nn import functional as F

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = [*ONES, *TENS, "hundred", "plus", "is", "."]
NUMBER = {word: i for i, word in enumerate(WORDS)}
LENGTH = 16  # words that are read at once


def spelled(n: int) -> list[str]:
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10 - 2], *([ONES[n % 10]] if n % 10 else [])]
    return ["hundred", *(spelled(n - 100) if n > 100 else [])]


def sentences(count: int, limit: int) -> Tensor:
    """A stream of words: `count` sums of two numbers below `limit`."""
    words: list[str] = []
    for a, b in facula.randint(limit, (count, 2)).tolist():
        words += [*spelled(a), "plus", *spelled(b), "is", *spelled(a + b), "."]
    return facula.tensor([NUMBER[w] for w in words])


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 32)
        self.lstm = nn.LSTM(32, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, len(WORDS))

    def forward(self, words: Tensor, state=None):  # (B, T) -> (B, T, len(WORDS))
        hidden, state = self.lstm(self.embed(words), state)
        return self.head(hidden), state

    @facula.no_grad()
    def complete(self, words: list[str], most: int = 6) -> list[str]:
        """The most probable words after `words`, up to the full stop."""
        self.eval()
        scores, state = self(facula.tensor([[NUMBER[w] for w in [".", *words]]]))
        answer: list[str] = []
        while len(answer) < most:
            best = int(scores[0, -1].argmax())
            if WORDS[best] == ".":
                break
            answer.append(WORDS[best])
            scores, state = self(facula.tensor([[best]]), state)
        return answer


def train(model: Model, stream: Tensor, batch: int, steps: int) -> list[float]:
    """Reads `batch` parts of the stream side by side; the state goes on from piece to piece."""
    rows = stream[: len(stream) // batch * batch].view(batch, -1)
    optimizer = facula.optim.Adam(model.parameters(), lr=4e-3)
    schedule = facula.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    progress, losses, state, at = Progress(steps), [], None, 0
    model.train()
    for step in range(1, steps + 1):
        if at + LENGTH + 1 > rows.shape[1]:
            at, state = 0, None
        inputs, targets = rows[:, at : at + LENGTH], rows[:, at + 1 : at + LENGTH + 1]
        at += LENGTH
        scores, state = model(inputs, state)
        state = tuple(s.detach() for s in state)  # the past is kept, its gradient is not
        loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.show(step, f"perplexity {math.exp(losses[-1]):.3f}")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach an LSTM sums in words.")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--out", type=Path, default=Path("lstm_language_model_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="small sums, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)
    limit, count, steps, width = (
        (10, 3000, 250, 64) if options.quick else (50, 20_000, options.steps, 128)
    )
    model = Model(width)
    losses = train(model, sentences(count, limit), 32, steps)

    right, lines = 0, []
    tried = facula.randint(limit, (100, 2)).tolist()
    for a, b in tried:
        answer = model.complete([*spelled(a), "plus", *spelled(b), "is"])
        good = answer == spelled(a + b)
        right += good
        lines.append(f"{'+' if good else '-'} {a} plus {b} is {' '.join(answer)}")
    print(f"perplexity at the end: {math.exp(sum(losses[-50:]) / len(losses[-50:])):.3f}")
    print(f"sums that are right: {right} of {len(tried)}")
    print("\n".join(lines[:8]))
    (options.out / "sums.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    window = max(1, steps // 80)
    curve = {"training": [math.exp(v) for v in smooth(losses, window)]}
    line_chart(options.out / "perplexity.svg", "Perplexity", curve, f"step / {window}")
    print(f"wrote {options.out / 'sums.txt'} and {options.out / 'perplexity.svg'}")


if __name__ == "__main__":
    main()
