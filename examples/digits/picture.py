"""The picture train.py leaves behind: the loss curve, test digits with answers, the mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")  # draws to a file; no window system needed
import matplotlib.pyplot as plt

RIGHT, WRONG, INK = "#1a7f37", "#cf222e", "#24292f"
COLUMNS, TILE = 10, 10  # a tile is an 8 x 8 digit with a margin; its answer stands below


def draw(
    path: Path,
    losses: list[float],
    accuracy: float,
    pictures: np.ndarray,  # (N, 64), 0 .. 1
    labels: list[int],
    predicted: list[int],
) -> None:
    plt.rcParams.update({"font.size": 11, "text.color": INK, "axes.labelcolor": INK})
    wrong = [i for i in range(len(labels)) if predicted[i] != labels[i]]
    figure = plt.figure(figsize=(14, 6.2), dpi=110, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.15)
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.1], wspace=0.04)
    draw_losses(left.subplots(), losses)
    shown = wrong[: 2 * COLUMNS]
    rows = max(1, math.ceil(len(shown) / COLUMNS))
    sample, mistakes = right.subplots(2, 1, height_ratios=[4, rows])
    draw_digits(sample, range(4 * COLUMNS), 4, pictures, labels, predicted)
    sample.set_title(f"40 test digits and the network's answers ({accuracy:.1%} of all are right)")
    draw_digits(mistakes, shown, rows, pictures, labels, predicted)
    mistakes.set_title(f"Mistakes ({len(shown)} of {len(wrong)}): answer (truth)")
    figure.savefig(path)
    plt.close(figure)


def draw_losses(axes: plt.Axes, losses: list[float]) -> None:
    window = max(1, len(losses) // 40)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    steps = np.arange(1, len(losses) + 1)
    axes.plot(steps, losses, color="#9ec5fe", linewidth=0.8, label="each step")
    axes.plot(steps[window - 1 :], smooth, color="#0b5ed7", label=f"mean of {window} steps")
    axes.set(title="Training loss", xlabel="step", ylabel="cross-entropy", yscale="log")
    axes.set_xlim(0, len(losses))
    axes.grid(True, color="#eaeef2")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def draw_digits(
    axes: plt.Axes,
    which: Iterable[int],
    rows: int,
    pictures: np.ndarray,
    labels: list[int],
    predicted: list[int],
) -> None:
    """Lay the digits out as one image, which is simpler than one axes object per digit."""
    height = TILE + 4  # room for the answer
    sheet = np.zeros((rows * height, COLUMNS * TILE))
    for place, i in enumerate(which):
        top, start = place // COLUMNS * height + 1, place % COLUMNS * TILE + 1
        sheet[top : top + 8, start : start + 8] = pictures[i].reshape(8, 8)
        good = predicted[i] == labels[i]
        answer = str(predicted[i]) if good else f"{predicted[i]} ({labels[i]})"
        style = {"ha": "center", "va": "center", "fontweight": "bold"}
        axes.text(start + 3.5, top + 10, answer, color=RIGHT if good else WRONG, **style)
    axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    axes.set_axis_off()
