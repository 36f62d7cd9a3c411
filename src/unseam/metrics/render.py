"""Scores as a table that can be pasted into a paper: plain text or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import Scores


def table_rows(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Header and rows: metric, value, interval and chance when they were asked for, then one column a factor."""
    with_ci = any(s.ci for s in scores.values())
    with_chance = any(s.chance is not None for s in scores.values())
    names = scores.inputs.space.names
    header = ["metric", "value", *(["95 % CI"] if with_ci else []), *(["chance"] if with_chance else []), *names]
    rows = []
    for name, s in scores.items():
        arrow = "" if METRICS[name].direction == "higher" else " (lower is better)"
        interval = [f"{s.ci[0]:.3f} .. {s.ci[1]:.3f}" if s.ci else "-"] if with_ci else []
        chance = [number(s.chance)] if with_chance else []
        rows.append([name + arrow, number(s.value), *interval, *chance, *per_factor(s, len(names))])
    return header, rows


def per_factor(score: Score, count: int) -> list[str]:
    return ["-"] * count if score.per_factor is None else [number(v) for v in score.per_factor]


def number(value: float | None) -> str:
    """
    >>> number(0.12345), number(None), number(float("nan"))
    ('0.123', '-', '-')
    """
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"


def as_text(scores: Scores) -> str:
    """Columns aligned with spaces.

    >>> from unseam.metrics.suite import score
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> print(as_text(score(v.astype(float), v, metrics="mig,irs", names=("shape", "x"))))
    metric  value  shape      x
    mig     1.000  1.000  1.000
    irs     1.000      -      -
    """
    header, rows = table_rows(scores)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join([cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))])

    return "\n".join(line(row).rstrip() for row in [header, *rows])


def as_latex(scores: Scores) -> str:
    r"""A `tabular` with booktabs rules.

    >>> from unseam.metrics.suite import score
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> print(as_latex(score(v.astype(float), v, metrics="mig", names=("pos_x", "y"))))
    \begin{tabular}{lrrr}
    \toprule
    metric & value & pos\_x & y \\
    \midrule
    mig & 1.000 & 1.000 & 1.000 \\
    \bottomrule
    \end{tabular}
    """
    header, rows = table_rows(scores)
    body = [" & ".join(escape(cell) for cell in row) + r" \\" for row in [header, *rows]]
    columns = "l" + "r" * (len(header) - 1)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}"])


def escape(text: str) -> str:
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text.replace(" .. ", "--")


FORMATS = {"text": as_text, "latex": as_latex}
