"""A trained run, diagnosed at held-out rows, each member once: the result is cached. Here runs meet geometry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry import Diagnosis
from unseam.geometry import diagnose as diagnose_codes
from unseam.metrics.registry import METRICS
from unseam.models import Autoencoder
from unseam.objectives import OBJECTIVES
from unseam.progress import bar, log
from unseam.run import Run
from unseam.runs.cache import CachedResult, cached_result, once
from unseam.runs.choices import DIAGNOSIS_POINTS
from unseam.runs.rank_members import agreement_columns, criterion_agreement, member_agreement, rank
from unseam.runs.represent import EncodedRows, RowSample, represent, sample_rows, some

ROWS_ENCODED = 2000  # rows that are encoded at least


def chosen_members(run: Run, members: Iterable[int] | None) -> list[int]:
    """The selected members, or all that finished; a warning says why the others are left out."""
    if members is not None:
        return list(members)
    wrong = not_whole(run)
    whole = [m for m in range(len(run.members)) if not wrong.get(m)]
    if not whole:
        raise BadInput(f"run={str(run.folder)!r} has no finished member ({_in_words(wrong)}); train it again, "
                       "scaled (--scale standard) or with a smaller --lr, or ask for one by --member")  # fmt: skip
    if not len(run.table()):
        log.warning("this run is unfinished: what follows is as of its last checkpoints")
    say_left_out(run)
    return whole


def say_left_out(run: Run) -> None:
    """Warn about members that are left out, and why."""
    if overfit := _in_words(not_whole(run)):
        log.warning(f"left out: {overfit}")


def _in_words(wrong: Mapping[int, str]) -> str:
    """
    >>> _in_words({0: "", 2: "is unfinished"})
    'member 2 is unfinished'
    """
    return "; ".join(f"member {m} {why}" for m, why in wrong.items() if why)


def one_member(run: Run, wanted: int | None) -> int:
    """The selected member; else the label-free choice if it was made already, else the first that finished."""
    if wanted is not None:
        return wanted
    whole, choice = chosen_members(run, None), chosen_already(run)
    return whole[0] if choice is None else choice


def heading(run: Run, member: int) -> str:
    """A member as every table and page names it, and what is wrong with it, if anything is."""
    wrong = not_whole(run).get(member)
    return run.label(member) + (f", {wrong}" if wrong else "")


def not_whole(run: Run) -> dict[int, str]:
    """What is wrong with each member; "" where nothing is.

    A run without a finished member is diagnosed as it is.
    """
    table = run.table().set_index("member")
    if not len(table):
        return {}
    status = {m: str(table.loc[m, "status"]) if m in table.index else "is unfinished" for m in range(len(run.members))}
    notes = {m: str(table.loc[m, "note"]) if m in table.index else "" for m in status}
    return {m: "" if s == "finished" else f"{s}: {notes[m]}".removesuffix(": ") for m, s in status.items()}


def rows_of(run: Run, count: int, seed: int = 0) -> RowSample:
    """The rows of a diagnosis: held-out ones if there are more than latents, else any."""
    return sample_rows(run, None, count, seed, "explain", enough=run.config.architecture.latents + 1)


def see(run: Run, model: Autoencoder, samples: int, seed: int) -> EncodedRows:
    """The rows of a diagnosis through the encoder."""
    return represent(model, run.data, rows_of(run, samples, seed).rows, seed)


def diagnose(
    run: Run,
    members: Iterable[int] | None = None,
    points: int = DIAGNOSIS_POINTS,
    seed: int = 0,
    show: bool | None = None,
) -> dict[int, Diagnosis]:
    """The diagnosis of each member, computed once.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...           out=tempfile.mkdtemp() + "/run", show=False)
    >>> diagnose(run, points=50)[0].points
    30
    """
    chosen = chosen_members(run, members)
    with bar("diagnosing", len(chosen), show) as advance:
        out = {}
        for member in chosen:
            out[member] = diagnosis(run, member, points, seed)
            advance()
    return out


def needs_decoder(run: Run) -> None:
    """Refuse runs whose objective trains no decoder: there is nothing to differentiate."""
    kind = OBJECTIVES.get(run.config.objective)
    if kind is not None and not kind.decodes:
        raise BadInput(f"{kind.cannot}; `unseam evaluate` scores its codes, `unseam report` shows them")


def diagnosis(run: Run, member: int, points: int, seed: int) -> Diagnosis:
    """A member's diagnosis, from the cache or computed now."""
    needs_decoder(run)
    rows, settings = _rows_and_settings(run, points, seed)
    make = partial(fresh, run, member, rows, points, seed)
    return Diagnosis.from_parts(*once(run, "diagnosis", member, settings, lambda: CachedResult(*make().to_parts())))


