"""A step of m against a step of one decoder, in the game that `unseam perturb` plays on small sprites."""

from __future__ import annotations

import json
import statistics
import time

import torch

from unseam.data import load_data
from unseam.data.sets.perturbed import column_reach
from unseam.models import Architecture
from unseam.perturb import Settings, turned_layout
from unseam.perturb.adversary import Game
from unseam.perturb.layouts import teacher
from unseam.perturb.perturb_data import TABLE_NETWORK

TURNS, STEPS = 9, 40
DATA = {"size": 16, "shapes": 1, "orientations": 1, "without": "x<8|x>23|y<13|y>18", "grey": 0.1}


def timed(call) -> float:
    start = time.perf_counter()
    for i in range(STEPS):
        call("benchmark", i)
    return (time.perf_counter() - start) / STEPS


def run() -> dict:
    torch.set_num_threads(1)
    data = load_data("sprites", **DATA)
    rows = torch.arange(len(data))
    x, factors = data.batch(rows), data.factors(rows)
    model = Architecture(latents=3, likelihood="gaussian", s2=0.05, **TABLE_NETWORK).build(data.shape, 0)
    with torch.no_grad():
        one = teacher(model, model.encode(x))
    middle, half = column_reach(factors)
    sides = {"entangled": [turned_layout(one)], "disentangled": [one]}
    game = Game(x, (factors.float() - middle) / half, sides, Settings())
    for _ in range(20):
        game.play()
    turns = [(timed(game.move), timed(game.teach) / 2) for _ in range(TURNS)]  # teach: a step of both decoders
    m, decoder = (statistics.median(column) for column in zip(*turns, strict=True))
    return {
        "ratios": {"perturb: a step of m / a step of one decoder": m / decoder},
        "how": (
            f"MLP 128-128, 16 x 16 pixels, 64 images of 3 samples; medians of {TURNS} alternating turns of {STEPS} "
            f"steps: {1e3 * m:.2f} and {1e3 * decoder:.2f} ms, one thread"
        ),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
