"""Compare: measurements side by side."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

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
        >>> slow = Measurement(1, [9e-6], TaskSpec("f", "", "", "sums", "small", "other"))
        >>> Compare([fast, slow]).print()
        [------------ sums ------------]
                     |  facula  |  other
        1 threads: ---------------------
              small  |   2.0    |   9.0
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
        sections = common.ordered_unique(m.num_threads for m in results)
        envs = common.ordered_unique(m.env for m in results)

        def place(m: Any) -> tuple[int, Any, str]:
            return m.num_threads, m.env, m.as_row_name

        # The rows of one environment stand together, and the first of them names it.
        rows = sorted(common.ordered_unique(map(place, results)), key=lambda p: envs.index(p[1]))
        cells = {(*place(m), m.description): m for m in results}
        medians = {key: m.median for key, m in cells.items()}
        texts = {
            key: self._number(m, scale) + (self._warning(m) if self._warned(m) else "")
            for key, m in cells.items()
        }
        several = len(envs) > 1
        titles = {env: f"({env or 'Unspecified env'})" if several else "  " for env in envs}
        margin = 4 + max(map(len, titles.values()))
        first = margin + max(len(name) for _, _, name in rows)
        widths = [
            max(
                len(str(column or "")),
                *(len(texts.get((*row, column), "")) for row in rows),
            )
            for column in columns
        ]
        head = " " * first + "".join(
            f"  |  {c or ''!s:^{w}}" for c, w in zip(columns, widths, strict=True)
        )
        head = head.rstrip()
        width = len(head)
        title = f" {label} " if label else ""
        lines = [f"[{title:-^{max(width - 2, len(title))}}]", head]
        for threads in sections:
            begin = f"{threads} threads: "
            lines.append(begin + "-" * max(width - len(begin), 0))
            unnamed = dict(titles)
            for row in rows:
                if row[0] != threads:
                    continue
                line = f"  {unnamed.pop(row[1], ''):<{margin - 4}}  {row[2]:<{first - margin}}"
                for column, w in zip(columns, widths, strict=True):
                    key = (*row, column)
                    cell = f"{texts.get(key, ''):^{w}}"
                    line += "  |  " + self._coloured(cell, key, medians)
                lines.append(line.rstrip())
        lines += ["", f"Times are in {common.unit_to_english(unit)}s ({unit})."]
        if any(self._warned(m) for m in results):
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join(lines) + "\n"

    @staticmethod
    def _warning(m: common.Measurement) -> str:
        return f" (! {100 * m.iqr / m.median:.0f}%)"

    def _warned(self, m: common.Measurement) -> bool:
        return self._highlight_warnings and m.has_warnings

    def _number(self, m: common.Measurement, scale: float) -> str:
        value = m.median / scale
        if self._trim_significant_figures:
            value = common.trim_sigfig(value, m.significant_figures)
            return f"{value:g}" if value < 1e6 else f"{value:.0f}"
        return f"{value:.1f}"

    def _coloured(self, cell: str, key: tuple[Any, ...], medians: dict[Any, float]) -> str:
        if self._colorize is Colorize.NONE or key not in medians:
            return cell
        if self._colorize is Colorize.ROWWISE:
            others = [v for k, v in medians.items() if k[:-1] == key[:-1]]
        else:
            others = [v for k, v in medians.items() if k[-1] == key[-1]]
        ratio = medians[key] / min(others)
        if ratio <= 1.0:
            return _BOLD + _BEST + cell + _END
        if ratio <= 1.2:
            return _GOOD + cell + _END
        if ratio >= 5:
            return _BOLD + _VERY_BAD + cell + _END
        return _BAD + cell + _END if ratio >= 2 else cell
