"""A run folder as an object: its configuration, rows, data and models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from unseam.device import device
from unseam.errors import BadInput, lookup
from unseam.lazy import require_torch
from unseam.run import user_files
from unseam.run.config import Member, RunConfig, split
from unseam.run.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from unseam.data.base import Dataset
    from unseam.models import Autoencoder
    from unseam.models.own_networks import MakeNetworks
    from unseam.objectives import Objective

MANIFEST = "pack.json"  # in the folder of a pack


@dataclass(frozen=True)
class Run:
    """A run folder: its configuration, rows, data and models. `load_run` and `fit` return it.

    Parameters
    ----------
    folder : Path
        The run folder.
    config : RunConfig
        Its configuration.
    other_data : Dataset, optional
        Data to use in place of the data that the run was trained on.
    device : str, default="cpu"
        Where its models are put.
    networks : function, optional
        The user's own networks.

    Examples
    --------
    >>> import tempfile, unseam
    >>> run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 200},
    ...                  out=tempfile.mkdtemp() + "/run", show=False)
    >>> run.table()[["member", "seed", "status"]].values.tolist()
    [[0, 0, 'finished']]
    >>> run.encode(run.data.batch(run.held_out())).shape
    torch.Size([20, 2])
    """

    folder: Path
    config: RunConfig
    other_data: Dataset | None = None  # data to use in place of that it was trained on (`load_run(folder, data=...)`)
    device: str = "cpu"  # where its models are put
    networks: MakeNetworks | None = None  # the user's own (`load_run(folder, networks=...)`)

    def on(self, name: str, double: bool = False) -> Run:
        """The same run with its models on another device; `double` asks for one that has double precision."""
        found = device(name)
        return replace(self, device="cpu" if double and found.type == "mps" else str(found))

    @cached_property
    def data(self) -> Dataset:
        """The data it was trained on; own files that have changed since are refused."""
        if self.other_data is not None:
            return self.other_data
        user_files.check_digests(self.config.data, self.config.digests, self.folder)
        require_torch("the data of a run")
        from unseam.data import load_config

        return load_config(self.data_config, f"{self.folder / 'config.json'}: data")

    @property
    def keeps(self) -> bool:
        """Whether results may be stored with it: not with a packed one, whose files are fixed, nor of other data."""
        return self.other_data is None and pack_of(self.folder) is None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation; known without the data."""
        return self.config.shape or self.data.shape

    def encode(self, x: Any, member: int | None = None) -> Any:  # (N, ...) -> (N, K)
        """The means of q(z|x), as what x is (an array, a DataFrame, a tensor); x is in the data's own units."""
        model = self.model(self._one(member))
        from unseam.run import encode_decode

        rows = encode_decode.as_observations(x, self.shape, self.config.scaling, self.config.features)
        codes = encode_decode.in_chunks(lambda part: model.encode(part).mean, rows, self.device)
        return encode_decode.like(x, codes, [f"z{i}" for i in range(codes.shape[1])])

    transform = encode

    def decode(self, z: Any, member: int | None = None) -> Any:  # (N, K) -> (N, *shape)
        """E[x|z] in the data's own units."""
        require_torch("run.decode")
        from unseam.run import encode_decode

        kind = self._objective
        if kind is not None and not kind.decodes:
            raise BadInput(f"{self.config.objective} trains no decoder; there is nothing to decode with")
        model, codes = self.model(self._one(member)), encode_decode.finite_tensor(z, "z").float()
        if codes.ndim != 2 or codes.shape[1] != model.latents:
            raise BadInput(f"z has shape {tuple(codes.shape)}; this run has codes {('N', model.latents)}")
        x = encode_decode.in_chunks(model.mean, codes, self.device)
        x = x if self.config.scaling is None else self.config.scaling.undo(x)
        return encode_decode.like(z, x, self.config.features or [f"x{i}" for i in range(x[0].numel())])

    def sample(self, n: int, member: int | None = None, seed: int = 0) -> Any:  # -> (n, *shape)
        """n new observations E[x|z] with z from the prior N(0, I), in the data's own units; a DataFrame for a table.

        >>> import tempfile, unseam
        >>> run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 200},
        ...                  out=tempfile.mkdtemp() + "/run", show=False)
        >>> run.sample(4).shape
        (4, 3)
        """
        import torch

        from unseam.rng import generator

        if n < 1:
            raise BadInput(f"n={n} must be at least 1: it is how many observations are drawn")
        if self.config.architecture.posterior in ("point", "quantised", "rounded"):
            raise BadInput(f"{self.config.objective} has no prior over codes to draw from; decode codes of your own")
        z = torch.randn(n, self.config.architecture.latents, generator=generator(seed, "sample"))
        x = self.decode(z.numpy(), member)
        if not self.config.features:
            return x
        import pandas as pd

        return pd.DataFrame(x.reshape(n, -1), columns=list(self.config.features))

    def reconstruct(self, x: Any, member: int | None = None) -> Any:  # (N, ...) -> (N, *shape)
        """What is left of x behind the codes, in the data's own units."""
        return self.decode(self.encode(x, member), member)

    @property
    def _objective(self) -> type[Objective] | None:
        """Its type; None for a user's own."""
        from unseam.objectives import OBJECTIVES

        return OBJECTIVES.get(self.config.objective)

    def _one(self, member: int | None) -> int:
        if member is None and len(self.members) > 1:
            raise BadInput(f"this run has {len(self.members)} members; say which: member=0..{len(self.members) - 1}")
        return member or 0

    @property
    def data_config(self) -> dict[str, Any]:
        """`config.data` with the paths of now: those inside the run folder move with it."""
        return user_files.located_data(self.config.data, self.folder)

    @property
    def data_name(self) -> str:
        """What tables and pages call its data."""
        return user_files.data_label(self.config.data)

    def __repr__(self) -> str:
        """One line: a run's configuration fills a page."""
        c = self.config
        if c.adapted:
            return f"Run({str(self.folder)!r}: {c.adapted}, adapted, with {self.data_name})"
        summary = f"{len(c.members)} x {c.objective} on {self.data_name}, {c.training.steps} steps"
        return f"Run({str(self.folder)!r}: {summary})"

    def _repr_html_(self) -> str:
        """The members as a table, for notebooks."""
        frame = self.table()
        return f"<p>{escape(repr(self))}</p>" + frame.to_html(index=False, float_format="{:.4g}".format, escape=True)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.config.members

    @property
    def rows(self) -> Results:
        return Results(self.folder)

    @property
    def finished(self) -> bool:
        """Whether every member has its row: a group writes them when all else is on disk."""
        try:
            return len(self.rows.read("runs")) >= len(self.members)
        except BadInput:  # no table yet
            return False

    def finished_members(self) -> list[int]:
        """Members that trained to the end, in order."""
        table = self.rows.read("runs")
        return sorted(int(m) for m in table["member"][table["status"] == "finished"])

    def same_setting(self, members: Iterable[int] | None = None) -> list[list[int]]:
        """Members (all of them by default) grouped by their hyperparameters: a group differs in its seeds only."""
        groups: dict[Any, list[int]] = {}
        for member in range(len(self.members)) if members is None else members:
            groups.setdefault(self.members[member].setting, []).append(member)
        return list(groups.values())

    def label(self, member: int) -> str:
        """What tables and pages call a member: `member 3 (beta 2, seed 1)`."""
        return self.members[member].label(member)

    def table(self) -> pd.DataFrame:
        """One row for each member: seed, hyperparameters, status, final numbers."""
        import pandas as pd

        frame = self.rows.read("runs").sort_values("member").reset_index(drop=True)
        try:
            hyper = pd.DataFrame([dict(json.loads(text)) for text in frame.pop("hyper")], index=frame.index)
        except (TypeError, ValueError):
            raise BadInput(f"{self.rows.path} is damaged: `hyper` holds no JSON objects; train the run again") from None
        frame["reconstruction"] = frame["reconstruction"].astype(float)  # none at all is not a number
        return pd.concat([frame[["member", "seed"]], hyper, frame.drop(columns=["member", "seed"])], axis=1)

    def log(self) -> pd.DataFrame:
        """Long table: member, step, name, value."""
        return self.rows.read("log")

    def latents(self) -> pd.DataFrame:
        """Long table: member, step, latent and its statistics."""
        return self.rows.read("latents")

    def split(self, which: str = "held-out") -> Tensor:
        """Rows of the data: "held-out" (no member was trained on them; there may be none), "trained" or "all"."""
        import torch

        train, test = (rows.clone() for rows in split(len(self.data), self.config.training.holdout))
        return lookup(
            {"held-out": test, "trained": train, "all": torch.arange(len(self.data), device="cpu")}, which, "rows"
        )

    def held_out(self) -> Tensor:
        """Rows of the data no member was trained on (all rows when none were held out)."""
        return held if len(held := self.split("held-out")) else self.split("trained")

    def beta(self, member: int) -> float | None:
        """The weight of the KL in a member's loss, as its objective says (`kl_weight`); None where it does not."""
        hyper, kind = self.members[member].hyper, self._objective
        if kind is None:  # a user's own objective: its weight at the time of training
            return self.members[member].kl_weight
        known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        unknown = [name for name in (*hyper, *self.config.static) if name not in known]
        if unknown:
            raise BadInput(
                f"{self.folder / 'config.json'}: hyperparameter {unknown[0]!r} is not one of {self.config.objective} "
                f"({', '.join(known) or 'it has none'}); train the run again, or use the version of unseam that made it"
            )
        return kind(**hyper, **self.config.static).kl_weight()

    def snapshots(self) -> list[int]:
        """Steps of the snapshots."""
        return sorted({int(p.stem.rsplit("-", 1)[1]) for p in (self.folder / "checkpoints").glob("*-step-*")})

    def snapshot_steps(self, member: int) -> list[int]:
        """Steps of the snapshots of this member; a run that is still training may have them for some members only."""
        return [step for step in self.snapshots() if self._weights_file(member, step)[0].exists()]

    def model(self, member: int, step: int | None = None) -> Autoencoder:
        """A member's model, in evaluation mode; at a snapshot's step when one is given."""
        require_torch("a run's model")
        model = self.config.architecture.build(self.shape, 0, self.make_networks)
        weights, expected = self.weights(member, step), model.state_dict()
        if {n: t.shape for n, t in weights.items()} != {n: t.shape for n, t in expected.items()}:
            if self.config.networks is not None:
                raise BadInput(
                    f"networks do not fit this run: {first_difference(weights, expected)}; pass those of fit"
                )
            raise BadInput(
                f"{self._weights_file(member, step)[0]} does not fit {self.folder / 'config.json'}: one of them is of "
                "another run or was changed; put back the one that belongs here, or train again"
            )
        model.load_state_dict(weights)
        return model.eval().to(self.device)

    @property
    def make_networks(self) -> MakeNetworks | None:
        """What makes the user's own networks; None if the run has ours."""
        source = self.config.networks
        if self.networks is not None or source is None:
            return self.networks
        if self.config.adapted:
            raise BadInput(not_stored(self))
        from unseam.models.own_networks import import_networks

        packed = pack_of(self.folder) is not None  # nothing that a pack names is imported
        return import_networks(replace(source, function="") if packed else source)

    def weights(self, member: int, step: int | None = None) -> dict[str, Tensor]:
        """A member's weights by name, in the precision they were trained in (`model` has them in single precision)."""
        from unseam.run.checkpoint import load_checkpoint

        path, position = self._weights_file(member, step)
        tensors = {n.removeprefix("model/"): t for n, t in load_checkpoint(path)[0].items() if n.startswith("model/")}
        if any(not t.dim() or len(t) <= position for t in tensors.values()):
            raise BadInput(f"checkpoint {path} holds no member {member}; delete it to train that part again")
        return {n: t[position] for n, t in tensors.items()}

    def step(self, member: int) -> int:
        """The step of a member's checkpoint."""
        path, _ = self._weights_file(member, None)
        try:
            with safe_open(path, framework="pt") as file:
                return int(json.loads((file.metadata() or {})["meta"])["step"])
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"checkpoint {path} cannot be read ({error}); delete it to train that part again") from None

    def weights_digest(self, member: int, step: int | None = None) -> str:
        """What tells these weights from any others: the digest that their checkpoint carries."""
        path, _ = self._weights_file(member, step)
        try:
            with safe_open(path, framework="np") as file:
                return str((file.metadata() or {}).get("digest"))
        except (SafetensorError, OSError) as error:
            raise BadInput(f"checkpoint {path} cannot be read ({error}); delete it to train that part again") from None

    def _weights_file(self, member: int, step: int | None) -> tuple[Path, int]:
        """The checkpoint that holds a member, and its position in it."""
        if not 0 <= member < len(self.members):
            raise BadInput(f"member={member} is not in this run; it has members 0..{len(self.members) - 1}")
        number, position = next((g, m.index(member)) for g, m in enumerate(self.config.groups) if member in m)
        from unseam.run.checkpoint import weights_path

        return weights_path(self.folder, number, step), position


def first_difference(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """The first weight, by name, that is not of the same shape in both.

    >>> import torch
    >>> first_difference({"decoder.bias": torch.zeros(4)}, {"decoder.bias": torch.zeros(5)})
    'decoder.bias has shape (5,) in them and (4,) in the run'
    """
    for name in sorted({*weights, *expected}):
        here, there = (f"shape {tuple(t[name].shape)}" if name in t else "no place" for t in (expected, weights))
        if here != there:
            return f"{name} has {here} in them and {there.removeprefix('shape ')} in the run"
    return "they are the same"


def not_stored(run: Run) -> str:
    """Why the networks of a model that was not trained here cannot be had of its run."""
    return (
        f"{run.folder} holds numbers of a model that was not trained here ({run.config.adapted}), not the model: give "
        "it to diagnose, report or explore"
    )


def pack_of(folder: Path) -> Path | None:
    """The pack that a folder is, or that it belongs to; `.` belongs to the folder above it too."""
    place = folder.resolve()
    try:
        return next((pack for pack in (place, place.parent) if (pack / MANIFEST).is_file()), None)
    except OSError as error:  # a name longer than any
        raise BadInput(f"run={str(folder)[:80]!r} cannot be opened: {error.strerror}") from None
