"""`unseam stress RUN`: how much change of the data a trained layout survives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from unseam.cli.common import emit


@dataclass
class Command:
    """The robustness radius: the smallest change of every value that turns the axes a model's decoder prefers.

    In closed form for a linear decoder; for others from the mean Jacobian, so to first order. `radius_relative` is in
    standard deviations of the data.

    Example: unseam stress runs/sprites-beta-vae --member 0
    """

    run_folder: tyro.conf.Positional[Path]
    """The run folder."""
    member: int | None = None
    """One member; all when not given."""
    degrees: float = 15.0
    """By how much axes must turn to count as lost."""
    points: int = 1000
    """At how many held-out rows the decoder is differentiated."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        from unseam.perturb.stress import as_rows, stress_run
        from unseam.show.stress_page import write_stress_page
        from unseam.train import load_run

        run = load_run(self.run_folder)
        found = stress_run(run, None if self.member is None else [self.member], self.points, self.degrees)
        members: list[dict[str, Any]] = []
        for member, result in found.items():
            page = write_stress_page(run, member, result)
            pair = None if result.pair is None else list(result.pair)
            relative = result.relative if result.breaks else None
            radius = result.radius if result.breaks else None
            told = {"member": member, "radius": radius, "radius_relative": relative, "pair": pair}
            members.append({**told, "pairs": as_rows(result), "page": str(page)})
        if self.json:
            emit({"members": members, "degrees": self.degrees})
            return
        for row in members:
            if row["radius"] is None:
                print(f"member {row['member']}: fewer than two latents in use, no axes to turn")
                continue
            i, j = row["pair"]
            print(
                f"member {row['member']}: a change of {row['radius']:.3g} ({row['radius_relative']:.2g} of the data's "
                f"standard deviation) turns latents {i} and {j} by {self.degrees:g} degrees; page: {row['page']}"
            )
