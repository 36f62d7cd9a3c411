"""Cohort training: many members (seeds x hyperparameters) as one call, resumable bit for bit."""

from unseam.train.cohort import Interrupted
from unseam.train.config import Member, RunConfig, Training
from unseam.train.reopen import load_run, resume
from unseam.train.run import Run
from unseam.train.start import fit

__all__ = ["Interrupted", "Member", "Run", "RunConfig", "Training", "fit", "load_run", "resume"]