def _rows_and_settings(run: Run, points: int = DIAGNOSIS_POINTS, seed: int = 0) -> tuple[RowSample, dict[str, Any]]:
    """The rows of a diagnosis, and what it is found again by."""
    rows = rows_of(run, max(points, ROWS_ENCODED), seed)
    return rows, {"rows": rows.to_json(), "points": points, "seed": seed}


def chosen_already(run: Run) -> int | None:
    """The member that the label-free choice picks if every finished one was diagnosed before; nothing is computed."""
    settings = _rows_and_settings(run)[1]
    parts = {m: cached_result(run, "diagnosis", m, settings) for m in finished_or_all(run)}
    found = {m: Diagnosis.from_parts(*cached_parts) for m, cached_parts in parts.items() if cached_parts is not None}
    return ranking(run, found)["chosen"] if found and len(found) == len(parts) else None


def fresh(run: Run, member: int, rows: RowSample, points: int, seed: int) -> Diagnosis:
    """A member's diagnosis, computed."""
    model, kind = run.model(member), OBJECTIVES.get(run.config.objective)
    encoded = represent(model, run.data, rows.rows, seed)
    found = diagnose_codes(
        model,
        encoded.posterior.mean,
        encoded.posterior,
        data=encoded.x,
        encoder=model.encode,
        beta=run.beta(member),
        points=points,
        factors=None if run.data.space is None else sum(f.size != 1 for f in run.data.space),
        has_beta=kind is None or kind.has_beta,
    )
    found = warned(found, gap(run, model, seed))
    return found if kind is None or not kind.cannot else replace(found, warnings=(kind.cannot, *found.warnings))


def kl_weight_of(run: Run, member: int) -> float:
    """The weight of the KL in a member's loss; where its objective has none, the diagnosis' estimate."""
    beta = run.beta(member)
    return beta if beta is not None else diagnose(run, [member], show=False)[member].beta


def ranking(run: Run, found: Mapping[int, Diagnosis], show: bool | None = None) -> dict[str, Any]:
    """Finished members from best to worst without labels, and how far scores that `evaluate` has stored agree.

    `chosen` is None unless every finished member was diagnosed. `seeds`: how far members agree with each other.
    """
    done = finished_or_all(run)
    members = [m for m in found if m in done] or list(found)
    agreed = member_agreement(run, members, show=show) if len(members) > 1 else {}
    settings = [run.members[m].setting for m in members]
    order, stored = (
        rank([found[m] for m in members], settings, agreement_columns([agreed[m] for m in members if m in agreed])),
        stored_scores(run),
    )
    return {
        "seeds": {m: each._asdict() for m, each in agreed.items()},
        "order": [members[position] for position in order.order],
        "chosen": members[order.order[0]] if set(done) <= set(members) else None,
        "agreement": criterion_agreement(order, common([stored.get(m, {}) for m in members]))
        if len(members) > 2
        else {},
    }


def finished_or_all(run: Run) -> list[int]:
    """Members that trained to the end; while there is none, all of them, as of their last checkpoints."""
    return run.finished_members() or list(range(len(run.members)))


