"""Cohort training: many members (seeds x hyperparameters) as one call, resumable bit for bit."""

from unseam.run.config import Member, RunConfig, Training
from unseam.run.load import load_run
from unseam.run.run import Run
from unseam.train.fitting import fit, resume
from unseam.train.workers import Interrupted

__all__ = ["Interrupted", "Member", "Run", "RunConfig", "Training", "fit", "load_run", "resume"]
