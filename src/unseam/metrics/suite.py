"""Many metrics of one representation, sharing what is expensive (mutual information, boosted trees)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from unseam.axes import FactorSpace, Representation
from unseam.errors import BadInput, lookup
from unseam.metrics.base import Score
from unseam.metrics.inputs import Inputs, prepare_inputs
from unseam.metrics.registry import METRICS, Metric, knows_vectors
from unseam.metrics.shared.uncertainty import add_chance, add_intervals
from unseam.progress import bar, text_table

if TYPE_CHECKING:
    import pandas as pd


CERTAIN = ("dci-disentanglement", "beta-vae", "factor-vae", "med", "med-topk")  # 1 when there is one factor
COLLAPSED = 0.05  # standard deviation of a latent's posterior means


class Scores(dict[str, Score]):
    """A dictionary name -> Score, with the reasons for metrics that were refused.

    Parameters
    ----------
    scores : dict of Score
        By the name of the metric.
    refused : dict of str
        The reason for each metric that cannot use the input.
    inputs : Inputs
        The checked codes and factors, with their notes.

    Examples
    --------
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> found = score(v.astype(float), v, metrics="mig")
    >>> list(found), found.refused
    (['mig'], {})
    """

    def __init__(self, scores: dict[str, Score], refused: dict[str, str], inputs: Inputs) -> None:
        super().__init__(scores)
        self.refused = refused
        self.inputs = inputs

    def table(self) -> pd.DataFrame:
        """A row per metric: its value, interval, bias and chance level where they were computed, and each factor's.

        >>> v = [[i, j] for i in range(3) for j in range(4)]
        >>> score([[float(i), float(j)] for i, j in v], v, metrics="mig", names=("shape", "x")).table()
             value  shape    x
        mig    1.0    1.0  1.0
        """
        import pandas as pd

        names = self.inputs.space.names
        rows = {name: numbers_of(s, names) for name, s in self.items()}
        return pd.DataFrame.from_dict(rows, orient="index").dropna(axis=1, how="all")

    def __repr__(self) -> str:
        """One line a notebook can show; `print` gives the table."""
        return f"Scores({', '.join(f'{name} {score.value:.3g}' for name, score in self.items())})"

    def __str__(self) -> str:
        return "\n".join([as_text(self), *self.notes])

    def _repr_html_(self) -> str:
        """For notebooks."""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return self.table().to_html(float_format="{:.3f}".format, na_rep="-") + (f"<ul>{notes}</ul>" if notes else "")

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything that should be known about the input and the scores."""
        return tuple(dict.fromkeys((*self.inputs.notes, *(n for s in self.values() for n in s.notes))))

    def to_json(self) -> dict[str, Any]:
        """The document that `unseam score --json` prints."""
        test = self.inputs.held_out
        return {
            "scores": {name: score.to_json() for name, score in self.items()},
            "factors": self.inputs.space.to_json(),
            "rows": {
                "train": len(self.inputs),
                "test": 0 if test is None else len(test),
            },
            "passive": list(self.inputs.passive or self.inputs.suspects),
            "refused": self.refused,
            "notes": list(self.notes),
            "seed": self.inputs.seed,
        }


def numbers_of(s: Score, names: Sequence[str]) -> dict[str, float | None]:
    """A row of the table."""
    low, high = s.ci or (None, None)
    found = {"value": s.value, "low": low, "high": high, "bias": s.bias, "chance": s.chance}
    own = [f"factor {name}" if name in found else name for name in names]  # a factor may be called "value"
    return found | (dict(zip(own, map(float, s.per_factor), strict=True)) if s.per_factor is not None else {})


