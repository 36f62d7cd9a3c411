"""`unseam export RUN --to onnx|pt2|safetensors`: a member's networks for use without unseam."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from unseam.cli.common import AsJson, MaybeInt, MaybePath, OneRun, emit, new_folder, stdout
from unseam.run import load_run
from unseam.runs.choices import ExportFormat


@dataclass
class Command:
    """Write a member's encoder and decoder as files that need no unseam, and check them against the model.

    docs/export.md shows how to use them.

    Example: unseam export runs/sprites-beta-vae --member 3 --to onnx
    """

    run_folder: OneRun
    member: MaybeInt = None
    """Which member; when not given the one that `diagnose` or `report` chose, else the first whole one."""
    to: ExportFormat = "onnx"
    """onnx (needs the extra `onnx`), pt2 (torch.export; torchscript is deprecated) or safetensors: the weights."""
    out: MaybePath = None
    """A new or an empty folder; RUN/exported/member-S, where files are replaced, when
    not given."""
    json: AsJson = False

    def run(self) -> None:
        from unseam.runs.diagnose import heading, one_member  # not above: --help needs no torch
        from unseam.runs.export import export

        run = load_run(self.run_folder)
        member = one_member(run, self.member)
        with nullcontext() if self.out is None else new_folder(self.out):
            document = export(run, member, self.to, self.out)
        if self.json:
            emit(document)
            return
        stdout.print(heading(run, member), style="bold", soft_wrap=True)
        for name, path in document["files"].items():
            stdout.print(f"{name}: {path}", soft_wrap=True)
        stdout.print(f"largest difference to the model: {document['largest_difference']:.2g} of its largest output")
