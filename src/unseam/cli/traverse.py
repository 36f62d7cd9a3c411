"""`unseam traverse RUN --gif`: what each latent does, as pictures to keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from unseam.atomic import free_path
from unseam.cli.common import AsJson, MaybeInt, MaybePath, ModelData, RunOrModel, emit, stdout
from unseam.cli.model_file import load_model, model_file, read_observations, run_of_file
from unseam.run import load_run


@dataclass
class Command:
    """Draw what each latent of a member does: a grid (a row per latent), and with --gif a moving picture.

    For tables the columns that a latent moves most are drawn over its values. With --row and --to-row: the way from one
    row of the data to another.

    Example: unseam traverse runs/sprites-beta-vae --member 3 --gif
    """

    run_folder: RunOrModel
    member: MaybeInt = None
    """Which member; when not given the one that `diagnose` or `report` chose, else the first whole one."""
    row: MaybeInt = None
    """Row of the data to start from; a typical held-out one when not given."""
    to: Annotated[int | None, tyro.conf.arg(name="to-row", metavar="INT")] = None
    """Row of the data to end at: the way from --row, instead of one latent after the other."""
    steps: Annotated[int, tyro.conf.arg(name="frames")] = 11
    """Frames of each latent."""
    all: bool = False
    """Passive latents too."""
    gif: bool = False
    """Write a moving picture as well."""
    out: MaybePath = None
    """File to write, without its ending; RUN/traversals/member-S (with the rows, for a way) when not given."""
    data: ModelData = None
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.diagnose import heading, one_member  # not above: --help needs no torch
        from unseam.show.film import film, write_film

        if model_file(self.run_folder) is not None:
            self.traverse_model()
            return
        run = run_of_file(self.run_folder, self.data) or load_run(self.run_folder)
        member = one_member(run, self.member)
        shown = film(run, member, self.row, self.to, self.steps, self.all)
        way = "" if self.to is None else f"-row-{self.row or 0}-to-{self.to}"
        out = self.out or run.folder / "traversals" / f"member-{member}{way}"
        files = write_film(shown, out, self.gif, run.config.features or None)
        if self.json:
            emit({"files": files, "member": member, "latents": list(shown.names)})
            return
        stdout.print(heading(run, member), style="bold", soft_wrap=True)
        stdout.print(f"rows, from the top: {', '.join(shown.names)}", soft_wrap=True)
        for name, path in files.items():
            stdout.print(f"{name}: {path}", soft_wrap=True)

    def traverse_model(self) -> None:
        """Of a model of the user's own: `unseam.traverse`."""
        from unseam.show.any_model import traverse

        x, _ = read_observations(self.data, self.run_folder)
        out = self.out or free_path(Path("traversals") / str(self.run_folder).rpartition(":")[2])
        files = traverse(
            load_model(self.run_folder), x, row=self.row, to=self.to, frames=self.steps, every=self.all, gif=self.gif,
            out=out,
        )  # fmt: skip
        if self.json:
            emit({"files": files})
            return
        for name, path in files.items():
            stdout.print(f"{name}: {path}", soft_wrap=True)
