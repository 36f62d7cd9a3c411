"""The settings of `fit` are listed once: what the list says is what the dataclasses have, and each has a flag."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from unseam.cli.common import flags_of
from unseam.cli.train import Command
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES, Optimiser
from unseam.objectives.elbo import BetaVAE
from unseam.run import Training
from unseam.run.settings import FLAGS, NOT_A_FLAG, Settings, Swept, resolve_settings
from unseam.train import fit


def alternatives(hint: Any) -> set[Any]:
    """The members of a union."""
    return set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}


def declared() -> dict[str, set[Any]]:
    """Every field that a setting can fill, with the types that it may have."""
    found: dict[str, set[Any]] = {}
    for kind in OBJECTIVES.values():
        for name, hint in get_type_hints(kind).items():
            if name in {f.name for f in fields(kind)}:  # type: ignore[arg-type]
                found.setdefault(name, set()).update(alternatives(Swept) if hint is float else {hint})
    for part in (Architecture, Training, Optimiser):
        hints = get_type_hints(part)
        found |= {f.name: {hints[f.name]} for f in fields(part) if f.name not in (*NOT_A_FLAG, "name")}
    return found


def test_the_short_form_has_every_field_with_its_type() -> None:
    assert {name: alternatives(hint) for name, hint in get_type_hints(Settings).items()} == declared()


def test_every_setting_is_a_flag_of_train() -> None:
    flags = {flag.removeprefix("--").replace("-", "_") for flag in flags_of(Command)} | set(Command.option_names())
    assert set(FLAGS) <= flags


def test_objects_and_short_form_are_the_same() -> None:
    short = resolve_settings("beta-vae", {"beta": 2.0, "latents": 3, "steps": 9, "lr": 0.1}, optimiser="sgd")
    objects = resolve_settings(
        BetaVAE(beta=2.0), {}, Architecture(latents=3), Training(steps=9), Optimiser("sgd", lr=0.1)
    )
    assert short == objects


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"latents": 3, "architecture": Architecture()}, "latents=3 belongs to architecture="),
        ({"steps": 3, "training": Training()}, "steps=3 belongs to training="),
        ({"lr": 3.0, "optimiser": Optimiser()}, "lr=3.0 belongs to optimiser="),
        ({"beta": 3.0, "objective": BetaVAE(beta=2.0)}, "beta=3.0 belongs to objective="),
        ({"beta": 3.0, "hyperparameters": {"beta": 2.0}}, "beta=3.0 belongs to hyperparameters="),
        ({"hyperparameters": {"betta": 2.0}}, "did you mean 'beta'"),
        ({"latnts": 3}, "did you mean 'latents'"),
        ({"posterior": "diagonal"}, "posterior"),
        ({"name": "adam"}, "name"),
    ],
)
def test_what_is_given_twice_or_unknown_is_refused(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        fit("synth-linear", out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class Mine(BetaVAE):
    """With a hyperparameter of its own."""

    mine: float = 1.0


def test_hyperparameters_of_an_own_objective_are_swept(tmp_path: Path) -> None:
    run = fit("synth-linear", Mine, hyperparameters={"mine": [1.0, 2.0]}, steps=1, network="linear", latents=2,
              out=tmp_path / "run", show=False)  # fmt: skip
    assert [member.hyper["mine"] for member in run.members] == [1.0, 2.0]
