"""The opened runs: which models the page can show, and the rows of data it shows them with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from unseam.data.base import Dataset
from unseam.errors import BadInput, lookup
from unseam.geometry import Alignment
from unseam.run import Run, load_run
from unseam.runs.align import align
from unseam.runs.diagnose import chosen_already, finished_or_all, kl_weight_of, needs_decoder
from unseam.runs.labels import column_units, latent_names, name_latent
from unseam.runs.represent import RowSample, sample_rows
from unseam.show.explorer.member import Broken, Subject, look_at_member, observe

_ROWS = 2000  # codes in the scatter
ALIGN_POINTS = 400  # at which `align` differentiates the decoder


@dataclass(frozen=True)
class Gallery:
    """One or two runs on data of one shape. A model is named "RUN.MEMBER": "0.3" is member 3 of the first run.

    `lock` is held during slow work and differentiation: torch's forward mode is for one thread at a time.
    """

    runs: tuple[Run, ...]
    shown: tuple[str, ...]  # the models that the page starts with
    lock: RLock = field(default_factory=RLock)
    subjects: dict[tuple[str, bool], Subject] = field(default_factory=dict)
    alignments: dict[str, Alignment] = field(default_factory=dict)

    @property
    def data(self) -> Dataset:
        return self.runs[0].data

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the data's columns, where it is a table that has them."""
        return self.runs[0].config.features

    @cached_property
    def models(self) -> dict[str, tuple[Run, int]]:
        return {f"{r}.{m}": (run, m) for r, run in enumerate(self.runs) for m in range(len(run.members))}

    @cached_property
    def chosen(self) -> dict[Path, int | None]:
        """The label-free choice of each run, where it was made already: opening stays fast."""
        return {run.folder: chosen_already(run) for run in self.runs}

    @cached_property
    def status(self) -> dict[tuple[Path, int], str]:
        """How training ended; members without a row are unfinished."""
        rows = [(run.folder, row) for run in self.runs for row in run.table().to_dict("records")]
        return {(folder, int(row["member"])): str(row["status"]) for folder, row in rows}

    @cached_property
    def sample(self) -> RowSample:
        """Rows that no member of the first run was trained on; where there are too few of them, any rows."""
        return sample_rows(self.runs[0], None, _ROWS)

    @property
    def rows(self) -> Tensor:  # (N,)
        return self.sample.rows

    def subject(self, model: str, aligned: bool = False) -> Subject:
        """A model, rotated to its preferred axes on request; built once."""
        if (model, aligned) not in self.subjects:
            run, member = lookup(self.models, model, "model")
            with self.lock:
                net = run.model(member)
                turned = self.turned(model) if aligned else None
                if aligned and turned is None:
                    return self.subject(model)
                encode, decode = (turned.encoder, turned.decoder) if turned else (net.encode, net.decode)
                assert encode is not None
                found = look_at_member(encode, decode, net.likelihood, kl_weight_of(run, member), self.data, self.rows)
                self.subjects[model, aligned] = found
        return self.subjects[model, aligned]

    def alignment(self, model: str) -> Alignment:
        run, member = lookup(self.models, model, "model")
        with self.lock:
            if model not in self.alignments:
                self.alignments[model] = align(run, member, ALIGN_POINTS)[0]
        return self.alignments[model]

    def turned(self, model: str) -> Alignment | None:
        """The alignment; None where it did not help, and the axes stay as they are."""
        found = self.alignment(model)
        return found if found.helped else None

    def names(self, model: str) -> tuple[dict[int, str], str]:
        """The names that the model's latents were given, and why they cannot be read when they cannot."""
        run, member = lookup(self.models, model, "model")
        try:
            return latent_names(run).get(member, {}), ""
        except BadInput as error:
            return {}, str(error)

    def name(self, model: str, latent: int, name: str) -> dict[int, str]:
        """Keep a latent's name with the run."""
        run, member = lookup(self.models, model, "model")
        with self.lock:
            return name_latent(run, member, latent, name)

    def row(self, row: int) -> tuple[Tensor, list[float]]:  # (*shape), (F,)
        """One observation and its factors."""
        if not 0 <= row < len(self.data):
            raise BadInput(f"row={row} is not in the data; it has rows 0..{len(self.data) - 1}")
        at = torch.tensor([row])
        return observe(self.data, at)[0], self.data.factors(at)[0].tolist() if self.data.space is not None else []

    def describe(self) -> dict[str, Any]:
        """What the page needs to know before it asks for anything."""
        data = self.data
        space = data.space.to_json() if data.space is not None else []
        return {
            "data": {
                "name": self.runs[0].data_name,
                "shape": list(data.shape),
                "rows": len(data),
                "factors": space,
                "features": list(self.features),
                "units": column_units(self.runs[0]),
            },
            "models": [self.label(name) for name in self.models],
            "shown": list(self.shown),
            "first": int(self.rows[0]),
            "rows": {**self.sample.to_json(), "words": str(self.sample)},
        }

    @cached_property
    def titles(self) -> dict[Path, str]:
        """What the page calls each run: its folder's name, or the whole path when two are the same."""
        short = {run.folder: run.folder.resolve().name for run in self.runs}
        return short if len(set(short.values())) == len(short) else {folder: str(folder) for folder in short}

    def label(self, model: str) -> dict[str, Any]:
        run, member = self.models[model]
        m = run.members[member]
        hyper = " · ".join(m.setting_words)
        return {
            "model": model,
            "run": self.titles[run.folder],
            "member": member,
            "objective": run.config.adapted or run.config.objective,
            "hyper": hyper,
            "seed": m.seed,
            "latents": run.config.architecture.latents,
            "status": self.status.get((run.folder, member), "unfinished"),
            "chosen": self.chosen[run.folder] == member,
        }


def first_member(run: Run) -> int:
    """Without a word from the user: the label-free choice if it was made already, else the first that finished."""
    chosen = chosen_already(run)
    return chosen if chosen is not None else finished_or_all(run)[0]


def open_gallery(folders: Sequence[Run | str | Path], members: Sequence[int | None]) -> Gallery:
    """Open the runs and choose what is shown first: a member of each run, or two members of one."""
    runs = tuple(place if isinstance(place, Run) else load_run(place) for place in folders)
    for run in runs:
        needs_decoder(run)
    for run in runs[1:]:
        if run.data.shape != runs[0].data.shape:
            raise BadInput(
                f"run2={str(run.folder)!r} has data of shape {run.data.shape}, the first run of shape "
                f"{runs[0].data.shape}; two models side by side need the same input"
            )
    wanted = [(min(i, len(runs) - 1), m) for i, m in enumerate(members) if i < len(runs) or m is not None]
    opened = [(runs[r], r, first_member(runs[r]) if m is None else m) for r, m in wanted]
    gallery = Gallery(runs, tuple(f"{r}.{m}" for _, r, m in opened))
    for (run, _, m), model in zip(opened, gallery.shown, strict=True):
        if model not in gallery.models:
            limit = len(run.members) - 1
            raise BadInput(f"member={m} is not in run {str(run.folder)!r}; it has members 0..{limit}")
        with suppress(Broken):  # the page says so
            gallery.subject(model)
    return gallery
