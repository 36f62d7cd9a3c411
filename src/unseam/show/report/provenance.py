"""How to reproduce a run: the command, the call, the versions, the settings."""

import json
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any

import torch

from unseam import __version__
from unseam.data import dataset_type, parameters
from unseam.models import Architecture
from unseam.objectives import OBJECTIVES
from unseam.run import Run, Training
from unseam.run.settings import FLAGS, NOT_A_FLAG

NO_RESULT = ("posterior", "learned_s2", "how", "workers", "checkpoint_seconds", "checkpoint_steps", "snapshots",
             "log_every")  # fmt: skip


def _swept(run: Run) -> dict[str, list[float]]:
    """Each hyperparameter's values, in the order of the members."""
    names = run.members[0].hyper
    return {name: list(dict.fromkeys(m.hyper[name] for m in run.members)) for name in names}


def lists(run: Run) -> dict[str, Any]:
    """Hyperparameters as `fit` takes them: a number, or the list of those that were swept."""
    return {name: values[0] if len(values) == 1 else values for name, values in _swept(run).items()}


def changed(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    return {f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) != f.default}


def data_options(run: Run) -> dict[str, Any]:
    """The data's parameters that differ from their defaults, by the names users say."""
    known = parameters(dataset_type(run.data_config["name"]))
    data_values = {name: value for name, value in run.data_config.items() if name != "name"}
    return {name: value for name, value in data_values.items() if value != _default(known[name])}


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _settings(run: Run) -> dict[str, Any]:
    """The arguments of `fit`, except the data and the seeds."""
    config = run.config
    architecture = {k: v for k, v in changed(config.architecture).items() if k not in ("learned_s2", *NOT_A_FLAG)}
    optimiser = {("optimiser" if k == "name" else k): v for k, v in changed(config.optimiser).items()}
    return {**lists(run), **config.static, **architecture, **changed(config.training), **optimiser}


def differing(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """For each run its hyperparameters, and the settings in which the runs are not all the same."""
    options = [everything(run) for run in runs]
    apart = {name for each in options for name in each if any(each[name] != other.get(name) for other in options)}
    return [
        {name: value for name, value in each.items() if name in apart or name in run.members[0].hyper}
        for run, each in zip(runs, options, strict=True)
    ]


def everything(run: Run) -> dict[str, Any]:
    """Every setting that can change a result, with its value, but for the data and the seeds."""
    config = run.config
    parts = [asdict(part) for part in (config.architecture, config.training, config.optimiser)]
    options = {("optimiser" if k == "name" else k): v for part in parts for k, v in part.items() if k not in NO_RESULT}
    return {**lists(run), **config.static, **options}


def call(run: Run) -> str:
    """The Python call that makes the run again; of a model that was not trained here, the one that reads it."""
    if run.config.adapted:
        p = run.config.architecture
        known = f", s2={p.s2:g}" if p.likelihood == "gaussian" else f", likelihood={p.likelihood!r}"
        part = re.search(r"latents (\[.*?\]) of", " ".join(map(str, run.table()["note"])))
        return f"unseam.report(model, data=x{f', latents={part[1]}' if part else ''}{known})"
    seeds = list(dict.fromkeys(m.seed for m in run.members))
    parts = [repr(run.data_config["name"]), repr(run.config.objective), f"seeds={seeds}"]
    parts += [f"{name}={value!r}" for name, value in _settings(run).items()]
    if data_options(run):
        parts.append(f"data_parameters={data_options(run)!r}")
    return f"unseam.fit({', '.join(parts)})"


def command(run: Run) -> str | None:
    """The command that makes the run again; None when it was made with something that has no flag."""
    options = _settings(run)
    if run.config.adapted or run.config.objective not in OBJECTIVES or not set(options) <= set(FLAGS):
        return None
    words = ["unseam", "train", str(run.data_config["name"])]
    for name, value in data_options(run).items():
        words += [f"--data.{name}", str(value).lower() if isinstance(value, bool) or value is None else str(value)]
    seeds = list(dict.fromkeys(m.seed for m in run.members))
    words += ["--objective", run.config.objective, "--seeds", ",".join(map(str, seeds))]
    switches = {f.name for kind in (Architecture, Training) for f in fields(kind) if f.type in (bool, "bool")}
    for name, value in options.items():
        words += _flag(name, value, name in switches)
    return shlex.join(words)


def _flag(name: str, value: Any, switch: bool) -> list[str]:
    """One setting as words of the command line.

    >>> _flag("encoder", (128, 128), False), _flag("beta", [1.0, 4.0], False), _flag("learned_s2", True, True)
    (['--encoder', '128', '128'], ['--beta', '1.0,4.0'], ['--learned-s2'])
    """
    dashed = name.replace("_", "-")
    if switch:
        return [f"--{dashed}" if value else f"--no-{dashed}"]
    if isinstance(value, list):
        return [f"--{dashed}", ",".join(f"{v!r}" for v in value)]
    return [f"--{dashed}", *([str(v) for v in value] if isinstance(value, tuple) else [str(value)])]


def versions(run: Run) -> dict[str, str]:
    """What the run was trained with (its config.json says) and what the report was written with."""
    document: Mapping[str, Any] = json.loads((run.folder / "config.json").read_text())
    trained = f"unseam {document.get('unseam', '?')}, torch {document.get('torch', '?')}"
    written = f"unseam {__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    return {"trained with": trained, "report written with": f"{written}, {platform.system()} {platform.machine()}"}


def facts(run: Run, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The rest that is worth knowing."""
    if run.config.adapted:
        return of_a_model(run, rows)
    training = run.config.training
    held = len(run.split("held-out"))
    seconds = max((float(row["seconds"]) for row in rows), default=0.0)
    turned = {"axes": "turned after training by unseam align"} if run.config.architecture.aligned else {}
    return {
        **versions(run),
        **turned,
        "training": f"{len(run.members)} members, {training.steps} steps of {training.batch} samples each, "
        f"{training.how}, {training.workers} process{'es' if training.workers > 1 else ''}, {seconds:.0f} s",
        "data": f"{len(run.data)} rows of shape {tuple(run.data.shape)}, {held or 'none'} held out",
        "run folder": str(run.folder),
    }


def of_a_model(run: Run, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of a model that was not trained here: what was assumed of it."""
    (beta,) = _swept(run).get("beta", [None])
    estimated = any("estimate" in str(row["note"]) for row in rows)
    notes = str(rows[0]["note"]).split("; ")[1:]
    part = next((note for note in notes if "looked at" in note), None)
    others = "; ".join(note for note in notes if note != part and not note.startswith("beta is an estimate"))
    words = ({} if part is None else {"latents": part}) | ({"note": others} if others else {})
    words |= {} if beta is None else {"beta": f"{beta:.3g}" + (", an estimate from the Sigma law" if estimated else "")}
    p = run.config.architecture
    return {
        "model": f"{run.config.adapted}, not trained here",
        "report written with": versions(run)["report written with"],
        "likelihood": p.likelihood + (f", s2 {p.s2:g}" if p.likelihood == "gaussian" else ""),
        **words,
        "data": f"{len(run.data)} rows of shape {tuple(run.data.shape)}, given with the model",
        "run folder": str(run.folder),
    }
