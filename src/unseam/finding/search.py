"""`find`, read downwards: columns -> how many -> linear axes -> a network where these depend on each other -> which is
likelier on unseen rows -> do its axes come back, and which clue gave them -> grades, sentences."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from unseam.axes import Array
from unseam.device import device as named
from unseam.errors import BadInput, named_options, unknown
from unseam.finding import sentences
from unseam.finding.axes import NETWORK_ROWS, begin, bends
from unseam.finding.columns import Prepared, Scale, prepare
from unseam.finding.factor_analysis import correlation_matrix
from unseam.finding.factor_count import WIDE, FactorCounts, count_factors, isotropic
from unseam.finding.findings import Findings, Minor, encode_rows
from unseam.finding.grades import Answer, grade_factors
from unseam.finding.kinds import KNOWS
from unseam.finding.latent_count import LATENTS
from unseam.finding.linear import LinearInput, independence_answer, linear_answer, shaped_columns
from unseam.finding.nonlinear import Ask, network_answer
from unseam.finding.parts import with_parts
from unseam.finding.read import read
from unseam.finding.rivals import compare_rivals
from unseam.lazy import require_torch, torch_is_installed
from unseam.progress import stage
from unseam.rng import numpy_generator

EFFORT_NAMES = ("quick", "normal", "thorough")
_NO_TORCH = "no network was tried: it needs torch, which is not installed; run: pip install 'unseam[train]'"
_LARGE = 1_000_000  # cells from which a table takes so long that each step is announced
_MOST_ROWS = 20_000  # analysed; codes are given for all


@named_options
def find(
    data: Any,
    *,
    out: str | Path | None = None,
    scale: Scale = "auto",
    effort: Literal["quick", "normal", "thorough"] = "normal",
    network: bool = True,
    latents: int | None = None,
    leave_out: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    key: str | None = None,
    channels: int | None = None,
    factors: Any = None,
    orthogonal: bool = False,
    beta: float = 1.0,
    device: str = "auto",
    seed: int = 0,
    codes: Literal["csv", "parquet"] = "csv",
    show: bool | None = None,
) -> Findings:
    """Find the independent factors that a data set is made of, and say how sure that is.

    Parameters
    ----------
    data : DataFrame, array, str or Path
        A table (pandas, polars, Arrow, AnnData, ...), an array (N, n) or of images, a file or its address (.csv, .xlsx,
        .parquet, .npy and others: docs/data.md), a folder of images, or the name of a data set.
    out : str or Path, optional
        A folder for codes, loadings, findings.json and the run of the networks.
    scale : {"auto", "standard", "common", "none"}, default="auto"
        What columns are divided by: their own standard deviation ("standard"), one for all of them ("common": the
        columns share a unit), or nothing.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How much time the networks get.
    network : bool, default=True
        Whether networks are trained where a linear model does not suffice.
    latents : int, optional
        How many factors; decided from the data by default.
    leave_out : str or sequence of str
        Columns to ignore.
    keep : str or sequence of str
        Columns to use although they look like identifiers or labels.
    kinds : dict, optional
        The kind of a column where recognition is wrong, such as {"age": "continuous"}.
    key : str, optional
        The array in an .npz or .h5 file, or the columns of a table, separated by commas.
    channels : {1, 3}, optional
        Read a folder of images as grey (1) or in colour (3), where it holds both.
    factors : array or DataFrame, optional
        True factors, if known, to compare with; they are not used to find anything.
    orthogonal : bool, default=False
        Assume that factors act at right angles, so that geometry alone may decide.
    beta : float, default=1.0
        The weight of the KL in the networks. Their noise is learned, so 1 is the weight of the likelihood itself.
    device : str, default="auto"
        Where networks are trained.
    seed : int, default=0
        Of everything random.
    codes : {"csv", "parquet"}, default="csv"
        The format of the codes in `out`.
    show : bool, optional
        Whether to show progress; by default if stderr is a terminal.

    Returns
    -------
    Findings
        The factors with grades, certificates and codes; `print` shows them.

    Examples
    --------
    >>> g = np.random.default_rng(0)
    >>> table = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    >>> found = find(table, network=False)
    >>> found.count, [factor.grade for factor in found.factors]
    (2, ['found', 'found'])
    """
    if effort not in EFFORT_NAMES:
        raise unknown("effort", effort, EFFORT_NAMES)
    if not 0 < beta < float("inf"):
        raise BadInput(f"beta={beta} must be positive: it weighs the KL, and 1 is the likelihood's own weight")
    if device != "auto":
        named(device)  # refuse what is not here before the work
    table, truth, shape = read(data, key, channels)
    truth = truth if factors is None else _truth(factors, len(table))
    return examine(
        prepare(table, scale, leave_out, kinds=kinds, shape=shape, keep=keep), out=out, effort=effort, network=network,
        latents=latents, truth=truth, orthogonal=orthogonal, beta=beta, device=device, seed=seed, show=show,
        codes=codes,
    )  # fmt: skip


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """On small matrices threads that share cores stall."""
    with threadpool_limits(1, user_api="blas"):
        yield


@_one_blas_thread()
def examine(
    prepared: Prepared, *, out: str | Path | None = None, effort: str = "normal", network: bool = True,
    latents: int | None = None, truth: Array | None = None, orthogonal: bool = False, beta: float = 1.0,
    device: str = "auto", seed: int = 0, show: bool | None = None, with_rivals: bool = True,
    codes: Literal["csv", "parquet"] = "csv",
) -> Findings:  # fmt: skip
    """The same for columns that are ready."""
    rows = _some(len(prepared.x), seed)
    train, test = rows[len(rows) // 5 :], rows[: len(rows) // 5]
    prepared, numbers, notes = _begin(prepared, train, latents, seed)
    if not numbers.major:
        return _nothing(prepared, numbers, notes, out, codes)
    x = prepared.x
    shaped = shaped_columns(np.where(prepared.gaps, np.nan, x)[rows], prepared.gaps[rows])
    table = LinearInput(x, prepared.gaps, rows, train, test, shaped)
    with _step(1, "linear model", prepared, show):
        linear, numbers = _linear(table, numbers, latents is not None, orthogonal, seed, prepared.shape is not None)
    best, settled, overfitting = linear, True, False
    if prepared.shape is None and prepared.positive and len(rows) >= KNOWS:
        with _step(2, "non-negative parts", prepared, show):
            best, more = with_parts(prepared, linear, rows, train, test, latents, seed)
        notes += more
    if prepared.shape is None and _rows_are_shares(prepared, rows):
        best = replace(best, identified=np.zeros_like(best.identified))
        notes.append("every row has the same sum, so that each column depends on all others: no axis is identified")
    d = numbers.evidence or numbers.major
    why = _without_network(prepared, linear, best, rows, d, effort, network, seed)
    notes += [why] if why else []
    if why is None:
        from unseam.train.workers import without_resume

        with tempfile.TemporaryDirectory() if out is None else nullcontext(str(out)) as folder:
            ask = Ask(d, rows, effort, orthogonal, beta, device, seed, show, latents is not None)
            with _step(3, "networks", prepared, show), without_resume():
                other, settled, overfitting, more = network_answer(prepared, ask, Path(folder) / "run")
        notes += more
        best = other or best
    found = grade_factors(best, prepared, table.enough and not prepared.doubtful)
    numbers = replace(numbers, major=len(found))
    differ = numbers.disagreement() if prepared.shape is None else None
    notes = [*prepared.says(), *([differ] if differ else []), *notes]
    with _step(4, "other methods", prepared, show):
        beside = compare_rivals(prepared, best, len(found), truth, seed) if with_rivals else {}
    share = beside["unseam"]["variance_kept"] if beside else None
    sentence = sentences.sentence(found, best.kind, _size(prepared), KNOWS, share)
    own = encode_rows(best.model, prepared, np.where(prepared.gaps, np.nan, x))
    names = [f"factor{f.latent}" for f in found]
    loadings = pd.DataFrame(best.loadings(prepared), index=list(prepared.features), columns=names)
    findings = Findings(
        found, best.kind, sentence, settled, overfitting, beside, tuple(notes), pd.DataFrame(own, columns=names),
        prepared, best.model, {}, numbers, loadings, best.correlations, _minor(prepared, rows, numbers),
    )  # fmt: skip
    return _written(findings, out, codes)


def _step(number: int, name: str, prepared: Prepared, show: bool | None) -> AbstractContextManager[None]:
    """Names the bars inside; announced at once where the table is large."""
    return stage(f"find, step {number} of 4, {name}", announce=show is not False and prepared.x.size > _LARGE)


def _linear(
    table: LinearInput, numbers: FactorCounts, fixed: bool, orthogonal: bool, seed: int, pictures: bool
) -> tuple[Answer, FactorCounts]:
    """The linear answer with the major factors; with all directions of the evidence where independence finds each of
    them by itself (a table without noise has as many factors as columns)."""
    most = numbers.evidence or 0
    n = table.x.shape[1]
    if not (fixed or pictures) and most > numbers.major and (most == n or most <= numbers.major + 2):
        every = independence_answer(table, most, orthogonal, seed)
        if all(grade == "found" for grade in every.grades(table.enough)):
            return every, replace(numbers, major=most)
    partial, most = numbers.map or 0, numbers.major
    alone = most == numbers.parallel and not fixed  # parallel analysis alone asks for so many
    fewer = range(most - 1, partial - 1, -1) if alone and 1 < partial < most <= partial + 3 else ()
    return linear_answer(table, numbers.major, orthogonal, seed, pictures, fewer), numbers


def _rows_are_shares(prepared: Prepared, rows: Array) -> bool:
    """Whether rows are shares: non-negative, with the same sum."""
    raw = prepared.raw(prepared.x[rows])
    sums = raw.sum(1)
    return bool(raw.min() >= -1e-9 * abs(raw).max() and sums.std() < 1e-3 * abs(sums.mean()))


def _minor(prepared: Prepared, rows: Array, numbers: FactorCounts) -> tuple[Minor, ...]:
    """Directions that are not noise, beyond the major factors: principal axes of the correlations."""
    n, many = prepared.x.shape[1], numbers.evidence or 0
    if prepared.shape is not None or n > WIDE or many <= numbers.major:
        return ()
    l, U = np.linalg.eigh(correlation_matrix(prepared.x[rows], prepared.gaps[rows]))
    out = []
    for j in range(n - 1 - numbers.major, max(n - 1 - many, -1), -1):
        order = np.argsort(-np.abs(U[:, j]), kind="stable")[:3]
        out.append(Minor(float(l[j] / n), tuple(prepared.features[i] for i in order)))
    return tuple(out)


def _without_network(
    prepared: Prepared, linear: Answer, best: Answer, rows: Array, d: int, effort: str, network: bool, seed: int
) -> str | None:
    """Why no network is trained ("" if none was asked for); None if one is."""
    if not network or len(rows) < NETWORK_ROWS:
        return f"no network: {len(rows)} rows are fewer than {NETWORK_ROWS}" if network else ""
    if best is not linear:
        return "no network was tried: parts explain the table"
    if effort == "thorough":
        require_torch("effort='thorough'")
        return None
    if not torch_is_installed():
        return _NO_TORCH
    if prepared.shape is not None:
        return None
    if all(factor.grade == "found" for factor in grade_factors(linear, prepared, len(rows) >= KNOWS)):
        return "no network was tried: every linear factor is found"
    if bends(prepared.x[rows], d, seed):
        return None
    return "no network was needed: beyond the linear model no two directions depend on each other"


def _truth(factors: Any, N: int) -> Array:
    """The true factors (N, F), where they are known: only to score with."""
    truth = np.asarray(factors, np.float64)
    if truth.shape[:1] != (N,):
        raise BadInput(f"factors have shape {truth.shape}; the data has {N:,} rows, so (N, F) with as many is needed")
    return truth.reshape(N, -1)


def _some(N: int, seed: int) -> Array:
    return numpy_generator(seed, "rows").permutation(N)[:_MOST_ROWS]


def _begin(
    prepared: Prepared, train: Array, latents: int | None, seed: int
) -> tuple[Prepared, FactorCounts, list[str]]:
    """The number of factors by every rule, and columns in units of their own noise where that is needed."""
    x, n = prepared.x[train], prepared.x.shape[1]
    if latents is not None:
        if not 1 <= latents <= n:
            raise BadInput(f"latents={latents} must be between 1 and {n}, the number of columns used")
        return prepared, FactorCounts(latents), [f"{latents} latents, as asked"]
    if prepared.shape is not None:
        d = min(isotropic(x, seed), LATENTS)
        return prepared, FactorCounts(d, evidence=d), [f"images: at most {LATENTS} latents"] if d else []
    found = begin(x, seed, prepared.smooth)
    numbers = count_factors(x, prepared.gaps[train], found.d, seed)
    if prepared.gaps.any() and prepared.fills is not None:  # filled cells look like shared directions
        evidence = min(numbers.evidence or 0, max(prepared.fills, numbers.major))
        numbers = replace(numbers, evidence=evidence)
    if found.noise is None or not numbers.major:
        return prepared, numbers, []
    scaled = replace(prepared, unit=prepared.unit * found.noise, x=prepared.x / found.noise)
    return scaled, numbers, ["columns measured in units of their noise"]


def _size(prepared: Prepared) -> sentences.Size:
    images = prepared.shape is not None
    return sentences.Size(len(prepared.x), len(prepared.names if images else prepared.used), images)


def _nothing(
    prepared: Prepared, numbers: FactorCounts, notes: list[str], out: str | Path | None, kind: Literal["csv", "parquet"]
) -> Findings:
    codes = pd.DataFrame(index=range(len(prepared.x)))
    sentence = sentences.no_factors_sentence(_size(prepared), KNOWS)
    return _written(
        Findings(
            (), "none", sentence, True, False, {}, (*prepared.says(), *notes), codes, prepared, None, {}, numbers,
            pd.DataFrame(index=list(prepared.features)),
        ), out, kind,
    )  # fmt: skip


def _written(findings: Findings, out: str | Path | None, codes: Literal["csv", "parquet"]) -> Findings:
    return findings if out is None else replace(findings, paths=findings.write(out, codes))
