"""Data and its models -> a perturbed data set: choose two layouts, train m, write the folder.

DIR/asked.json            the settings of the folder: the same call continues, another one is refused
DIR/original/             the restarts that were trained (unless a run was given)
DIR/manipulation.safetensors   the training of m, so that it can be resumed
DIR/perturbed.json, m.safetensors   the data set: `unseam train DIR`
DIR/manipulation.json     what was chosen, and how the gap fell
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unseam.atomic import write_atomic
from unseam.axes import Array, FactorSpace
from unseam.data import config as data_config
from unseam.data.base import Dataset
from unseam.data.sets.perturbed import Perturbed, column_reach, write_perturbed
from unseam.errors import BadInput
from unseam.geometry.jacobian import jacobian_slices
from unseam.metrics import mig
from unseam.models import Diagonal
from unseam.perturb.adversary import Manipulation, Settings, manipulate
from unseam.perturb.layouts import Teacher, standardised, strongest, teacher, turned_layout
from unseam.run import Run
from unseam.runs.diagnose import diagnose, ranking
from unseam.runs.evaluate import evaluate
from unseam.runs.represent import represent, some
from unseam.train import fit, resume

_How = Literal["turned", "restart"]
_Request = dict[str, Any]
_ROWS = 20_000  # observations that m is trained on
TABLE_NETWORK = {"network": "mlp", "encoder": (128, 128), "decoder": (128, 128), "decoder_activation": "tanh"}
_TRAINING = {"likelihood": "gaussian", "s2": 0.05, "beta": 1.0, "steps": 3000, "lr": 2e-3}  # small images: all latents
_LATENTS = 6  # where the number of factors is not known


@dataclass(frozen=True)
class PerturbResult:
    """A perturbed data set and how it came about."""

    data: Perturbed
    run: Run  # the models it was made with
    disentangled: int  # member
    entangled: int  # member; the same one where it was turned
    chosen_by: str
    found: Manipulation
    largest_change: float
    change: float  # root mean square
    contrast: float  # slope of x' over x: dimming alone shrinks any gap to its square
    pair: tuple[int, int]  # the latents that were turned; the two most informative of the disentangled for a restart
    turns: dict[str, float]  # degrees by which the disentangled decoder's preferred axes turned, "before" and "after"
    pictures: dict[str, Array]  # some observations: original, perturbed; m along its scalar


def _restarts(data: Dataset, out: Path, seeds: Sequence[int], show: bool | None = None, **settings: Any) -> Run:
    """Beta-VAEs on the original data, as many latents as factors vary; taken up where they stopped."""
    folder = out / "original"
    if (folder / "config.json").exists():
        return resume(folder, show=show)
    latents = _LATENTS if data.space is None else sum(f.size != 1 for f in data.space)
    if latents < 2:
        raise BadInput("the data has one factor that varies; two axes are needed to turn one against the other")
    settings = {"latents": latents, **TABLE_NETWORK, **_TRAINING, **settings}
    return fit(data, "beta-vae", seeds=list(seeds), out=folder, show=show, **settings)


def order_members(run: Run, show: bool | None = None) -> tuple[list[int], str]:
    """(members from the most to the least disentangled, by what): MIG where factors are known, else without labels."""
    if run.data.space is not None:
        found = evaluate(run, "mig", show=show)
        return sorted(found, key=lambda member: -found[member]["mig"].value), "MIG"
    return ranking(run, diagnose(run, show=show))["order"], "the label-free order (DtO over chance)"


def perturb(
    data: Dataset,
    out: str | Path,
    settings: Settings | None = None,
    run: Run | None = None,
    how: _How = "turned",
    seeds: Sequence[int] = range(6),
    show: bool | None = None,
    ensemble: int = 1,
    **training: Any,
) -> PerturbResult:
    """Change every observation by at most eps, so that other axes become cheaper to decode.

    With an ensemble the losses of several models on each side are summed: the most and the least disentangled ones.
    """
    folder, settings = Path(out), settings or Settings()
    if data.stochastic:
        raise BadInput("perturb needs observations that stay the same from one look to the next; this data is random")
    if run is not None and data_config(run.data) != data_config(data):
        raise BadInput(f"the models in {str(run.folder)!r} were trained on other data; choose another folder or run")
    began(folder, _request(settings, run, how, seeds, training | ({"ensemble": ensemble} if ensemble > 1 else {})))
    run = run or _restarts(data, folder, seeds, show, **training)
    if data_config(run.data) != data_config(data):
        raise BadInput(f"the models in {str(run.folder)!r} were trained on other data; choose another folder or run")
    order, by = order_members(run, show)
    if not 1 <= ensemble <= max(1, len(order) // 2):
        raise BadInput(f"ensemble={ensemble} needs twice as many restarts, there are {len(order)}")
    best, worst = order[0], order[-1]
    rows = some(torch.arange(len(data)), _ROWS)
    pairs = [layouts(run, data, rows, order[i], order[-1 - i], how) for i in range(ensemble)]
    x, (dis, ent) = data.batch(rows), pairs[0]
    own = None if data.space is not None else _codes_of(run, data, best)
    scale = column_reach(data.factors(rows)) if own is None else None
    w = torch.as_tensor(own)[rows] if scale is None else (data.factors(rows).float() - scale[0]) / scale[1]
    pair = ent.pair or strongest(dis)
    before = preferred_turn(dis, pair)
    found = manipulate(
        x,
        w,
        [one for one, _ in pairs],
        [other for _, other in pairs],
        settings,
        folder / "manipulation.safetensors",
        show,
    )
    outcome = write_perturbed(folder, data_config(data), settings.eps, found.mover, scale, own)
    moved = outcome.batch(rows)
    result = PerturbResult(
        outcome,
        run,
        best,
        worst if how == "restart" else best,
        by,
        found,
        float((moved - x).abs().max()),
        float((moved - x).square().mean().sqrt()),
        _contrast(x, moved),
        pair,
        {"before": before, "after": preferred_turn(dis, pair)},
        _pictures(outcome, rows),
    )
    write_atomic(folder / "manipulation.json", json.dumps(manipulation_summary(result, settings, how), indent=2))
    return result


def _request(
    settings: Settings, run: Run | None, how: _How, seeds: Sequence[int], training: dict[str, Any]
) -> _Request:
    """Everything that a folder depends on, as JSON."""
    own = {"seeds": [int(seed) for seed in seeds], **training} if run is None else {"run": str(run.folder.resolve())}
    found: _Request = json.loads(json.dumps({**asdict(settings), "teacher": how, **own}))
    return found


def began(folder: Path, wanted: _Request) -> None:
    """Note what a new folder is begun with; refuse one that was begun with something else."""
    path = folder / "asked.json"
    if not path.exists() and (folder / "perturbed.json").exists():
        raise BadInput(f"out={str(folder)!r} holds a perturbed data set of an earlier version; choose another folder")
    if not path.exists():
        write_atomic(path, json.dumps(wanted, indent=2))
        return
    try:
        before: _Request = dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path} is damaged ({error}); choose another folder") from None
    for name in (*before, *wanted):
        if before.get(name) != wanted.get(name):
            result = f"{name}={wanted.get(name)}, but {str(folder)!r} was begun with {before.get(name)}"
            raise BadInput(f"{result}; choose another folder")


def _contrast(x: Tensor, moved: Tensor) -> float:
    """The slope of the least-squares line from values before to values after: below 1 the data was dimmed.

    >>> x = torch.tensor([0.0, 0.5, 1.0])
    >>> round(_contrast(x, 0.1 + 0.8 * x), 3)
    0.8
    """
    centred = x - x.mean()
    return float((centred * moved).sum() / centred.square().sum())


def layouts(run: Run, data: Dataset, rows: Tensor, best: int, worst: int, how: _How) -> tuple[Teacher, Teacher]:
    """The disentangled and the entangled layout at the rows."""
    found = []
    for member in (best, worst):
        model = run.model(member)
        posterior = represent(model, data, rows).posterior
        if not isinstance(posterior, Diagonal):
            kind = type(posterior).__name__
            raise BadInput(f"run={str(run.folder)!r}: perturb needs diagonal posteriors, these are {kind}")
        found.append(teacher(model, posterior, run.beta(member) or 1.0, f"member {member}"))
    if how == "restart":
        return found[0], found[1]
    return found[0], turned_layout(found[0], worst_pair(found[0], data, rows))


def worst_pair(layout: Teacher, data: Dataset, rows: Tensor) -> tuple[int, int] | None:
    """The two latents whose turning costs most MIG; None, the two most informative ones, where factors are unknown."""
    if data.space is None:
        return None
    factors = data.factors(rows)
    varied = (factors != factors[0]).any(0).nonzero().flatten().tolist()
    space = FactorSpace(tuple(data.space[i] for i in varied))
    scores = {
        pair: mig(turned_layout(layout, pair).mean.numpy(), factors[:, varied].numpy(), space).value
        for pair in combinations(range(layout.mean.shape[1]), 2)
    }
    return min(scores, key=lambda pair: scores[pair])


def _codes_of(run: Run, data: Dataset, member: int) -> Array:  # (N, K)
    """A substitute for factors where none are known: a model's codes, scaled."""
    return standardised(represent(run.model(member), data, torch.arange(len(data))).codes)


