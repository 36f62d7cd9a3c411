"""`unseam align RUN --out DIR`: turn each member's latent space to the axes its geometry prefers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unseam.cli.common import AsJson, Device, MaybePath, OneMember, OneRun, emit, new_folder, stdout
from unseam.errors import BadInput
from unseam.run import Run, load_run

if TYPE_CHECKING:
    from unseam.geometry import Alignment


@dataclass
class Command:
    """Align a run without labels or retraining: one rotation of latent space per member.

    The result is a run that every verb opens: the same models in the new axes. A member that no rotation helps keeps
    its axes. alignment.json has the rotations and tables before and after; member-S.npz has codes, codes_before,
    variances, the map between them (z = shift + scale rotation z') and, where known, factors.

    Example: unseam align runs/sprites-beta-vae --out runs/aligned
    """

    run_folder: OneRun
    out: MaybePath = None
    """A new or an empty folder; RUN/aligned, which is replaced, when not given."""
    member: OneMember = None
    points: int = 2000
    """Number of rows at which the decoder is differentiated; held-out rows, if the run has any."""
    seed: int = 0
    """Seed of the choice of rows and of the restarts."""
    device: Device = "auto"
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.align import align_members, save_alignment  # not above: --help needs no torch
        from unseam.runs.aligned_run import check_place, write_aligned_run

        if self.points < 2:
            raise BadInput(f"points={self.points} must be at least 2, and more than the run has latents")
        run = load_run(self.run_folder).on(self.device, double=True)
        with nullcontext(run.folder / "aligned") if self.out is None else new_folder(self.out) as folder:
            check_place(folder, run)
            aligned = align_members(run, None if self.member is None else [self.member], self.points, self.seed)
            document = save_alignment(folder, run, aligned)
            written = write_aligned_run(folder, run, {m: found for m, (found, _) in aligned.items()})
        if self.json:
            emit(document)
            return
        for row in document["members"]:
            _show(run, row["member"], aligned[row["member"]][0], row)
        numbers = "" if list(aligned) == list(range(len(aligned))) else (
            f"; members {', '.join(map(str, range(len(aligned))))} are {', '.join(map(str, aligned))} of {run.folder}"
        )  # fmt: skip
        stdout.print(f"written to {written.folder}, a run of {len(aligned)} aligned members{numbers}", soft_wrap=True)


def _show(run: Run, member: int, found: Alignment, summary: dict[str, Any]) -> None:
    from unseam.runs.diagnose import heading

    stdout.print(heading(run, member), style="bold", soft_wrap=True)
    stdout.print(str(found), soft_wrap=True)
    for extra in summary["table"][len(found.table) :]:
        text = f"  {extra['what']:<34} {extra['before']:>9.3g} {extra['after']:>9.3g}"
        stdout.print(text)
