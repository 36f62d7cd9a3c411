"""`find`, read downwards: columns -> how many -> linear axes -> a network where these depend on each other -> which is
likelier on unseen rows -> do its axes come back, and which clue gave them -> grades, sentences."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from unseam.errors import BadInput, lookup, unknown
from unseam.find import words
from unseam.find.axes import BENT, NETWORK, Axes, begin, bends, fit_axes
from unseam.find.columns import Prepared, Scale, prepare, read
from unseam.find.density import gain
from unseam.find.dimension import dependent
from unseam.find.findings import SHOWN, Findings, FoundFactor, Grade, Model, Move
from unseam.find.rivals import mcc, rivals
from unseam.find.stability import AGREES, Agreement, Twice, agreement, groups
from unseam.rng import numpy_generator
from unseam.statistics import matched, rank_correlations
from unseam.types import Array

EFFORTS = ("quick", "normal", "thorough")
HELD_OUT = 0.2
MOST_ROWS = 20_000  # analysed; codes are given for all
KNOWS = 100  # rows below which nothing is called found
LATENTS = 10  # of a network, at most
BETTER = 0.05  # nats a row by which a network must beat the linear model
WITNESS = 1.0  # nats a row: a seed that ends worse by more is no witness
SAME = 0.95  # rank correlation from which two axes are one
TOO_CLOSE = 0.1  # relative difference of singular values (geometry.degeneracy)
MOVES = 0.3  # of the largest move: smaller ones are not named


@dataclass(frozen=True)
class Answer:
    """One model's axes, what each moves (in model units), and how well they come back."""

    kind: str
    model: Model
    W: Array  # (n, k)
    nats: Array  # (k,)
    separation: Array  # (k,)
    identified: Array  # (k,) bool: one of the clues decides
    by: tuple[str, ...]
    comes_back: Agreement


def find(
    data: Any,
    *,
    out: str | Path | None = None,
    scale: Scale = "auto",
    effort: Literal["quick", "normal", "thorough"] = "normal",
    network: bool = True,
    latents: int | None = None,
    leave_out: Sequence[str] = (),
    key: str | None = None,
    factors: Any = None,
    orthogonal: bool = False,
    seed: int = 0,
    show: bool | None = None,
) -> Findings:
    """Which independent factors is this data made of, and how sure is that?

    `data` is a table (pandas), an array (N, n), a file (.npy .npz .csv .parquet .h5), a folder of images or the name of
    a data set. `orthogonal` says that the factors act at right angles, so that geometry alone may decide. With `out`,
    codes.csv, findings.json and the network's run are written there.

    >>> g = np.random.default_rng(0)
    >>> table = g.uniform(size=(300, 2)) @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    >>> found = find(table, network=False)
    >>> found.count, [factor.grade for factor in found.factors]
    (2, ['found', 'found'])
    """
    if effort not in EFFORTS:
        raise unknown("effort", effort, EFFORTS)
    table, truth = read(data, key)
    truth = truth if factors is None else _truth(factors, len(table))
    return examine(
        prepare(table, scale, leave_out), out=out, effort=effort, network=network, latents=latents, truth=truth,
        orthogonal=orthogonal, seed=seed, show=show,
    )  # fmt: skip