def stored_scores(run: Run) -> dict[int, dict[str, float]]:
    """member -> metric -> what `evaluate` has written, with the sign that makes more better."""
    out: dict[int, dict[str, float]] = {}
    for row in run.rows.read("scores").dropna(subset="value").to_dict("records"):
        lower = row["name"] in METRICS and METRICS[row["name"]].direction == "lower"
        out.setdefault(int(row["member"]), {})[str(row["name"])] = -row["value"] if lower else row["value"]
    return out


def common(scores: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """One list per metric, for those that every member has.

    >>> common([{"mig": 0.5, "sap": 0.1}, {"mig": 0.2}])
    {'mig': [0.5, 0.2]}
    """
    return {name: [each[name] for each in scores] for name in scores[0] if all(name in each for each in scores)}


# Has a member memorised its training rows? Compare rows that it never saw with rows that it did.
#
# l(x) = -log p(x | E_q[z]) is what a row's reconstruction costs. With n_h held-out and n_t trained rows,
#
#     gap = mean_h l - mean_t l,   its error = sqrt(var_h / n_h + var_t / n_t),   d = gap / sqrt((var_h + var_t) / 2)
#
# Overfitting is what chance (T errors) does not explain and what is not small beside the rows' own spread (D of it).


_ROWS = 500  # of each kind
_T, D = 2.6, 0.2  # errors of the gap (1 % by chance from FEWEST rows on); a small effect, by Cohen's convention
_FEWEST = 10  # rows of each kind
_MORE = ("add latents", "lower beta", "over-pruned", "raise K")  # advice that makes it worse


@dataclass(frozen=True)
class OverfitGap:
    """Mean cost of a row that was held out, of one that was trained on, and whether they differ."""

    held_out: float
    trained: float
    error: float
    d: float

    @property
    def overfits(self) -> bool:
        return self.held_out - self.trained > _T * self.error and self.d > D

    def __str__(self) -> str:
        nats = f"{self.held_out - self.trained:.2g} nats ({self.held_out:.4g} against {self.trained:.4g})"
        return f"overfitting: held-out rows are reconstructed worse than trained ones, by {nats}"


def gap_of(held: Array, trained: Array) -> OverfitGap:  # (n_h,), (n_t,)
    """
    >>> import numpy as np
    >>> wide, rng = np.ones(50), np.random.default_rng(0)
    >>> [gap_of(up * wide + rng.normal(size=50), rng.normal(size=50)).overfits for up in (0, 1)]
    [False, True]
    """
    spread = held.var(ddof=1), trained.var(ddof=1)
    error = float((spread[0] / len(held) + spread[1] / len(trained)) ** 0.5)
    gap = float(held.mean() - trained.mean())
    return OverfitGap(float(held.mean()), float(trained.mean()), error, gap / max(float(sum(spread) / 2) ** 0.5, 1e-12))


@torch.no_grad()
def gap(run: Run, model: Autoencoder, seed: int = 0) -> OverfitGap | None:
    """Of a run's member; None where fewer than FEWEST rows of a kind are there."""
    kinds = [some(run.split(which), _ROWS, seed, "overfit") for which in ("held-out", "trained")]
    if min(map(len, kinds)) < _FEWEST:
        return None
    return gap_of(*(costs(run, model, rows, seed) for rows in kinds))


def costs(run: Run, model: Autoencoder, rows: torch.Tensor, seed: int) -> Array:  # (N,)
    """-log p(x | E_q[z]) of each row."""
    encoded = represent(model, run.data, rows, seed)
    device = next(model.parameters()).device
    x, z = encoded.x.to(device), encoded.posterior.mean.to(device)
    return -model.likelihood.log_prob(x, model.decode(z)).double().cpu().numpy()


def warned(found: Diagnosis, overfit: OverfitGap | None) -> Diagnosis:
    """The diagnosis with overfitting named first, and without advice that would add to it."""
    if overfit is None or not overfit.overfits:
        return found
    way = "more rows, fewer latents or steps" + (", or a larger beta" if found.has_beta else "")
    fitting = [text for text in found.warnings if not any(word in text for word in _MORE)]
    return replace(found, warnings=(f"{overfit}: {way}", *fitting))
