"""`unseam stress RUN`: how much change of the data a trained layout survives."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from unseam.cli.common import AsJson, OneMember, OneRun, emit

if TYPE_CHECKING:
    from unseam.perturb.stress import Stress
    from unseam.run import Run


@dataclass
class Command:
    """Measure the robustness radius: the smallest change of the data that turns the axes a decoder prefers.

    In closed form for a linear decoder; for others from the mean Jacobian, so to first order. `radius_relative` is in
    standard deviations of the data. Gaussian and Bernoulli likelihoods.

    `--confirm` trains a small cohort again on changed data, with the member's own settings.

    Example: unseam stress runs/sprites-beta-vae --member 0
    """

    run_folder: OneRun
    member: OneMember = None
    degrees: float = 15.0
    """Axes that turn by more than this count as lost."""
    eps: float | None = None
    """Also print how far a change of this size can turn each pair; `--confirm` then makes this change."""
    points: int = 1000
    """Number of held-out rows at which the decoder is differentiated."""
    confirm: bool = False
    """Train three models again on data changed by twice the radius (or by eps), three on it as it is; minutes."""
    json: AsJson = False

    def run(self) -> None:
        from unseam.perturb.stress import as_rows, caveat, stress_run
        from unseam.run import load_run
        from unseam.show.pages.perturb import write_stress_page

        run = load_run(self.run_folder)
        found = stress_run(run, None if self.member is None else [self.member], self.points, self.degrees, self.eps)
        members: list[dict[str, Any]] = []
        for member, result in found.items():
            page = write_stress_page(run, member, result)
            pair = None if result.pair is None else list(result.pair)
            relative = result.relative if result.breaks else None
            radius = result.radius if result.breaks else None
            document = {"member": member, "radius": radius, "radius_relative": relative, "pair": pair}
            again = self.trained_again(run, member, result) if self.confirm else None
            members.append({**document, "pairs": as_rows(result), "page": str(page), "confirm": again})
        doubt = caveat(run.config.architecture.likelihood)
        if self.json:
            emit({"members": members, "degrees": self.degrees, "eps": self.eps, "caveat": doubt})
            return
        for row in members:
            if row["radius"] is None:
                print(f"member {row['member']}: fewer than two latents in use, no axes to turn")
                continue
            i, j = row["pair"]
            print(
                f"member {row['member']}: a change of {row['radius']:.3g} ({row['radius_relative']:.2g} of the data's "
                f"standard deviation) turns latents {i} and {j} by {self.degrees:g} degrees; page: {row['page']}"
                if math.isfinite(row["radius"])
                else f"member {row['member']}: no change turns two latents by {self.degrees:g} degrees"
            )
            if self.eps is not None:
                most = max(row["pairs"], key=lambda pair: pair["turn"])
                far = "45 degrees, all the way" if most["turn"] == 45 else f"{most['turn']:.1f} degrees"
                print(f"  a change of {self.eps:g} can turn latents {most['pair'][0]} and {most['pair'][1]} by {far}")
            if (again := row["confirm"]) is not None:
                turns = {name: ", ".join(f"{t:.0f}" for t in again[name]) for name in ("changed", "unchanged")}
                print(
                    f"  trained again with a change of {again['eps']:.3g}: turned by {turns['changed']} degrees; "
                    f"without it: {turns['unchanged']}"
                    + ("" if again["agreed"] else "; seeds do not agree on these axes, so nothing is confirmed")
                )
        if doubt:
            print(doubt)

    def trained_again(self, run: Run, member: int, found: Stress) -> dict[str, Any] | None:
        """The result of `confirm`; None if there is no pair, or no change to make."""
        from unseam.perturb.retrain import confirm

        if not found.breaks or (self.eps is None and not math.isfinite(found.radius)):
            return None
        again = confirm(run, member, found, eps=self.eps)
        return asdict(again) | {"agreed": again.agreed(self.degrees)}
