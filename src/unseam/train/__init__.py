"""Cohort training: many members (seeds x hyperparameters) as one call, resumable bit for bit."""

from unseam.train.cohort import Interrupted
from unseam.train.config import Member, RunConfig, Training
from unseam.train.run import Run, fit, load_run, resume

__all__ = ["Interrupted", "Member", "Run", "RunConfig", "Training", "fit", "load_run", "resume"]
