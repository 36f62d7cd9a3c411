"""What an exhibit is: something a paper shows, shown again, its numbers beside ours.

An exhibit is one small file with four functions of plain data, and one row in EXHIBITS:

    compute(settings, work) -> numbers      the expensive part, in steps that `work` remembers
    judge(numbers)          -> rows         published | ours | verdict
    draw(numbers)           -> figure
    conclude(numbers, rows) -> text         what it means, in plain words

Only the published values are written down; everything else is computed, the verdicts too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unseam.errors import BadInput
from unseam.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unseam.train import Run

Verdict = Literal["agrees", "differs", "not comparable"]
Scale = Literal["tiny", "quick", "paper"]
Numbers = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True)
class Row:
    """One line of an exhibit's table."""

    what: str
    published: str
    ours: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Exhibit:
    """One row of EXHIBITS."""

    id: str
    title: str
    claim: str  # one sentence
    source: str
    choices: tuple[str, ...]  # what the source leaves open, and what we chose
    scales: Mapping[Scale, Any]  # frozen dataclasses: tiny (tests), quick (minutes), paper (as published)
    compute: Callable[[Any, Work], Numbers]
    judge: Callable[[Numbers], Sequence[Row]]
    draw: Callable[[Numbers], Figure]
    conclude: Callable[[Numbers, Sequence[Row]], str]

    def settings(self, scale: Scale) -> Any:
        if scale not in self.scales:
            raise BadInput(f"scale={scale!r} is unknown for {self.id}; known: {', '.join(self.scales)}")
        return self.scales[scale]

    def digest(self, scale: Scale) -> str:
        """A short name of the settings: results of other settings are never taken for these."""
        text = json.dumps(asdict(self.settings(scale)), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Work:
    """Where an exhibit keeps its finished steps and its models, so that a killed run goes on where it stopped."""

    folder: Path  # the finished steps of this exhibit
    runs: Path = Path("runs")  # trained cohorts, shared by the exhibits: two that ask for the same train it once

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of `make()` as JSON gives it back; computed at most once in this folder.

        >>> import tempfile
        >>> work = Work(Path(tempfile.mkdtemp()))
        >>> work.once("half", lambda: (1 / 2,)), work.once("half", lambda: 1 / 0)
        ([0.5], [0.5])
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(make(), default=lambda array: array.tolist(), allow_nan=False)
            path.with_suffix(".part").write_text(text)
            path.with_suffix(".part").rename(path)
        return json.loads(path.read_text())

    def train(self, data: str | Array, objective: str = "beta-vae", **settings: Any) -> Run:
        """`unseam.fit(data, objective, **settings)`, trained at most once in this output folder and resumable."""
        from unseam.train import fit, resume

        label = data if isinstance(data, str) else "array"
        text = json.dumps([_named(data), objective, settings], sort_keys=True, default=_named)
        folder = self.runs / f"{label}-{objective}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
        if (folder / "config.json").exists():
            return resume(folder)
        return fit(data, objective, out=folder, **settings)


def _named(value: Any) -> str:
    """What stands for a value in a digest: an array is its shape and bytes."""
    if hasattr(value, "tobytes"):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    return str(value)


def overall(rows: Sequence[Row]) -> Verdict:
    """An exhibit differs when a row does, and agrees when the rows that can be compared do.

    >>> overall([Row("a", "1", "1", "agrees"), Row("b", "-", "2", "not comparable")])
    'agrees'
    """
    verdicts = {row.verdict for row in rows}
    if "differs" in verdicts:
        return "differs"
    return "agrees" if "agrees" in verdicts else "not comparable"


def inside(published: float, samples: Sequence[float], share: float = 0.95) -> Verdict:
    """Does the published value lie in the central `share` of our restarts?

    >>> inside(3.0, [1, 2, 3, 4, 5]), inside(9.0, [1, 2, 3, 4, 5])
    ('agrees', 'differs')
    """
    low, high = central(samples, share)
    return "agrees" if low <= published <= high else "differs"


def central(samples: Sequence[float], share: float = 0.95) -> tuple[float, float]:
    """The ends of the central share of the samples.

    >>> central([0, 1, 2, 3, 4], share=0.5)
    (1.0, 3.0)
    """
    import numpy as np

    low, high = np.quantile(np.asarray(samples, float), [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def p_above(high: Sequence[float] | Array, low: Sequence[float] | Array) -> float:
    """p-value of "`high` is not above `low`": one-sided Mann-Whitney test over restarts.

    >>> round(p_above([3, 4, 5], [0, 1, 2]), 3)
    0.05
    """
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(high, low, alternative="greater").pvalue)


def ranged(values: Sequence[float] | Array, form: str = ".2f", unit: str = "") -> str:
    """The median and the ends.

    >>> ranged([1, 2, 4], unit=" nats")
    '2.00 nats (1.00 to 4.00)'
    """
    import numpy as np

    return f"{np.median(values):{form}}{unit} ({min(values):{form}} to {max(values):{form}})"


def plus_minus(values: Sequence[float] | Array, form: str = ".3f") -> str:
    """Mean and standard deviation over restarts.

    >>> plus_minus([1, 2, 3]), plus_minus([1], ".1f")
    ('2.000 +- 1.000', '1.0 +- 0.0')
    """
    import numpy as np

    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):{form}} +- {deviation:{form}}"


def holds(condition: bool) -> Verdict:
    """The verdict of a stated ordering that was tested.

    >>> holds(True)
    'agrees'
    """
    return "agrees" if condition else "differs"
