"""A small study of your own: two strengths of beta, three seeds, on a data set of your choice; then one tidy frame.

The same as `unseam study mine.toml --out studies/mine`; run it again and it goes on where it stopped.
"""

import sys
import tempfile
from pathlib import Path

from unseam.study import load, study

GRID = """
seeds = "0..2"
together = 3                # the seeds and strengths of a method train as one stack
[data.ring]
name = "ring"
[methods.beta-vae]
beta = [0.01, 1]            # the one list is what is swept
[settings]
network = "mlp"
latents = 2
encoder = [32]
decoder = [32]
steps = 500
holdout = 0.0
[evaluation]
rows = 80
test = 40
trees = "quick"
labels = [10]
tree_labels = []
"""

if __name__ == "__main__":  # the study starts processes
    out = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    grid = out / "mine.toml"
    grid.write_text(GRID)
    print(study(grid, out / "study"))
    table = load(out / "study").table()
    print(table.groupby("strength")[["mean.mig", "free.udr", "free.active", "unsup.kl"]].mean().round(3))
