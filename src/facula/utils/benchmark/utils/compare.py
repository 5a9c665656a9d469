"""Compare: measurements side by side."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy

from facula.utils.benchmark.utils import common

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _VERY_BAD, _BOLD, _END = (
    "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m", "\033[1m", "\033[0m",
)  # fmt: skip


class Colorize(Enum):
    """What is compared by colours."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements: a table for each label, a column for each description, a row for each
    sub-label and environment, a section for each number of threads.

    Args:
        results: the measurements; those of one task are merged.

    Example::

        >>> from facula.utils.benchmark import Compare, Measurement, TaskSpec
        >>> fast = Measurement(1, [2e-6], TaskSpec("f", "", "", "sums", "small", "facula"))
        >>> slow = Measurement(1, [9e-6], TaskSpec("f", "", "", "sums", "small", "old"))
        >>> Compare([fast, slow]).print()
        [----------- sums -----------]
                     |  facula  |  old
        1 threads: -------------------
              small  |   2.0    |  9.0
        <BLANKLINE>
        Times are in microseconds (us).
        <BLANKLINE>
    """

    def __init__(self, results: Iterable[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[common.Measurement]) -> None:
        """Adds measurements."""
        for result in results:
            if not isinstance(result, common.Measurement):
                raise ValueError(
                    f"Expected an instance of Measurement, got {type(result)} instead."
                )
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Shows only digits that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours the best and the worst of each column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks measurements that vary too much, with how much they do."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = common.Measurement.merge(self._results)
        labels = common.ordered_unique(m.label for m in merged)
        tables = [self._table(label, [m for m in merged if m.label == label]) for label in labels]
        return "\n".join(tables)

    def _table(self, label: str | None, results: list[common.Measurement]) -> str:
        unit, scale = common.select_unit(min(m.median for m in results))
        columns = common.ordered_unique(m.description for m in results)
        cells = {(*_place(m), m.description): m for m in results}
        # Rows of one environment stand together; beyond that, they stay in their order.
        rows = sorted(common.ordered_unique(map(_place, results)), key=lambda p: (p[0], p[1] or ""))
        texts = [_row_names(rows)]
        for column in columns:
            texts.append(self._column([cells.get((*row, column)) for row in rows], scale))
        titles = ["", *(column or "" for column in columns)]
        widths = [max(map(len, [t, *lines])) for t, lines in zip(titles, texts, strict=True)]
        head = "  |  ".join(t.center(w) for t, w in zip(titles, widths, strict=True))
        caption = f" {label or ''} ".center(len(head) - 2, "-")
        lines = [f"[{caption}]", head]
        threads_before = None
        for row, (name, *numbers) in zip(rows, zip(*texts, strict=True), strict=True):
            if row[0] != threads_before:
                threads_before = row[0]
                lines.append(f"{row[0]} threads: ".ljust(len(head), "-"))
            line = [name.ljust(widths[0])]
            for column, number, w in zip(columns, numbers, widths[1:], strict=True):
                line.append(self._coloured(number.center(w), (*row, column), cells))
            lines.append("  |  ".join(line))
        lines += ["", f"Times are in {common.unit_to_english(unit)}s ({unit})."]
        if any(self._warned(m) for m in results):
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join(lines) + "\n"

    def _warned(self, m: common.Measurement) -> bool:
        return self._highlight_warnings and m.has_warnings

    def _column(self, measured: list[common.Measurement | None], scale: float) -> list[str]:
        """The numbers of a column, with their decimal points below each other."""
        found = [m for m in measured if m is not None]
        digits = [_digits_before_the_point(m.median / scale) for m in found]
        decimals = 1
        if self._trim_significant_figures:
            decimals = min(
                max(m.significant_figures - n, 0) for m, n in zip(found, digits, strict=True)
            )
        width = max(max(digits) + decimals + (decimals > 0), 0)
        beside = 7 if any(map(self._warned, found)) else 0

        def text(value: float, warning: str = "") -> str:
            return f"{value:>{width}.{decimals}f}{warning:>{beside}}"

        out = []
        for m in measured:
            if m is None:
                out.append(" " * len(text(1.0)))
                continue
            value = m.median / scale
            if self._trim_significant_figures:
                value = common.trim_sigfig(value, m.significant_figures)
            warning = f" (! {100 * m.iqr / m.median:.0f}%)" if self._warned(m) else ""
            out.append(text(value, warning))
        return out

    def _coloured(self, cell: str, key: tuple[Any, ...], cells: dict[Any, Any]) -> str:
        if self._colorize is Colorize.NONE or key not in cells:
            return cell
        if self._colorize is Colorize.ROWWISE:
            others = [m.median for k, m in cells.items() if k[:-1] == key[:-1]]
        else:  # within one number of threads
            others = [m.median for k, m in cells.items() if (k[0], k[-1]) == (key[0], key[-1])]
        value, best = cells[key].median, min(others)
        if value <= best * 1.01 or value <= best + 100e-9:
            colour = _BEST + _BOLD
        elif value <= best * 1.1:
            colour = _GOOD + _BOLD
        elif value >= best * 5:
            colour = _VERY_BAD + _BOLD
        elif value >= best * 2:
            colour = _BAD
        else:
            return cell
        return colour + cell + _END + _END


def _place(m: Any) -> tuple[int, str | None, str]:
    """What says in which row a measurement stands."""
    return m.num_threads, m.env, m.as_row_name


def _row_names(rows: list[tuple[int, str | None, str]]) -> list[str]:
    """The names; the first row of an environment says which one it is, where there are several."""
    titles = {env: f"({env or 'Unspecified env'})" for _, env, _ in rows}
    margin = 4 if len(titles) < 2 else 2 + max(map(len, titles.values()))
    names, before = [], None
    for threads, env, name in rows:
        shown = titles[env] if len(titles) > 1 and (threads, env) != before else ""
        names.append(f"  {shown:<{margin}}{name}")
        before = threads, env
    return names


def _digits_before_the_point(value: float) -> int:
    return int(numpy.ceil(numpy.log10(numpy.float32(value)))) if value > 0 else 0
