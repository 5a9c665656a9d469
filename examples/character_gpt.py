#!/usr/bin/env python3
"""A small GPT that writes Python, one character after the other.

It reads sources of Python's own standard library (or any text: `--text FILE`), learns to guess the
next character from the ones before, and then writes by sampling its own guesses.

    python character_gpt.py              # trains (two cores: 20 minutes), then writes
    python character_gpt.py --steps 500 --prompt "def " --temperature 0.7
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from show import Progress, line_chart, smooth

import facula
from facula import Tensor, nn
from facula.nn import functional as F

LIBRARY = Path(argparse.__file__).parent
SOURCES = ("argparse.py", "textwrap.py", "random.py", "statistics.py", "fractions.py", "shutil.py")


class Block(nn.Module):
    """Attention to what came before, then two linear layers, each added to its input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, T, D)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, characters: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.character = nn.Embedding(characters, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, 0.1) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.head.weight = self.character.weight  # one table for reading and for writing
        # Alike, so that positions do not drown what stands there.
        nn.init.normal_(self.character.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:  # (B, T) -> (B, T, characters)
        x = self.character(tokens) + self.position(facula.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @facula.no_grad()
    def write(self, tokens: Tensor, count: int, temperature: float, top: int = 20) -> Tensor:
        """`tokens` (1, T) with `count` more, each drawn among the `top` most probable."""
        self.eval()
        for _ in range(count):
            scores = self(tokens[:, -self.context :])[:, -1] / temperature
            least = scores.topk(min(top, scores.shape[-1])).values[:, -1:]
            probabilities = F.softmax(scores.masked_fill(scores < least, -math.inf), -1)
            tokens = facula.cat([tokens, facula.multinomial(probabilities, 1)], 1)
        return tokens


def batch_of(text: Tensor, size: int, context: int) -> tuple[Tensor, Tensor]:
    """Random pieces of the text, and the same shifted by one: what is to be guessed."""
    starts = facula.randint(len(text) - context - 1, (size, 1))
    pieces = text[starts + facula.arange(context + 1)]  # (size, context + 1)
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model: GPT, text: Tensor, size: int) -> Tensor:
    inputs, targets = batch_of(text, size, model.context)
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train(model: GPT, text: Tensor, steps: int, batch: int) -> list[float]:
    optimizer = facula.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99))
    warmup = max(1, steps // 20)
    schedule = facula.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min((s + 1) / warmup, 0.55 + 0.45 * math.cos(math.pi * min(s / steps, 1))),
    )
    progress, losses = Progress(steps), []
    model.train()
    for step in range(1, steps + 1):
        loss = loss_of(model, text, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.show(step, f"loss {losses[-1]:.3f}")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a GPT on characters and let it write.")
    parser.add_argument("--text", type=Path, help="a text file; Python's library by default")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--prompt", default="def ")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--out", type=Path, default=Path("character_gpt_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a tiny model, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)

    paths = [options.text] if options.text else [LIBRARY / name for name in SOURCES]
    text = "".join(p.read_text(encoding="utf-8") for p in paths)
    alphabet = sorted(set(text))
    number = {c: i for i, c in enumerate(alphabet)}
    tokens = facula.tensor([number[c] for c in text])
    cut = len(tokens) * 9 // 10
    size = (64, 64, 4, 2) if options.quick else (128, 192, 6, 4)
    model = GPT(len(alphabet), *size)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(text):,} characters, {len(alphabet)} different; {count:,} parameters")
    steps, batch = (150, 16) if options.quick else (options.steps, 32)
    losses = train(model, tokens[:cut], steps, batch)

    model.eval()
    with facula.no_grad():
        unseen = sum(loss_of(model, tokens[cut:], 16).item() for _ in range(10)) / 10
    guessing = math.log(len(alphabet))
    print(f"loss on text never seen: {unseen:.3f} nats a character (guessing: {guessing:.3f})")
    known = [c for c in options.prompt if c in number] or [text[0]]
    start = facula.tensor([[number[c] for c in known]])
    written = model.write(start, 100 if options.quick else 600, options.temperature)
    sample = "".join(alphabet[i] for i in written[0].tolist())
    (options.out / "sample.txt").write_text(sample + "\n", encoding="utf-8")
    print(f"\n{sample}\n")
    window = max(1, steps // 80)
    curve = {"training": smooth(losses, window)}
    line_chart(options.out / "loss.svg", "Nats per character", curve, f"step / {window}")
    print(f"wrote {options.out / 'sample.txt'} and {options.out / 'loss.svg'}")


if __name__ == "__main__":
    main()
