"""`unseam align RUN --out DIR`: turn each member's latent space to the axes its geometry prefers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseam.atomic import free_path
from unseam.cli.common import (
    AsJson,
    Device,
    MaybePath,
    ModelData,
    ModelLikelihood,
    OneMember,
    RunOrModel,
    emit,
    new_folder,
    stdout,
)
from unseam.cli.model_file import load_model, model_file, read_observations, refuse_model_flags, refuse_run_flags
from unseam.errors import BadInput
from unseam.run import load_run

if TYPE_CHECKING:
    from unseam.geometry import Alignment


@dataclass
class Command:
    """Align a run without labels or retraining: one rotation of latent space per member.

    The result is a run that every verb opens: the same models in the new axes. A member that no rotation helps keeps
    its axes. alignment.json has the rotations and tables before and after; member-S.npz has codes, codes_before,
    variances, the map between them (z = shift + scale rotation z') and, where known, factors. Of FILE.py:NAME only
    these two files are written: the networks stay in your file.

    Example: unseam align runs/sprites-beta-vae --out runs/aligned
    """

    run_folder: RunOrModel
    out: MaybePath = None
    """A new or an empty folder; RUN/aligned, which is replaced, when not given, and aligned/NAME of a model."""
    member: OneMember = None
    points: int = 2000
    """Number of rows at which the decoder is differentiated; held-out rows, if the run has any."""
    seed: int = 0
    """Seed of the choice of rows and of the restarts."""
    device: Device = "auto"
    data: ModelData = None
    likelihood: ModelLikelihood = None
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.align import align_members, save_alignment  # not above: --help needs no torch
        from unseam.runs.aligned_run import check_place, write_aligned_run
        from unseam.runs.diagnose import heading

        if self.points < 2:
            raise BadInput(f"points={self.points} must be at least 2, and more than the run has latents")
        if model_file(self.run_folder) is not None:
            self.align_model()
            return
        refuse_model_flags(self.run_folder, self.data, self.likelihood)
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
            _show(heading(run, row["member"]), aligned[row["member"]][0], row)
        numbers = "" if list(aligned) == list(range(len(aligned))) else (
            f"; members {', '.join(map(str, range(len(aligned))))} are {', '.join(map(str, aligned))} of {run.folder}"
        )  # fmt: skip
        stdout.print(f"written to {written.folder}, a run of {len(aligned)} aligned members{numbers}", soft_wrap=True)

    def align_model(self) -> None:
        """Of a model of the user's own: `unseam.align`."""
        from unseam.runs.align import arrays_of, save_alignment
        from unseam.runs.any_model import align, codes_of_part

        refuse_run_flags(self.run_folder, self.device)
        x, factors = read_observations(self.data, self.run_folder)
        model = load_model(self.run_folder)
        found = align(model, x, member=self.member, likelihood=self.likelihood, points=self.points, seed=self.seed)
        arrays = arrays_of(found, codes_of_part(model, x))
        out = self.out or free_path(Path("aligned") / str(self.run_folder).rpartition(":")[2])
        with new_folder(out) as folder:
            known = {} if factors is None else {"factors": factors}
            document = save_alignment(folder, str(self.run_folder), {0: (found, {**arrays, **known})})
        if self.json:
            emit(document)
            return
        _show(str(self.run_folder), found, document["members"][0])
        stdout.print(f"written to {out}: alignment.json and member-0.npz, its codes in the new axes", soft_wrap=True)


def _show(heading: str, found: Alignment, summary: dict[str, Any]) -> None:
    stdout.print(heading, style="bold", soft_wrap=True)
    stdout.print(str(found), soft_wrap=True)
    for extra in summary["table"][len(found.table) :]:
        text = f"  {extra['what']:<34} {extra['before']:>9.3g} {extra['after']:>9.3g}"
        stdout.print(text)
