"""The network's answer: a cohort over seeds, if it explains unseen rows better than a linear model; its axes by two
clues, and whether they and the loss had settled."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.device import torch_threads
from unseam.errors import lookup
from unseam.finding import sentences
from unseam.finding.axes import not_gaussian, subspace
from unseam.finding.columns import Prepared
from unseam.finding.density import dependent, gain, less_dependent
from unseam.finding.grades import SAME, TOO_CLOSE, Answer, Certificate, ClueTest, Unseen, join_groups
from unseam.finding.latent_count import BETTER, LATENTS, Choice, NetworkCohort, fewest_latents
from unseam.finding.linear_rival import Rival, linear_rival
from unseam.finding.stability import Twice, agreement, separations
from unseam.stats import matched_codes

if TYPE_CHECKING:
    from unseam.finding.encoding import Mixing, Pixels, Projection, Through
    from unseam.finding.network import Effort
    from unseam.run import Run

_WITNESS = 1.0  # nats a row: a seed that ends worse by more is no witness (images: ten times)
_STEADY = 0.02  # by which axes of independence may come back worse than those of geometry
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
    fixed: bool = False  # whether the number of latents was asked for


class _Rows(NamedTuple):
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
    with torch_threads(1):
        return _network_answer(prepared, ask, folder)


def _network_answer(prepared: Prepared, ask: Ask, folder: Path) -> tuple[Answer | None, bool, bool, list[str]]:
    from unseam.finding import network as net

    how, images = lookup(net.EFFORTS, ask.effort, "effort"), prepared.shape is not None
    how = replace(how, beta=ask.beta, device=ask.device)
    rows, likelihood = given(prepared, ask)
    choice = _chosen(rows, likelihood, how, ask, folder, images)
    cohort = choice.cohort
    if cohort is None or cohort.best is None:
        return None, False, False, ["no network could be trained; the linear model stands"]
    rival = None if images else linear_rival(rows, likelihood, how, ask, "the linear model, as a network")
    if rival is None or not _hopeless(cohort, rival, how):
        how = replace(how, stage=f"the network with {sentences.plural(cohort.latents, 'latent')}, until it settles")
        cohort = _measured(net.train_longer(cohort.run, how, ask.show), cohort.latents, rows, ask.seed)
    best, bounds, state = cohort.best, cohort.bounds, net.member_loss_state(cohort.run, cohort.best or 0)
    if best is None:
        return None, False, False, ["no network uses any of its latents; the linear model stands"]
    models = {m: net.rested_model(cohort.run, m) for m in bounds}
    if rival is None:
        won, better = _keeps_more(models[best], rows, cohort.used[best])
    else:
        won, better = is_likelier(bounds[best], rival.logs)
    notes = [f"a network ({sentences.plural(how.seeds, 'seed')}) {better} on {len(rows.test):,} unseen rows"]
    notes = [notes[0], choice.says()] if choice.says() else notes
    if not won:
        return None, True, False, [f"{notes[0]}: not taken (its training: {state.says()})"]
    if rival is not None and (state.word == "still falling" or not rival.settled):
        why = state.says() if rival.settled else f"the linear model to compare it with: {rival.state}"
        return None, False, False, [*notes, f"not taken, because training had not settled: {why}"]
    notes.append(state.says())
    level = float(bounds[best].mean()) - _WITNESS * (10 if images else 1)
    stayed = {m: models[m] for m in bounds if cohort.used[m] and float(bounds[m].mean()) >= level}
    notes += sentences.witnesses(how.seeds, len(stayed), _WITNESS * (10 if images else 1))
    before, rests = _earlier_snapshot(cohort.run, best), state.word == "settled"
    answer, clues, turning = turned_answer(stayed, best, before, rows, ask, bounds[best], rests)
    settled = rests and not turning.still
    return answer, settled, state.word == "overfitting", [*notes, turning.says(), clues]


def _chosen(
    rows: _Rows, likelihood: dict[str, Any], how: Effort, ask: Ask, folder: Path, images: bool
) -> Choice:  # fmt: skip
    """The cohort with the number of latents that unseen rows ask for; its run is moved to `folder`."""
    from unseam.finding import network as net
    from unseam.run import load_run

    most = LATENTS if images else min(ask.d, LATENTS)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:

        def trained(latents: int) -> NetworkCohort:
            words = f"network {most - latents + 1} of at most {most} with {sentences.plural(latents, 'latent')}"
            place, named = Path(aside) / f"run{latents}", replace(how, stage="the network" if alone else words)
            run = net.train(rows.y, latents, named, likelihood, ask.seed, place, ask.show)
            return _measured(run, latents, rows, ask.seed)

        alone = images or ask.fixed
        if alone:
            only = trained(most)
            choice = Choice(only, {})
        else:
            choice = fewest_latents(most, trained)
        if choice.cohort is None:
            return choice
        shutil.move(choice.cohort.run.folder, folder)
    return replace(choice, cohort=choice.cohort._replace(run=load_run(folder)))


def _measured(run: Run, latents: int, rows: _Rows, seed: int) -> NetworkCohort:
    """Bounds of the unseen rows by every member that was trained."""
    from unseam.finding import network as net

    alive = [m for m, status in enumerate(run.table()["status"]) if status == "finished"]
    models = {m: net.rested_model(run, m) for m in alive}
    unseen = rows.y[rows.test]
    bounds = {m: net.log_bound(model, unseen, seed) for m, model in models.items()}
    return NetworkCohort(
        latents, run, bounds, {m: int(net.model_latents_in_use(model, unseen).sum()) for m, model in models.items()}
    )


def _hopeless(cohort: NetworkCohort, rival: Rival, how: Effort) -> bool:
    """Whether the network stays behind the linear model even if its loss falls as fast as now to the last step."""
    from unseam.finding import network as net

    assert cohort.best is not None
    falls = max(net.member_loss_state(cohort.run, cohort.best).per_1000, 0.0) * how.again * how.steps / 1000
    return float(cohort.bounds[cohort.best].mean()) + falls < float(rival.logs.mean())


def given(prepared: Prepared, ask: Ask) -> tuple[_Rows, dict[str, Any]]:
    """The rows as the network sees them, and the likelihood that fits."""
    from unseam.finding import encoding as to
    from unseam.finding.network import HELD_OUT, START
    from unseam.run.config import split

    x, gaps = prepared.x[ask.rows], prepared.gaps[ask.rows]
    train, test = (part.numpy() for part in split(len(x), HELD_OUT))
    if prepared.shape is not None:
        onto: Any = to.pixels(prepared)
        return _Rows(onto, x, onto(x), train, test), {"likelihood": "bernoulli"}
    if x.shape[1] > to.MOST_MIXED:
        onto = to.project(x, ask.d)
        learned = {"likelihood": "gaussian", "learned_s2": True, "s2": START}
        return _Rows(onto, x, to.blurred(onto(x), ask.seed), train, test), learned
    onto = to.mix(replace(prepared, x=x, gaps=gaps), ask.d)
    y = to.blurred(onto(x, gaps), ask.seed, onto.gaussian)
    return _Rows(onto, x, y, train, test), {"likelihood": "mixed", "columns": onto.columns, "s2": START}


def is_likelier(bound: Array, line: Array) -> tuple[bool, str]:  # (M,), (M,)
    """A table: the network's bound against the linear model's likelihood of the same rows."""
    better = gain(bound - line)
    return better.sure(BETTER), sentences.network(better, float(line.mean()))


def _keeps_more(model: Any, rows: _Rows, k: int) -> tuple[bool, str]:
    """Images: what the network keeps of unseen rows against as many principal components."""
    from unseam.finding.network import variance_kept

    y, train, test = rows.y, rows.train, rows.test
    mean, U, _, _ = subspace(y[train], min(k, y.shape[1]))
    centred = y[test] - mean
    line = float(((centred @ U) ** 2).sum() / (centred**2).sum())
    ours = variance_kept(model, y[test], mean)
    return ours > line, sentences.variance_sentence(ours, line, k)


def _earlier_snapshot(run: Run, member: int) -> tuple[int, Any]:
    """The snapshot before the one that is used (the one after, if it is the first): how far, and what it was."""
    from unseam.finding.network import rested_step

    steps = run.snapshot_steps(member)
    at = steps.index(rested_step(run, member))
    other = steps[at - 1 if at else 1]
    return abs(steps[at] - other), run.model(member, other)


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
    models: dict[int, Any], best: int, before: tuple[int, Any], rows: _Rows, ask: Ask, bound: Array, rests: bool = True
) -> tuple[Answer, str, Turning]:
    """Every clue turns every member. Axes are those of independence if the codes are surely less dependent in them, and
    come back in other seeds as well as those of geometry; else those of simplicity, if the Jacobian is simpler than
    chance in them and they come back as well; else those of geometry. No axis is identified unless the loss and the
    axes rest."""
    from unseam.finding import network as net
    from unseam.finding.encoding import Through

    some, y, test, seed = rows.some, rows.y, rows.test, ask.seed
    clues = {"geometry": net.by_geometry, "independence": net.by_independence, "simplicity": net.by_simplicity}
    turned = {clue: {m: turn(model, some, seed) for m, model in models.items()} for clue, turn in clues.items()}
    codes = {clue: {m: t.encode(y[test]) for m, t in each.items()} for clue, each in turned.items()}
    back = {clue: agreement(each[best], _pairs(each), seed) for clue, each in codes.items()}
    less = less_dependent(turned["independence"][best].encode(y), turned["geometry"][best].encode(y))
    structure = net.simplest(models[best], some, seed)[1]
    decides = less.sure() and back["independence"].mean > back["geometry"].mean - _STEADY
    simple = structure.simple and not decides and back["simplicity"].mean > back["geometry"].mean - _STEADY
    chosen = "independence" if decides else "simplicity" if simple else "geometry"
    other = "geometry" if chosen == "independence" else "independence"
    final = turned[chosen][best]
    moves, gram = final.columns(some)
    apart = separations(gram)
    near = {clue: matched_codes(codes[chosen][best], codes[clue][best]).values > SAME for clue in clues}
    same, own = near[other], final.encode(y)
    depends = dependent(own, seed)
    linked = bool(depends.any())
    shaped = np.array([(decides or s) and not_gaussian(c) for s, c in zip(same, own.T, strict=True)])
    sparse = np.asarray(~structure.undecided.any(1) & bool(simple))
    was = (
        clues[chosen](before[1], some, seed).encode(y[test])
        if net.model_latents_in_use(before[1], some).any()
        else 0 * codes[chosen][best]
    )
    turning = Turning(before[0], matched_codes(codes[chosen][best], was).values)
    rests = rests and not turning.still
    right = ask.orthogonal & (apart > TOO_CLOSE)
    identified = (shaped | sparse | right) & (not linked) & rests
    by = tuple(
        sentences.UNSETTLED if not rests else sentences.LINKED if linked else sentences.SIMPLE if p and not i
        else sentences.clue_sentence(bool(i), bool(s), bool(a > TOO_CLOSE))
        for i, p, s, a in zip(shaped, sparse, same, apart, strict=True)
    )  # fmt: skip
    certificates = tuple(
        Certificate(
            "none" if not identified[j] else "independence" if shaped[j] else "simplicity" if sparse[j] else "geometry",
            (ClueTest("independence", bool(shaped[j]), less.mean, 3 * less.error, None, not near["independence"][j],
                      "nats of total correlation below that of geometry's axes"),
             ClueTest("simplicity", structure.simple, structure.criterion, structure.bar, structure.p_value,
                      structure.simple and not near["simplicity"][j], "varimax criterion of the Jacobian"),
             ClueTest("geometry", bool(right[j]), float(apart[j]), TOO_CLOSE, None, not near["geometry"][j],
                      "relative difference of singular values")),
        )
        for j in range(len(identified))
    )  # fmt: skip
    comes_back = join_groups(back[chosen], depends | np.outer(~identified, ~identified))
    W = rows.onto.moves(moves)
    model = Through(rows.onto, final)
    beside = unseen(model, rows, ask, bound)
    answer = Answer("non-linear", model, W, final.nats(some), apart, identified, by, comes_back, beside, certificates)
    return answer, sentences.clue_choice_sentence(chosen, back[chosen].mean, back[other].mean, less), turning


def unseen(model: Through, rows: _Rows, ask: Ask, bound: Array) -> Unseen:  # (M,)
    """To be compared on the rows that the networks were not trained on; a bound on the likelihood where linear models
    have a density of the same columns."""
    given, log = (rows.y, float(bound.mean())) if rows.onto.plain else (rows.x, None)
    train, test = rows.train, rows.test
    return Unseen(model, ask.rows[train], ask.rows[test], (given[train], given[test]), log)


def _pairs(codes: dict[int, Array]) -> list[Twice]:
    """Every two members; a single one cannot come back."""
    members = list(codes.values())
    return list(combinations(members, 2)) or [(members[0], 0 * members[0])]
