"""`unseam align RUN --out DIR`: turn each member's latent space to the axes its geometry prefers."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from unseam.cli.common import emit, plain, stdout
from unseam.errors import BadInput
from unseam.explain import chosen_members, repair, weakest_correlation
from unseam.geometry import Alignment
from unseam.progress import bar
from unseam.train import Run, load_run
from unseam.types import Array


@dataclass
class Command:
    """Repair a run without labels or retraining: one rotation of latent space per member, and what it bought.

    DIR gets alignment.json (rotations and before/after tables) and member-S.npz (codes, codes_before, the map between
    them z = shift + scale rotation z' and, where known, factors).

    Example: unseam align runs/sprites-beta-vae --out aligned
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    out: Path | None = None
    """Where to write; RUN/aligned when not given."""
    member: int | None = None
    """One member; all when not given."""
    points: int = 2000
    """At how many held-out rows the decoder is differentiated."""
    seed: int = 0
    """Which rows, and the random restarts."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        if self.points < 2:
            raise BadInput(f"points={self.points} must be at least 2, and more than the run has latents")
        run = load_run(self.run_folder)
        folder = self.out or run.folder / "aligned"
        chosen = chosen_members(run, None if self.member is None else [self.member])
        rows = []
        with bar("aligning", len(chosen)) as advance:
            for member in chosen:
                found, arrays = repair(run, member, self.points, self.seed)
                rows.append(row(member, found, arrays))
                write(folder, member, arrays)
                advance()
                if not self.json:
                    show(run, member, found, rows[-1])
        document = {"run": run.folder, "out": folder, "members": rows}
        (folder / "alignment.json").write_text(json_module.dumps(plain(document), indent=2))
        if self.json:
            emit(document)
        else:
            stdout.print(f"written to {folder}", soft_wrap=True)


def row(member: int, found: Alignment, arrays: dict[str, Array]) -> dict[str, Any]:
    """One member of the JSON document."""
    out = {"member": member, "helped": found.helped, "verdict": found.verdict, "table": list(found.table)}
    if "factors" in arrays:
        before, after = (weakest_correlation(arrays[k], arrays["factors"]) for k in ("codes_before", "codes"))
        out["table"] = [*found.table, {"what": "weakest factor correlation", "before": before, "after": after}]
    return {**out, "rotation": found.rotation}


def write(folder: Path, member: int, arrays: dict[str, Array]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"member-{member}.npz", **arrays)  # type: ignore[arg-type]


def show(run: Run, member: int, found: Alignment, told: dict[str, Any]) -> None:
    stdout.print(f"[bold]member {member}[/bold] (seed {run.members[member].seed})", highlight=False)
    stdout.print(str(found), soft_wrap=True, markup=False, highlight=False)
    for extra in told["table"][len(found.table) :]:
        text = f"  {extra['what']:<34} {extra['before']:>9.3g} {extra['after']:>9.3g}"
        stdout.print(text, markup=False, highlight=False)