def score(
    codes: Any,  # (N, K)
    factors: Any,  # (N, F)
    space: FactorSpace | None = None,
    metrics: str | Sequence[str] = "all",
    ci: bool | int = False,
    chance: bool | int = False,
    bias: bool | int = False,
    seed: int = 0,
    test_codes: Any = None,
    test_factors: Any = None,
    workers: int | None = None,
    data: Any = None,  # (N, ...)
    **about: Any,
) -> Scores:
    """Score codes against factors by some or all metrics.

    Parameters
    ----------
    codes : array or DataFrame (N, K), or model
        Codes, or any model that `unseam.diagnose` takes, with its observations in `data`.
    factors : array or DataFrame (N, F)
        The true factors of the same rows; None for metrics that need none.
    space : FactorSpace, optional
        Names, sizes and kinds of the factors; guessed from their values by default.
    metrics : str or sequence of str, default="all"
        Names, separated by commas. With "all", a metric that cannot use the input is left out and its reason kept in
        `.refused`; a metric that is asked for by name raises.
    ci : bool or int, default=False
        Add 95 % intervals, by half-samples of the rows; a number sets the rounds.
    chance : bool or int, default=False
        Add the chance level: the mean score when the rows of the codes are shuffled; a number sets the rounds.
    bias : bool or int, default=False
        Add the bias, by half-samples, for metrics whose bias falls as 1/N; a number sets the rounds.
    seed : int, default=0
        Of everything random.
    test_codes, test_factors : array, optional
        Held-out rows for metrics that train predictors; by default the rows are split.
    workers : int, optional
        Processes for predictors; by default one for each core.
    data : array, optional
        The observations to encode, where codes is a model.
    **about
        `names` and `kinds` of the factors, `variances` (posterior variances of the codes), `bin_continuous`, `prune`
        (see factor-vae), `active` (the latents that count: a mask, or numbers), and `groups` with `components` for
        latents that are vectors: [[0, 1], [2, 3]], or "0-1,2-3".

    Returns
    -------
    Scores
        A dictionary: name -> Score, with `.table()`.

    Examples
    --------
    >>> import numpy as np
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> {name: round(s.value, 6) for name, s in score(v.astype(float), v, metrics="mig,mig-sup").items()}
    {'mig': 1.0, 'mig-sup': 1.0}
    """
    if data is not None or is_model(codes):
        from unseam.models.adapters import codes_of

        codes = codes_of(codes, data)
    inputs = prepare_inputs(
        codes, factors, space, test_codes=test_codes, test_factors=test_factors, seed=seed, workers=workers, **about
    )
    chosen, by_name = select_metrics(metrics)
    scores, refused = compute(inputs, chosen, by_name)
    if len(inputs.space) == 1:
        notes_by_name = {name: f"with one factor {name} is 1 for any codes" for name in CERTAIN if name in scores}
        scores |= {name: scores[name].having(notes=(*scores[name].notes, note)) for name, note in notes_by_name.items()}
    scored = [m for m in chosen if m.name in scores]
    if ci or bias:
        add_intervals(scores, scored, inputs, rounds_of(ci, bias), bool(ci), bool(bias))
    if chance:
        add_chance(scores, scored, inputs, rounds_of(chance))
    out = Scores(scores, refused, inputs)
    for note in out.notes:
        warnings.warn(note, stacklevel=2)
    return out


def is_model(codes: Any) -> bool:
    """Whether this is a model (or a pair of functions), not codes; nothing is imported to see it.

    >>> is_model([[0.0, 1.0]]), is_model((print, print))
    (False, True)
    """
    if isinstance(codes, (tuple, list)):
        return len(codes) == 2 and all(callable(part) for part in codes)
    return not hasattr(codes, "__array__") and any(
        hasattr(codes, name) for name in ("encode", "encoder", "module", "inverse_transform")
    )


def rounds_of(*requests: bool | int) -> int | None:
    """The largest number of rounds that was given; None when only True was."""
    return max((int(a) for a in requests if not isinstance(a, bool)), default=0) or None


