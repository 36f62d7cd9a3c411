"""The run folder: configuration, rows, checkpoints, the user's files, packs, and models that encode and decode."""

from unseam.run.config import Member, RunConfig, Training
from unseam.run.load import load_run
from unseam.run.run import Run

__all__ = ["Member", "Run", "RunConfig", "Training", "load_run"]
