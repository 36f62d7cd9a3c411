"""The network's answer: a cohort over seeds, if it explains unseen rows better than a linear model; its axes by two
clues, and whether they and the loss had settled."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import lookup
from unseam.finding import sentences
from unseam.finding.axes import fit_axes, not_gaussian, subspace
from unseam.finding.columns import Prepared
from unseam.finding.density import gain, less_dependent
from unseam.finding.dimension import dependent
from unseam.finding.grades import SAME, TOO_CLOSE, Answer, Unseen, together
from unseam.finding.separation import separations
from unseam.finding.stability import Twice, agreement
from unseam.stats import matched_codes

if TYPE_CHECKING:
    from unseam.finding.encoding import Mixing, Pixels, Projection, Through
    from unseam.run import Run

HELD_OUT = 0.2
LATENTS = 10  # of a network, at most
BETTER = 0.05  # nats a row by which a network must beat the linear model
WITNESS = 1.0  # nats a row: a seed that ends worse by more is no witness (images: ten times)
STEADY = 0.02  # by which axes of independence may come back worse than those of geometry
TURNS = 0.95  # rank correlation of a factor with itself a sixth of the training ago: below, it still turns


class Ask(NamedTuple):
    """What is wanted of a network."""

    d: int  # linear dimensions
    rows: Array
    effort: str
    orthogonal: bool
    beta: float
    device: str
    seed: int
    show: bool | None


class Rows(NamedTuple):
    """Rows as the network is given them."""

    onto: Mixing | Projection | Pixels
    x: Array  # (N, n) as they are
    y: Array  # (N, p)
    train: Array
    test: Array

    @property
    def some(self) -> Array:
        return self.y[self.train[:2000]]


def network_answer(prepared: Prepared, ask: Ask, folder: Path) -> tuple[Answer | None, bool, bool, list[str]]:
    """(the answer if it beats the linear model, settled, overfitting, what to say)."""
    from unseam.finding import network as net

    how, images = lookup(net.EFFORTS, ask.effort, "effort"), prepared.shape is not None
    how = replace(how, beta=ask.beta, device=ask.device)
    rows, likelihood = given(prepared, ask)
    latents = LATENTS if images else min(ask.d, LATENTS)
    run = net.until_settled(rows.y, latents, how, likelihood, ask.seed, folder, HELD_OUT, ask.show, how.again)
    alive = [m for m, status in enumerate(run.table()["status"]) if status == "finished"]
    bounds = {m: net.log_bound(run.model(m), rows.y[rows.test], ask.seed) for m in alive}
    used = {m: int(net.in_use(run.model(m), rows.y[rows.test]).sum()) for m in alive}
    best = max((m for m in alive if used[m]), key=lambda m: float(bounds[m].mean()), default=None)
    if best is None:
        return None, False, False, ["no network could be trained; the linear model stands"]
    if images:
        won, better = keeps_more(run.model(best), rows, used[best])
    else:
        won, better = likelier(bounds[best], linear_logs(rows, likelihood, latents, how, ask))
    state = net.settled_run(run, best)
    said = [f"a network ({sentences.plural(how.seeds, 'seed')}) {better} on {len(rows.test):,} unseen rows"]
    if not won:
        return None, True, False, [f"{said[0]}: not taken (its training: {state.says()})"]
    said.append(state.says())
    level = float(bounds[best].mean()) - WITNESS * (10 if images else 1)
    models = {m: run.model(m) for m in alive if used[m] and float(bounds[m].mean()) >= level}
    said += sentences.witnesses(how.seeds, len(models), WITNESS * (10 if images else 1))
    answer, clues, turning = turned_answer(models, best, earlier(run, best), rows, ask, bounds[best])
    settled = state.word == "settled" and not turning.still
    return answer, settled, state.word == "overfitting", [*said, turning.says(), clues]


def given(prepared: Prepared, ask: Ask) -> tuple[Rows, dict[str, Any]]:
    """The rows as the network sees them, and the likelihood that fits."""
    from unseam.finding import encoding as to
    from unseam.finding.network import START
    from unseam.run.config import split

    x, gaps = prepared.x[ask.rows], prepared.gaps[ask.rows]
    train, test = (part.numpy() for part in split(len(x), HELD_OUT))
    if prepared.shape is not None:
        onto: Any = to.pixels(prepared)
        return Rows(onto, x, onto(x), train, test), {"likelihood": "bernoulli"}
    if x.shape[1] > to.COLUMNS:
        onto = to.project(x, ask.d)
        learned = {"likelihood": "gaussian", "learned_s2": True, "s2": START}
        return Rows(onto, x, to.blurred(onto(x), ask.seed), train, test), learned
    onto = to.mix(replace(prepared, x=x, gaps=gaps), ask.d)
    y = to.blurred(onto(x, gaps), ask.seed, onto.gaussian)
    return Rows(onto, x, y, train, test), {"likelihood": "mixed", "columns": onto.columns, "s2": START}


def linear_logs(rows: Rows, likelihood: dict[str, Any], latents: int, how: Any, ask: Ask) -> Array:  # -> (M,)
    """log p of unseen rows by the best linear model: a density, or, where columns have other likelihoods than the
    Gaussian or cells are missing, the same network with a linear decoder."""
    from unseam.finding import network as net

    y, train, test = rows.y, rows.train, rows.test
    if rows.onto.plain:
        axes = fit_axes(y[train], ask.d, ask.seed)
        logs = [
            axes.log_likelihood(y[test]),
            axes.ppca_log_likelihood(y[test]),
            by_factor_analysis(y, train, test, ask.d),
        ]
        return max(logs, key=lambda rows: float(rows.mean()))
    one = replace(how, seeds=1, linear=True)
    with tempfile.TemporaryDirectory() as folder:
        run = net.train(y, latents, one, likelihood, ask.seed, Path(folder) / "run", HELD_OUT, ask.show)
        return net.log_bound(run.model(0), y[test], ask.seed)


def by_factor_analysis(y: Array, train: Array, test: Array, d: int) -> Array:  # -> (M,)
    """Columns with noise of their own, as the network has them."""
    from sklearn.decomposition import FactorAnalysis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorAnalysis(min(d, y.shape[1] - 1), svd_method="lapack", max_iter=200).fit(y[train])
    return np.asarray(model.score_samples(y[test]))


def likelier(bound: Array, line: Array) -> tuple[bool, str]:  # (M,), (M,)
    """A table: the network's bound against the linear model's likelihood of the same rows."""
    better = gain(bound - line)
    return better.sure(BETTER), sentences.network(better, float(line.mean()))


def keeps_more(model: Any, rows: Rows, k: int) -> tuple[bool, str]:
    """Images: what the network keeps of unseen rows against as many principal components."""
    from unseam.finding.network import kept

    y, train, test = rows.y, rows.train, rows.test
    mean, U, _, _ = subspace(y[train], min(k, y.shape[1]))
    centred = y[test] - mean
    line = float(((centred @ U) ** 2).sum() / (centred**2).sum())
    ours = kept(model, y[test], mean)
    return ours > line, sentences.kept(ours, line, k)


def earlier(run: Run, member: int) -> tuple[int, Any]:
    """The last but one snapshot: when, and the model that it was."""
    steps = run.kept_steps(member)
    return steps[-1] - steps[-2], run.model(member, steps[-2])


class Turning(NamedTuple):
    """How much each factor is like itself some steps before the end."""

    steps: int
    like: Array  # (k,)

    @property
    def still(self) -> bool:
        return bool(self.like.min() < TURNS)

    def says(self) -> str:
        return sentences.turning(float(self.like.min()), self.steps, self.still)


def turned_answer(
    models: dict[int, Any], best: int, before: tuple[int, Any], rows: Rows, ask: Ask, bound: Array
) -> tuple[Answer, str, Turning]:
    """Both clues turn every member. Axes are those of independence if the codes are surely less dependent in them, and
    come back in other seeds as well as those of geometry; else those of geometry."""
    from unseam.finding import network as net
    from unseam.finding.encoding import Through

    some, y, test, seed = rows.some, rows.y, rows.test, ask.seed
    clues = {"geometry": net.by_geometry, "independence": net.by_independence}
    turned = {clue: {m: turn(model, some, seed) for m, model in models.items()} for clue, turn in clues.items()}
    codes = {clue: {m: t.encode(y[test]) for m, t in each.items()} for clue, each in turned.items()}
    back = {clue: agreement(each[best], _pairs(each), seed) for clue, each in codes.items()}
    less = less_dependent(turned["independence"][best].encode(y), turned["geometry"][best].encode(y))
    decides = less.sure() and back["independence"].mean > back["geometry"].mean - STEADY
    chosen, other = ("independence", "geometry") if decides else ("geometry", "independence")
    final = turned[chosen][best]
    moves, gram = final.columns(some)
    apart = separations(gram)
    same = matched_codes(codes[chosen][best], codes[other][best]).values > SAME
    own = final.encode(y)
    depends = dependent(own, seed)
    linked = bool(depends.any())
    shaped = np.array([(decides or s) and not_gaussian(c) for s, c in zip(same, own.T, strict=True)])
    by = tuple(
        sentences.LINKED if linked else sentences.clue(bool(i), bool(s), bool(a > TOO_CLOSE))
        for i, s, a in zip(shaped, same, apart, strict=True)
    )
    identified = (shaped | (ask.orthogonal & (apart > TOO_CLOSE))) & (not linked)
    comes_back = together(back[chosen], depends | np.outer(~identified, ~identified))
    W = rows.onto.moves(moves)
    model = Through(rows.onto, final)
    beside = unseen(model, rows, ask, bound)
    answer = Answer("non-linear", model, W, final.nats(some), apart, identified, by, comes_back, beside)
    was = (
        clues[chosen](before[1], some, seed).encode(y[test])
        if net.in_use(before[1], some).any()
        else 0 * codes[chosen][best]
    )
    turning = Turning(before[0], matched_codes(codes[chosen][best], was).values)
    return answer, sentences.clues(chosen, back[chosen].mean, back[other].mean, less), turning


def unseen(model: Through, rows: Rows, ask: Ask, bound: Array) -> Unseen:  # (M,)
    """To be compared on the rows that the networks were not trained on; a bound on the likelihood where linear models
    have a density of the same columns."""
    given, log = (rows.y, float(bound.mean())) if rows.onto.plain else (rows.x, None)
    train, test = rows.train, rows.test
    return Unseen(model, ask.rows[train], ask.rows[test], (given[train], given[test]), log)


def _pairs(codes: dict[int, Array]) -> list[Twice]:
    """Every two members; a single one cannot come back."""
    members = list(codes.values())
    return list(combinations(members, 2)) or [(members[0], 0 * members[0])]
