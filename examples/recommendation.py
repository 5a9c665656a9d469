#!/usr/bin/env python3
"""Recommending films: matrix factorisation with features, on ratings that are made up.

A rating is modelled as mean + bias of the person + bias of the film + product of two short
vectors, one for the person and one for the film; the film's vector also gets a part that follows
from its genres, which helps with films that few have rated. The ratings are drawn from hidden
tastes, so that we know how well any method could do.

    python recommendation.py             # trains, prints recommendations, writes a chart
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from show import Progress, line_chart, smooth

import facula
from facula import Tensor, nn

PEOPLE, FILMS, GENRES, TASTES, NOISE = 500, 300, 8, 6, 0.4
FACTORS, BATCH = 12, 512


def make_ratings(count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Who rated what, with how many stars, and the genres of every film, (FILMS, GENRES)."""
    genres = (facula.rand(FILMS, GENRES) < 0.25).float()
    genres[facula.arange(FILMS), facula.randint(GENRES, (FILMS,))] = 1.0
    film = genres @ facula.randn(GENRES, TASTES) / 2 + 0.5 * facula.randn(FILMS, TASTES)
    person = facula.randn(PEOPLE, TASTES) / math.sqrt(TASTES)
    liking = 3.5 + 0.4 * facula.randn(PEOPLE, 1) + 0.4 * facula.randn(FILMS) + person @ film.T
    # Popular films get most of the ratings: the n-th about 1 / sqrt(n) as many as the first.
    popularity = facula.arange(1, FILMS + 1).float() ** -0.5
    who = facula.randint(PEOPLE, (count,))
    what = facula.multinomial(popularity, count, replacement=True)
    stars = (liking[who, what] + NOISE * facula.randn(count)).clamp(0.5, 5.0)
    return who, what, stars, genres


class Recommender(nn.Module):
    def __init__(self, genres: Tensor, mean: float) -> None:
        super().__init__()
        self.register_buffer("genres", genres)
        self.mean = mean
        self.person = nn.Embedding(PEOPLE, FACTORS)
        self.film = nn.Embedding(FILMS, FACTORS)
        self.by_genre = nn.Linear(GENRES, FACTORS, bias=False)
        self.person_bias = nn.Embedding(PEOPLE, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        for table in (self.person, self.film):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.person_bias, self.film_bias):
            nn.init.zeros_(table.weight)

    def forward(self, who: Tensor, what: Tensor) -> Tensor:
        film = self.film(what) + self.by_genre(self.genres[what])  # (B, FACTORS)
        match = (self.person(who) * film).sum(-1)
        biases = self.person_bias(who) + self.film_bias(what)
        return self.mean + match + biases.squeeze(-1)


def train(model: Recommender, ratings: tuple[Tensor, Tensor, Tensor], epochs: int) -> list[float]:
    who, what, stars = ratings
    optimizer = facula.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.3)
    steps = epochs * math.ceil(len(stars) / BATCH)
    progress, losses = Progress(steps), []
    for _ in range(epochs):
        for batch in facula.randperm(len(stars)).split(BATCH):
            error = model(who[batch], what[batch]) - stars[batch]
            loss = (error**2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            progress.show(len(losses), f"error {math.sqrt(losses[-1]):.3f} stars")
    return losses


def error(model: Recommender, ratings: tuple[Tensor, Tensor, Tensor]) -> float:
    who, what, stars = ratings
    with facula.no_grad():
        return ((model(who, what) - stars) ** 2).mean().sqrt().item()


def recommend(
    model: Recommender, person: int, seen: set[int], count: int
) -> list[tuple[int, float]]:
    """The films with the highest expected ratings among those that a person has not rated."""
    with facula.no_grad():
        films = facula.arange(FILMS)
        expected = model(facula.full((FILMS,), person), films)
    for film in seen:
        expected[film] = -math.inf
    best = expected.topk(count)
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Learn tastes from ratings.")
    parser.add_argument("--ratings", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("recommendation_out"), help="folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer ratings, for a fast check")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    facula.manual_seed(options.seed)
    count, epochs = (12_000, 12) if options.quick else (options.ratings, options.epochs)

    who, what, stars, genres = make_ratings(count)
    cut = count * 9 // 10
    known = (who[:cut], what[:cut], stars[:cut])
    hidden = (who[cut:], what[cut:], stars[cut:])
    model = Recommender(genres, known[2].mean().item())
    guess = (hidden[2] - model.mean).square().mean().sqrt().item()
    losses = train(model, known, epochs)
    print(f"error of always guessing the mean: {guess:.3f} stars")
    print(f"error on ratings never seen:       {error(model, hidden):.3f} stars")
    print(f"the noise in the ratings:          {NOISE:.3f} stars")

    person = 7
    seen = set(known[1][known[0] == person].tolist())
    lines = [f"Recommendations for person {person}, who rated {len(seen)} films:"]
    for film, expected in recommend(model, person, seen, 5):
        kinds = [str(g) for g in range(GENRES) if genres[film, g] > 0]
        lines.append(
            f"  film {film:3d}  genres {', '.join(kinds):12s} expected {expected:.1f} stars"
        )
    print("\n".join(lines))
    (options.out / "recommendations.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    chart = options.out / "errors.svg"
    window = max(1, len(losses) // 100)
    roots = [math.sqrt(v) for v in smooth(losses, window)]
    line_chart(chart, "Error in stars while training", {"training": roots}, f"step / {window}")
    print(f"wrote {chart}")


if __name__ == "__main__":
    main()