def score_representation(representation: Representation, test: Representation | None = None, **options: Any) -> Scores:
    """Score what a model says of a data set: a Representation with factors, and another one held out if given.

    The prior gives codes of a model a unit, so latents of standard deviation below 0.05 count as collapsed where a
    metric ignores scale (the setting of Locatello et al.'s study). A model without a prior has none: `prune=0`.

    Parameters
    ----------
    representation : Representation
        Codes of a model, with factors.
    test : Representation, optional
        Codes of held-out rows, for metrics that predict.
    **options
        Passed on to `score`.

    Returns
    -------
    Scores
        By the name of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> v = np.stack(np.meshgrid(range(3), range(4)), -1).reshape(-1, 2)
    >>> round(score_representation(Representation(v.astype(float), factors=v), metrics="mig")["mig"].value, 6)
    1.0
    """
    held_out: dict[str, Any] = {} if test is None else {"test_codes": test.codes, "test_factors": test.factors}
    return score(
        representation.codes,
        representation.factors,
        representation.space,
        variances=representation.variances,
        **{"prune": COLLAPSED, **held_out, **options},
    )


def select_metrics(metrics: str | Sequence[str]) -> tuple[list[Metric], bool]:
    """The selected rows of METRICS, and whether they were selected by name (then a refusal is an error).

    >>> [metric.name for metric in select_metrics("mig,dci")[0]]
    ['mig', 'dci-disentanglement', 'dci-completeness', 'dci-informativeness']
    """
    names = [n.strip() for n in (metrics.split(",") if isinstance(metrics, str) else metrics)]
    if names == ["all"]:
        return list(METRICS.values()), False
    return [lookup(METRICS, n, "metric") for n in dict.fromkeys(m for n in names for m in family(n))], True


def family(name: str) -> list[str]:
    """The metric itself, or those it is the first word of: `dci`, `downstream-trees`."""
    return [name] if name in METRICS else [m for m in METRICS if m.startswith(f"{name}-")] or [name]


def compute(inputs: Inputs, chosen: Sequence[Metric], by_name: bool) -> tuple[dict[str, Score], dict[str, str]]:
    scores: dict[str, Score] = {}
    refused: dict[str, str] = {}
    with bar("metrics", len(chosen)) as advance:
        for metric in chosen:
            try:
                if metric.supervised and not len(inputs.space):
                    raise BadInput(f"{metric.name} needs factors; give them, or choose metrics of the codes alone")
                knows_vectors(metric.name, inputs, metric.vectors)
                scores[metric.name] = metric.compute(inputs)
            except BadInput as reason:
                if by_name:
                    raise
                refused[metric.name] = str(reason)
            advance(note=metric.name)
    return scores, refused


# Scores as a table that can be pasted into a paper: plain text or LaTeX.
#
# LaTeX is pandas'. Plain text is ours: pandas cannot put names left and numbers right, rich wraps to the terminal.


def _cells(scores: Scores) -> list[list[str]]:
    """The header, then a line per metric: value; interval, bias and chance where any has them; one column per
    factor."""
    names = scores.inputs.space.names
    lines = [["metric", "value", "95 % CI", "bias", "chance", *names], *(_line(s, len(names)) for s in scores.values())]
    requests = [i for i in range(len(lines[0])) if i not in (2, 3, 4) or any(row[i] != "-" for row in lines[1:])]
    return [[row[i] for i in requests] for row in lines]


def _line(score: Score, factors: int) -> list[str]:
    """
    >>> _line(Score("mig", 0.5, ci=(0.4, 0.6), chance=0.01), 1)
    ['mig', '0.500', '0.400 .. 0.600', '-', '0.010', '-']
    """
    arrow = "" if METRICS[score.name].direction == "higher" else " (lower is better)"
    ci = f"{score.ci[0]:.3f} .. {score.ci[1]:.3f}" if score.ci else "-"
    per_factor = [None] * factors if score.per_factor is None else score.per_factor
    return [
        score.name + arrow,
        _number(score.value),
        ci,
        _number(score.bias, "+.3f"),
        _number(score.chance),
        *map(_number, per_factor),
    ]


def _number(value: float | None, how: str = ".3f") -> str:
    """
    >>> _number(0.12345), _number(None), _number(float("nan"))
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
    return text_table(_cells(scores))


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

    header, *rows = _cells(scores)
    table = pandas.DataFrame(rows, columns=header)
    text = table.to_latex(index=False, escape=True, column_format="l" + "r" * (len(header) - 1))
    return text.replace(" .. ", "--").rstrip()


TABLE_FORMATS = {"text": as_text, "latex": as_latex}
