"""A table in, a run out, and the run used like a transformer: own units, no training file, packed for others.

python examples/use_a_run.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import unseam
from unseam.runs.pack import pack


def main() -> None:
    place, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    size, age = rng.normal(size=(2, 500))
    frame = pd.DataFrame({"weight": 70 + 12 * size, "height": 1.7 + 0.1 * size, "income": 3e4 + 9e3 * age})
    frame.to_csv(place / "people.csv", index=False)

    settings = {"network": "linear", "latents": 2, "steps": 500, "beta": 0.01, "lr": 0.01, "show": False}
    run = unseam.fit(place / "people.csv", scale="standard", out=place / "run", **settings)
    (place / "people.csv").unlink()  # the run does not need it to encode and decode

    run = unseam.load_run(run.folder)
    print(run.encode(frame.head(3)))  # a DataFrame in, a DataFrame out: z0, z1
    print((run.reconstruct(frame) - frame).abs().mean())  # in kilograms, metres and money

    named = unseam.load_run(run.folder, data=frame)  # what needs data takes it from here
    print(pack([named], place / "published", licence="CC0-1.0") / "CARD.md")


if __name__ == "__main__":
    main()