@torch.no_grad()
def preferred_turn(layout: Teacher, pair: tuple[int, int], points: int = 200) -> float:
    """How far the preferred axes of two latents are turned from them, degrees: 0 aligned, 45 at most."""
    first, second = pair
    M = torch.zeros(2, 2, dtype=torch.float64)
    for theta, D in jacobian_slices(layout.decoder, layout.mean[:points]):
        weighted = D * layout.likelihood.curvature(theta).unsqueeze(-1)  # type: ignore[operator]
        M += torch.einsum("bnk,bnl->kl", D, weighted)[[first, second]][:, [first, second]].double()
    angle = 0.5 * torch.atan2(2 * M[0, 1], M[0, 0] - M[1, 1]).abs() * 180 / torch.pi
    return float(torch.minimum(angle, 90 - angle))


@torch.no_grad()
def _pictures(data: Perturbed, rows: Tensor, count: int = 8, steps: int = 9) -> dict[str, Array]:
    """Some observations before and after, and m along its scalar."""
    some_rows = rows[:count]
    along = torch.linspace(-1, 1, steps)[:, None]
    parts = {"original": data.base.batch(some_rows), "perturbed": data.batch(some_rows), "along": data.mover.at(along)}
    return {name: part.numpy() for name, part in parts.items()}


def manipulation_summary(outcome: PerturbResult, settings: Settings, how: _How) -> dict[str, Any]:
    """manipulation.json."""
    mover, space = outcome.found.mover, outcome.data.space
    names = [f"code {i}" for i in range(mover.inputs)] if space is None else list(space.names)
    weights = mover.scalar.weight.detach()[0].tolist()
    return {
        "settings": asdict(settings),
        "teacher": how,
        "disentangled": outcome.disentangled,
        "entangled": outcome.entangled,
        "chosen_by": outcome.chosen_by,
        "pair": list(outcome.pair),
        "gap_before": outcome.found.gap_before,
        "gap_after": outcome.found.gap_after,
        "rounds": outcome.found.rounds,
        "gaps": outcome.found.gaps,
        "largest_change": outcome.largest_change,
        "rms_change": outcome.change,
        "contrast": outcome.contrast,
        "turn_before": outcome.turns["before"],
        "turn_after": outcome.turns["after"],
        "scalar": dict(zip(names, np.round(weights, 4).tolist(), strict=True)),
    }
