"""`unseam traverse RUN --gif`: what each latent does, as pictures to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from unseam.cli.common import AsJson, MaybeInt, MaybePath, OneRun, emit, stdout
from unseam.run import load_run


@dataclass
class Command:
    """Draw what each latent of a member does: a grid (a row a latent), and with --gif a moving picture.

    For tables the columns that a latent moves most are drawn over its values. With --row and --to-row: the way from one
    row of the data to another.

    Example: unseam traverse runs/sprites-beta-vae --member 3 --gif
    """

    run_folder: OneRun
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
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.diagnose import heading, one_member  # not above: --help needs no torch
        from unseam.show.film import film, write_film

        run = load_run(self.run_folder)
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
