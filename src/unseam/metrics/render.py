"""Scores as a table that can be pasted into a paper: plain text or LaTeX.

LaTeX is pandas'. Plain text is ours: pandas cannot put names left and numbers right, rich wraps to the terminal.
"""

from __future__ import annotations

import numpy as np

from unseam.metrics.base import Score
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import Scores


def cells(scores: Scores) -> list[list[str]]:
    """The header, then a line a metric: value; interval, bias and chance where any has them; one column a factor."""
    names = scores.inputs.space.names
    lines = [["metric", "value", "95 % CI", "bias", "chance", *names], *(line(s, len(names)) for s in scores.values())]
    asked = [i for i in range(len(lines[0])) if i not in (2, 3, 4) or any(row[i] != "-" for row in lines[1:])]
    return [[row[i] for i in asked] for row in lines]


def line(score: Score, factors: int) -> list[str]:
    """
    >>> line(Score("mig", 0.5, ci=(0.4, 0.6), chance=0.01), 1)
    ['mig', '0.500', '0.400 .. 0.600', '-', '0.010', '-']
    """
    arrow = "" if METRICS[score.name].direction == "higher" else " (lower is better)"
    ci = f"{score.ci[0]:.3f} .. {score.ci[1]:.3f}" if score.ci else "-"
    per_factor = [None] * factors if score.per_factor is None else score.per_factor
    return [
        score.name + arrow,
        number(score.value),
        ci,
        number(score.bias, "+.3f"),
        number(score.chance),
        *map(number, per_factor),
    ]


def number(value: float | None, how: str = ".3f") -> str:
    """
    >>> number(0.12345), number(None), number(float("nan"))
    ('0.123', '-', '-')
    """
    return "-" if value is None or np.isnan(value) else format(value, how)


def as_text(scores: Scores) -> str:
    """Columns aligned with spaces.

    >>> from unseam.metrics.suite import score
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> print(as_text(score(v.astype(float), v, metrics="mig,irs", names=("shape", "x"))))
    metric  value  shape      x
    mig     1.000  1.000  1.000
    irs     1.000      -      -
    """
    rows = cells(scores)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


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
    import pandas

    header, *rows = cells(scores)
    table = pandas.DataFrame(rows, columns=header)
    text = table.to_latex(index=False, escape=True, column_format="l" + "r" * (len(header) - 1))
    return text.replace(" .. ", "--").rstrip()


FORMATS = {"text": as_text, "latex": as_latex}