def examine(
    prepared: Prepared, *, out: str | Path | None = None, effort: str = "normal", network: bool = True,
    latents: int | None = None, truth: Array | None = None, orthogonal: bool = False, seed: int = 0,
    show: bool | None = None, with_rivals: bool = True,
) -> Findings:  # fmt: skip
    """The same for columns that are ready."""
    rows = _some(len(prepared.x), seed)
    train, test = rows[len(rows) // 5 :], rows[: len(rows) // 5]
    prepared, d, notes = _begin(prepared, train, latents, seed)
    if not d:
        return _nothing(prepared, notes, out)
    x = prepared.x
    linear = linear_answer(x, d, rows, train, test, orthogonal, seed)
    best, settled, overfitting = linear, True, False
    bent = len(rows) >= NETWORK and network and (effort == "thorough" or bends(x[rows], d, seed))
    if bent:
        with tempfile.TemporaryDirectory() if out is None else nullcontext(str(out)) as folder:
            other, won, settled, overfitting, said = _network(
                x, d, rows, Path(folder) / "run", effort, orthogonal, seed, show
            )
        notes += said
        best = other if won and other is not None else linear
    elif network and len(rows) >= NETWORK:
        notes.append("no network was needed: beyond the linear model no two directions depend on each other")
    elif network:
        notes.append(f"no network: {len(rows)} rows are fewer than {NETWORK}")
    found = graded(best, prepared, len(rows) >= KNOWS)
    compared = _compared(prepared, best, len(found), train, test, truth, seed) if with_rivals else {}
    sentence = words.sentence(found, best.kind, len(x), len(prepared.used), KNOWS, notes)
    codes = pd.DataFrame(best.model.encode(x), columns=[f"factor{f.latent}" for f in found])
    notes = [prepared.says(), *notes]
    findings = Findings(
        found, best.kind, sentence, settled, overfitting, compared, tuple(notes), codes, prepared, best.model
    )
    return _written(findings, out)


def _truth(factors: Any, N: int) -> Array:
    """The true factors (N, F), where somebody has them: only to score with."""
    truth = np.asarray(factors, np.float64)
    if truth.shape[:1] != (N,):
        raise BadInput(f"factors have shape {truth.shape}; the data has {N:,} rows, so (N, F) with as many is needed")
    return truth.reshape(N, -1)


def _some(N: int, seed: int) -> Array:
    return numpy_generator(seed, "rows").permutation(N)[:MOST_ROWS]


def _begin(prepared: Prepared, train: Array, latents: int | None, seed: int) -> tuple[Prepared, int, list[str]]:
    """The number of factors to start with, and columns in units of their own noise where that is needed."""
    n = prepared.x.shape[1]
    if latents is not None:
        if not 1 <= latents <= n:
            raise BadInput(f"latents={latents} must be between 1 and {n}, the number of columns used")
        return prepared, latents, [f"{latents} latents, as asked"]
    found = begin(prepared.x[train], seed)
    if found.noise is None:
        return prepared, found.d, [f"{found.d} linear dimensions by PPCA's evidence"] if found.d else []
    scaled = replace(prepared, unit=prepared.unit * found.noise, x=prepared.x / found.noise)
    return (
        scaled,
        found.d,
        [f"{found.d} linear dimensions by factor analysis; columns measured in units of their noise"],
    )


def _nothing(prepared: Prepared, notes: list[str], out: str | Path | None) -> Findings:
    codes = pd.DataFrame(index=range(len(prepared.x)))
    said = words.nothing(len(prepared.x), len(prepared.used), KNOWS)
    return _written(Findings((), "none", said, True, False, {}, (prepared.says(), *notes), codes, prepared, None), out)


def _written(findings: Findings, out: str | Path | None) -> Findings:
    return findings if out is None else replace(findings, paths=findings.write(out))


# The linear answer


def linear_answer(
    x: Array, d: int, rows: Array, train: Array, test: Array, orthogonal: bool, seed: int, splits: int = 5
) -> Answer:
    """PPCA + ICA on all rows; halves of the training rows say whether its axes come back on the others."""
    axes = fit_axes(x[rows], d, seed)
    back = agreement(
        axes.encode(x[test]), _halves(x, axes, train, test, splits if len(rows) >= KNOWS else 1, seed), seed
    )
    linked = (
        dependent(axes.encode(x[rows]), seed, least=0.0, sure=BENT) if len(rows) >= KNOWS else np.zeros((d, d), bool)
    )
    alone = axes.gaussian & (axes.gaussian.sum() > 1)
    back = _together(back, np.outer(alone, alone) | linked)
    W = axes.W
    from unseam.find.network import separations

    apart = separations((W.T @ W)[None])
    principal = _like(axes.encode(x[test]), (x[test] - axes.mean) @ axes.U)
    depends: Array = np.asarray(linked.any(1))
    by = tuple(
        words.DEPENDS if l else words.clue(not a, p > SAME, s > TOO_CLOSE)
        for a, p, s, l in zip(alone, principal, apart, depends, strict=True)
    )
    identified = (~alone | (orthogonal & (apart > TOO_CLOSE))) & ~depends
    return Answer("linear", axes, W, axes.nats(), apart, identified, by, back)


def _halves(x: Array, axes: Axes, train: Array, test: Array, splits: int, seed: int) -> list[Twice]:
    out = []
    for split in range(splits):
        order = numpy_generator(seed, "halves", split).permutation(train)
        one, two = (fit_axes(x[order[i::2]], len(axes.L), seed + split, axes).encode(x[test]) for i in (0, 1))
        out.append((one, two))
    return out


def _together(back: Agreement, linked: Array) -> Agreement:  # (d, d) bool
    """Factors that are one cloud (Gaussian) or depend on each other are one group, however well axes come back."""
    group = groups(linked | (back.group[:, None] == back.group))
    joined = np.bincount(group)[group] > np.bincount(back.group)[back.group]
    return back._replace(group=group, together=np.where(joined, np.maximum(back.together, back.alone), back.together))


def _like(codes: Array, others: Array) -> Array:  # (M, k), (M, m) -> (k,)
    """How much each code is like one of the others, one to one."""
    return matched(np.abs(rank_correlations(codes, others))).values


# The network's answer


def _network(
    x: Array, d: int, rows: Array, folder: Path, effort: str, orthogonal: bool, seed: int, show: bool | None
) -> tuple[Answer | None, bool, bool, bool, list[str]]:
    """(answer, whether it beats the linear model, settled, overfitting, what to say)."""
    from unseam.find import network as net
    from unseam.train.order import split

    how = lookup(net.EFFORTS, effort, "effort")
    onto = net.project(x[rows], d)
    y = net.blurred(onto(x[rows]), seed)
    train, test = (part.numpy() for part in split(len(y), HELD_OUT))
    linear = fit_axes(y[train], d, seed)
    line = np.maximum(linear.log_likelihood(y[test]).mean(), linear.ppca_log_likelihood(y[test]).mean())
    run = net.train(y, min(d, LATENTS), how, seed, folder, HELD_OUT, show)
    alive = [m for m, status in enumerate(run.table()["status"]) if status == "finished"]
    bounds = {m: net.log_bound(run.model(m), y[test], seed) for m in alive}
    used = {m: int(net.in_use(run.model(m), y[test]).sum()) for m in alive}
    best = max((m for m in alive if used[m]), key=lambda m: float(bounds[m].mean()), default=None)
    if best is None:
        return None, False, False, False, ["no network could be trained; the linear model stands"]
    better = gain(bounds[best] - linear.log_likelihood(y[test]))
    state = net.settled_run(run, best)
    said = [words.network(better, float(line), len(test), how.seeds), state.says()]
    if not better.sure(BETTER):
        return None, False, True, False, said
    level = float(bounds[best].mean()) - WITNESS
    models = {m: run.model(m) for m in alive if used[m] and float(bounds[m].mean()) >= level}
    if len(models) < how.seeds:
        said.append(
            f"{how.seeds - len(models)} of {how.seeds} seeds ended more than {WITNESS:g} nats worse and were left out"
        )
    answer, clues = _network_answer(models, best, onto, x[rows], y, train, test, orthogonal, seed)
    return answer, True, state.word == "settled", state.word == "overfitting", [*said, clues]


def _network_answer(
    models: dict[int, Any],
    best: int,
    onto: Any,
    x: Array,
    y: Array,
    train: Array,
    test: Array,
    orthogonal: bool,
    seed: int,
) -> tuple[Answer, str]:
    """Both clues turn every member; the one whose axes come back in other seeds is taken."""
    from unseam.find import network as net

    some = y[train[:2000]]
    clues = {"geometry": net.by_geometry, "independence": net.by_independence}
    turned = {clue: {m: turn(model, some, seed) for m, model in models.items()} for clue, turn in clues.items()}
    codes = {clue: {m: t.encode(y[test]) for m, t in each.items()} for clue, each in turned.items()}
    back = {clue: agreement(each[best], _pairs(each), seed) for clue, each in codes.items()}
    chosen = "independence" if back["independence"].mean > back["geometry"].mean + 0.02 else "geometry"
    other = "geometry" if chosen == "independence" else "independence"
    final = turned[chosen][best]
    moves, gram = final.columns(some)
    apart = net.separations(gram)
    less = net.less_dependent(turned["independence"][best], turned["geometry"][best], some, y[test])
    same = _like(codes[chosen][best], codes[other][best]) > SAME
    shaped = np.array([less.sure() or s for s in same])
    by = tuple(words.clue(bool(i), bool(s), bool(a > TOO_CLOSE)) for i, s, a in zip(shaped, same, apart, strict=True))
    model = net.Through(onto, final)
    W = onto.c * onto.U @ moves
    answer = Answer("non-linear", model, W, final.nats(some), apart, shaped | (apart > TOO_CLOSE), by, back[chosen])
    return answer, words.clues(chosen, back[chosen].mean, back[other].mean, less)


def _pairs(codes: dict[int, Array]) -> list[Twice]:
    """Every two members; a single one cannot come back."""
    members = list(codes.values())
    return list(combinations(members, 2)) or [(members[0], 0 * members[0])]


# Grades


def graded(answer: Answer, prepared: Prepared, enough: bool) -> tuple[FoundFactor, ...]:
    """A grade for each: found if it comes back and a clue decides, pair if its group does, else unstable."""
    back, out = answer.comes_back, []
    for j in range(len(answer.nats)):
        beside = tuple(int(i) for i in np.flatnonzero(back.group == back.group[j]) if i != j)
        grade = grade_of(
            float(back.alone[j]), back.chance, bool(answer.identified[j]), float(back.together[j]), bool(beside), enough
        )
        out.append(
            FoundFactor(
                j, grade, float(answer.nats[j]), float(back.alone[j]), back.chance, moves_of(answer.W[:, j], prepared),
                beside if grade == "pair" else (), float(answer.separation[j]), answer.by[j],
            )
        )  # fmt: skip
    return tuple(out)


def grade_of(alone: float, chance: float, identified: bool, together: float, grouped: bool, enough: bool) -> Grade:
    """
    >>> grade_of(0.99, 0.6, True, 0.99, False, True), grade_of(0.5, 0.6, True, 0.95, True, True)
    ('found', 'pair')
    >>> grade_of(0.99, 0.6, True, 0.99, False, enough=False)
    'unstable'
    """
    if not enough:
        return "unstable"
    if identified and alone >= max(AGREES, chance):
        return "found"
    return "pair" if grouped and together >= AGREES else "unstable"


def moves_of(w: Array, prepared: Prepared) -> tuple[Move, ...]:  # (n,)
    """The columns a factor moves, by the share of their spread, largest first."""
    share = w / np.maximum(prepared.x.std(0), 1e-12)
    order = np.argsort(-np.abs(share), kind="stable")[:SHOWN]
    large = [i for i in order if abs(share[i]) >= MOVES * abs(share[order[0]])]
    change = (prepared.raw(w[None]) - prepared.raw(0 * w[None]))[0]  # of a row at the mean
    return tuple(Move(prepared.features[i], float(change[i]), float(share[i])) for i in large)


def _compared(
    prepared: Prepared, best: Answer, k: int, train: Array, test: Array, truth: Array | None, seed: int
) -> dict[str, dict[str, float | None]]:
    """The rivals with as many components, and ours."""
    x = prepared.x
    raw = prepared.raw(x)
    rows = rivals(x, raw, min(k, x.shape[1]), train, test, truth, seed) if len(train) > 2 * k else {}
    codes = best.model.encode(x[test])
    left = ((x[test] - best.model.decode(codes)) ** 2).sum() / ((x[test] - x[train].mean(0)) ** 2).sum()
    ours = {"variance_kept": 1 - float(left), "stability": best.comes_back.mean, "mcc": mcc(codes, truth, test)}
    return {"unseam": {**ours, "log_likelihood": None}, **rows}
