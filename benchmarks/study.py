"""`unseam bench study`: models per hour of the `hour` preset, beside other ways to train the same models.

Training only, on the preset's first data set, `STEPS` steps of beta-VAE. Ours is one piece (18 models in one stack,
from an empty folder to its last checkpoint); (a) `unseam.fit` for one model after the other; (b) one plain PyTorch
model (eager modules, torch.optim.Adam, batches in memory). All in one process with one thread, in turns; the best turn
of each counts. Then the same eight pieces by one worker and by two, in turns. The clock runs from the first lease (two
workers start at once) to the last piece's rows, as the files have it, so that neither start-up nor the driver's own
looks and farewells count; what a worker does once for itself (drawing the data, the first fit of trees) does.
"""

import importlib.util
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn

from unseam.data import load_data
from unseam.progress import bar
from unseam.study import load_grid, study
from unseam.study.grid import Evaluation
from unseam.study.pieces import Place, train_piece
from unseam.train import fit

spec = importlib.util.spec_from_file_location("_plain_loop", Path(__file__).with_name("_plain_loop.py"))
assert spec is not None
assert spec.loader is not None
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

STEPS = 1000
ROUNDS = 3
TURNS = 2  # of one and of two workers
PARTS = ("models", "workers")


class PlainVAE(nn.Module):
    """The preset's model as people write it: 40-40 ReLU both ways, Bernoulli, beta 1."""

    def __init__(self, n: int, hidden: tuple[int, ...], latents: int) -> None:
        super().__init__()
        self.encoder = self.layers([n, *hidden, 2 * latents])
        self.decoder = self.layers([latents, *hidden, n])

    @staticmethod
    def layers(sizes: list[int]) -> nn.Sequential:
        out: list[nn.Module] = []
        for a, b in pairwise(sizes):
            out += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*out[:-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        loss = nn.functional.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none").sum(1)
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1)
        return (loss + kl).mean()


def timed(act) -> float:
    """Seconds of a processor: one thread, so those of a quiet machine."""
    began = time.process_time()
    act()
    return time.process_time() - began


def one_by_one() -> dict[str, float]:
    """Seconds a model of each way."""
    grid = load_grid("hour")
    piece = replace(grid.pieces[0], settings={**grid.settings, "steps": STEPS})
    data = dict(piece.data)
    images = load_data(data.pop("name"), **data)
    x = images.batch(torch.arange(len(images))).flatten(1)
    best = {"study": float("inf"), "loop": float("inf"), "plain": float("inf")}

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            train_piece(Place(piece, Path(folder)), lambda _: None, lambda: False)

    def loop() -> None:
        with tempfile.TemporaryDirectory() as folder:
            fit("sprites", "beta-vae", data_parameters=data, out=f"{folder}/run", show=False, workers=1,
                **{**piece.settings, "beta": 1.0})  # fmt: skip

    def one() -> None:
        model = PlainVAE(x.shape[1], tuple(piece.settings["encoder"]), piece.settings["latents"])
        plain.PlainLoop(model, x, piece.settings["batch"], 1).run(STEPS)

    with bar("bench study: models", ROUNDS) as advance:
        for _ in range(ROUNDS):
            best["study"] = min(best["study"], timed(ours) / len(piece.models))
            best["loop"] = min(best["loop"], timed(loop))
            best["plain"] = min(best["plain"], timed(one))
            advance()
    return best


def seconds_of(workers: int) -> float:
    """Eight pieces by some workers, from the first lease to the last row."""
    grid = load_grid("hour")
    small = Evaluation(rows=1000, test=500, trees="quick", labels=(100,), tree_labels=(), points=50, kept=100)
    grid = replace(grid, data={"sprites": grid.data["sprites"]}, methods=grid.methods[:1], seeds=tuple(range(8)),
                   together=1, settings={**grid.settings, "steps": STEPS}, evaluation=small)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        began: list[float] = []

        def look() -> None:
            while not began:
                if any(Path(folder).glob("pieces/*/lease")):
                    began.append(time.time())
                time.sleep(0.02)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        study(grid, folder, workers=workers, show=False)
        return max(rows.stat().st_mtime for rows in Path(folder).glob("pieces/*/rows.json")) - began[0]


def models() -> dict:
    found = one_by_one()
    per_hour = {name: 3600 / seconds for name, seconds in found.items()}
    ratios = {f"study-over-{name}": per_hour["study"] / per_hour[name] for name in ("loop", "plain")}
    how = (
        f"models per hour of training ({STEPS} steps, beta-VAE 40-40, sprites 16 px, batch 32), best of {ROUNDS} turns"
        ", one thread, processor seconds: a stacked piece of 18 over (a) fit for one model after the other and (b) one "
        "plain PyTorch model"
    )
    return {"ratios": ratios, "how": how, "models per hour": per_hour}


def workers() -> dict:
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with bar("bench study: workers", 2 * TURNS) as advance:
        for _ in range(TURNS):
            for n, found in seconds.items():
                found.append(seconds_of(n))
                advance()
    ratio = min(seconds[1]) / min(seconds[2])
    how = f"two workers over one: seconds of eight pieces of 6, from the first lease to the last row, best of {TURNS}"
    return {"ratios": {"study-two-workers": ratio}, "how": how, "seconds of workers": seconds}


def run(parts: Sequence[str] = PARTS) -> dict:
    torch.set_num_threads(1)
    found = [{"models": models, "workers": workers}[part]() for part in parts]
    together = {key: value for one in found for key, value in one.items()}
    ratios = {name: ratio for one in found for name, ratio in one["ratios"].items()}
    return {**together, "ratios": ratios, "how": "; ".join(one["how"] for one in found)}
