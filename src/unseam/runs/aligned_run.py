"""An aligned run is a run: a folder of its own, with the rotation inside the stored model, that every verb opens.

With z = shift + T R z' the decoder's first layer z W + b becomes z' (T R)^T W + (b + shift W), exactly; the encoder's
posterior is turned when it is computed (`Autoencoder.encode`), because that of a diagonal family is full in new axes.
Loss, reconstruction and KL are what they were. What was stored of single latents is computed anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.errors import BadInput
from unseam.geometry import Alignment
from unseam.geometry.align import Frame
from unseam.geometry.polarized import active_latents
from unseam.run import Run, load_run
from unseam.run.checkpoint import load_checkpoint, save_checkpoint, weights_path
from unseam.run.user_files import digests, files, relative
from unseam.runs.represent import represent, sample_rows
from unseam.train.cohort import start_folder

_ROWS = 2048  # held-out rows behind the numbers of single latents
_FIRST = "decoder.0"  # the decoder's first layer


def write_aligned_run(folder: str | Path, run: Run, aligned: Mapping[int, Alignment]) -> Run:
    """Write the aligned members of a run as a run; member i of it is the i-th that is given.

    Parameters
    ----------
    folder : str or Path
        Where to write; refused if it holds a run that `align` did not write.
    run : Run
        The run that was aligned.
    aligned : dict of int to Alignment
        Members and what `align` found for them.

    Returns
    -------
    Run
        The new run, opened.

    Examples
    --------
    >>> import tempfile, unseam
    >>> from unseam.runs.align import align
    >>> at = tempfile.mkdtemp()
    >>> run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 300},
    ...                  out=at + "/run", show=False)
    >>> turned = write_aligned_run(at + "/turned", run, {0: align(run, 0, points=50)[0]})
    >>> x = run.data.batch(torch.arange(3))
    >>> bool(np.allclose(run.reconstruct(x), turned.reconstruct(x), atol=1e-5))
    True
    """
    place = Path(folder)
    check_place(place, run)
    config = replace(
        run.config,
        members=tuple(run.members[m] for m in aligned),
        groups=tuple((i,) for i in range(len(aligned))),
        architecture=replace(run.config.architecture, aligned=True),
        data=_own_files(run, place),
    )
    config = replace(config, digests=digests(config.data, place, config.static.get("pairs")))
    for old in ("checkpoints", "computed"):
        shutil.rmtree(place / old, ignore_errors=True)
    (place / "results.sqlite").unlink(missing_ok=True)
    for i, (member, found) in enumerate(aligned.items()):
        meta = load_checkpoint(run._weights_file(member, None)[0])[1]
        weights = turned_weights(run.weights(member), found.frame, run.config.networks is not None)
        tensors = {f"model/{name}": value[None] for name, value in weights.items()}
        meta_of_run: dict[str, Any] = {name: meta[name] for name in ("step", "seconds", "versions") if name in meta}
        save_checkpoint(weights_path(place, i), tensors, {**meta_of_run, "members": [i], "frozen": {}})
    start_folder(place, config)
    turned_run = replace(load_run(place), other_data=run.other_data, networks=run.networks)
    _write_rows(run, turned_run, list(aligned))
    return turned_run


def check_place(folder: Path, run: Run) -> None:
    """Refuse a folder with a run that `align` did not write, and a run that is aligned already."""
    if run.config.architecture.aligned:
        raise BadInput(f"{run.folder} is aligned already; align the run that it was made from")
    if (folder / "config.json").exists() and not (folder / "alignment.json").exists():
        raise BadInput(f"out={str(folder)!r} holds a trained run; choose another folder for the aligned one")


def turned_weights(weights: Mapping[str, Tensor], frame: Frame, own: bool = False) -> dict[str, Tensor]:
    """Weights of a model in new axes: the decoder's first layer takes z', and the encoder's axes are stored."""
    new = {"aligned_axes": frame.linear().double(), "aligned_shift": frame.shift.double()}
    if own:  # `Autoencoder.decode` turns back
        return {**weights, **new}
    W, b = (weights[f"{_FIRST}.{name}"] for name in ("weight", "bias"))  # (K, outputs), (outputs,)
    into = (frame.scale @ frame.rotation).T.double()
    new |= {
        f"{_FIRST}.weight": (into @ W.double()).to(W),
        f"{_FIRST}.bias": (b.double() + frame.shift.double() @ W.double()).to(b),
    }
    return {**weights, **new}


def _own_files(run: Run, place: Path) -> dict[str, Any]:
    """The data's configuration for the new folder; arrays that lie in the old one are copied."""
    data = dict(run.data_config)
    for key, path in files(data).items():
        source = Path(path)
        if source.resolve().is_relative_to(run.folder.resolve()) and source.is_file():
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place / source.name)
            data[key] = str((place / source.name).resolve())
        else:
            data[key] = str(source.resolve())
    return relative(data, place)


def _write_rows(run: Run, turned_run: Run, members: list[int]) -> None:
    """Results of training by their new numbers; those of single latents are computed in the new axes."""
    runs, log = run.rows.read("runs"), run.rows.read("log")
    rows = sample_rows(turned_run, None, _ROWS, use="aligned").rows
    for i, member in enumerate(members):
        encoded = represent(turned_run.model(i), turned_run.data, rows)
        q = encoded.posterior
        mu, sigma2 = encoded.codes.std(0), q.variance().mean(0).numpy()
        spread = sigma2 if q.has_prior else np.ones_like(sigma2)
        columns = {
            "kl": q.kl_per_latent().mean(0), "mu_std": torch.as_tensor(mu), "mu2": q.mean.square().mean(0),
            "sigma2": q.variance().mean(0), "log_sigma2": q.log_variance().mean(0),
        }  # fmt: skip
        step = turned_run.config.training.steps
        turned_run.rows.write("latents", [
            {"member": i, "step": step, "latent": k, **{name: float(values[k]) for name, values in columns.items()}}
            for k in range(len(mu))
        ])  # fmt: skip
        old: Any = log[(log["member"] == member) & (log["name"] != "active")].to_dict("records")
        turned_run.rows.write("log", [{**row, "member": i} for row in old])
        active = int(active_latents(mu, spread).sum())
        known: Any = runs[runs["member"] == member].astype(object).where(lambda f: f.notna(), None).to_dict("records")
        turned_run.rows.write("runs", [{**row, "member": i, "active": active} for row in known])
