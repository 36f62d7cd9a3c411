"""mypy knows what the public names return: `make types` checks this file, nothing runs it."""

from pathlib import Path
from typing import assert_type

import unseam
from unseam.metrics import Scores
from unseam.run.config import Member
from unseam.train import Run


def public_names() -> None:
    run = unseam.fit("sprites", steps=3)
    assert_type(run, Run)
    assert_type(run.beta(0), float | None)
    assert_type(run.folder, Path)
    assert_type(unseam.load_run("x").members, tuple[Member, ...])
    assert_type(unseam.score([[0.0]], [[0]]), Scores)


def settings_of_fit_are_checked() -> None:
    unseam.fit("sprites", beta=[1, 4], latents=3, optimiser="sgd", lr=0.1, network="mlp")
    unseam.fit("sprites", latents="many")  # type: ignore[arg-type]
    unseam.fit("sprites", network="mpl")  # type: ignore[arg-type]
    unseam.fit("sprites", latnts=3)  # type: ignore[call-arg]
