"""A run's rows, passed on to TensorBoard or Weights & Biases while it trains. The rows stay the truth.

A thread of the parent process reads what the run has logged since it last looked (rows reach the table with every
checkpoint) and hands it on; a tracker that fails is reported once and never stops the training.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from unseam.errors import BadInput, lookup
from unseam.progress import log
from unseam.run.config import RunConfig
from unseam.run.results import Results

POLL_EVERY = 5.0  # seconds between looks


class Writer(Protocol):
    """What a tracker must be able to do: numbers of one member at one step, by name."""

    def write(self, member: int, step: int, values: dict[str, float]) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """One folder per member below RUN/tensorboard: `tensorboard --logdir RUN/tensorboard`."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.of = [SummaryWriter(str(folder / "tensorboard" / name)) for name in _names(config)]

    def write(self, member: int, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.of[member].add_scalar(name, value, step)

    def close(self) -> None:
        for writer in self.of:
            writer.close()


class Wandb:
    """One run of Weights & Biases per cohort; each member logs under its own name, by training step."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        import wandb

        self.names = _names(config)
        self.run = wandb.init(project="unseam", name=folder.name, dir=str(folder), config=config.to_json())
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")

    def write(self, member: int, step: int, values: dict[str, float]) -> None:
        self.run.log({"step": step, **{f"{self.names[member]}/{name}": value for name, value in values.items()}})

    def close(self) -> None:
        self.run.finish()


PACKAGES = ("tensorboard", "wandb")
TRACKERS: dict[str, Callable[[Path, RunConfig], Writer]] = {"tensorboard": TensorBoard, "wandb": Wandb}


def check_tracker(name: str) -> None:
    """Refuse a tracker that does not exist or is not installed, before a run is begun."""
    lookup(TRACKERS, name, "track")
    if name in PACKAGES and find_spec(name) is None:
        raise BadInput(f"track={name!r} needs the package {name}; pip install 'unseam[{name}]'")


def _names(config: RunConfig) -> list[str]:
    """member-03-beta-4-seed-0, for every member."""
    return [
        "-".join([f"member-{i:02d}", *(f"{n}-{v:g}" for n, v in m.hyper.items()), f"seed-{m.seed}"])
        for i, m in enumerate(config.members)
    ]


class Follower:
    """Hands each logged row on once, in the order of steps."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.rows, self.writer = Results(folder), writer
        self.last_step: dict[int, int] = {}  # member -> its last step

    def look(self) -> None:
        new = self.rows.read("log")
        new = new[new["step"] > new["member"].map(self.last_step).fillna(-1)]
        for step, member in new[["step", "member"]].drop_duplicates().sort_values(["step", "member"]).to_numpy():
            rows = new[(new["step"] == step) & (new["member"] == member)]
            self.writer.write(int(member), int(step), dict(zip(rows["name"], rows["value"], strict=True)))
            self.last_step[int(member)] = int(step)


@contextmanager
def tracked(folder: Path, config: RunConfig, to: str) -> Iterator[None]:
    """While the block runs, and once after it, rows are passed on."""
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(folder, config, to, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(folder: Path, config: RunConfig, to: str, done: threading.Event) -> None:
    try:
        follower = Follower(folder, lookup(TRACKERS, to, "track")(folder, config))
        while not done.wait(POLL_EVERY):
            follower.look()
        follower.look()
        follower.writer.close()
    except Exception as error:  # a tracker error must not stop the run
        what = f"{to} failed ({type(error).__name__}: {error})"
        log.warning(f"{what}; training continues, and its rows are saved as usual")
