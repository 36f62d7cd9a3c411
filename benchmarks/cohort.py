"""`unseam bench cohort`: member-steps per second of a cohort over those of a plain one-model PyTorch loop.

Ours and the reference take short turns in one run, the reference with 1 and with 2 threads. A turn's ratio is ours over
the better reference of the same turn; what is reported is the median over the turns, and its spread. Ours is timed
inside the training processes, from the first to the last step, without their start-up.
"""

import importlib.util
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import torch

from unseam.data import load_data
from unseam.progress import bar
from unseam.train import fit

spec = importlib.util.spec_from_file_location("_plain_loop", Path(__file__).with_name("_plain_loop.py"))
assert spec is not None
assert spec.loader is not None
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

TANH = {"network": "mlp", "encoder_activation": "tanh", "decoder_activation": "tanh", "batch": 64, "workers": 2}
SMALL = {**TANH, "latents": 2, "encoder": (60, 40, 20), "decoder": (60, 40, 20), "beta": 1e-3}
WIDE = {**TANH, "latents": 6, "encoder": (400, 400), "decoder": (500, 500), "beta": 1.0, "likelihood": "gaussian",
        "scale": "none"}  # fmt: skip
TURNS = 7
PARTS = ("mlp", "wide", "conv")
HOW = (
    "member-steps per second of the cohort over those of a plain PyTorch loop (eager, Adam, in-memory batches, "
    "float32, the better of 1 and 2 threads), batch 64, median of {turns} alternating turns (smallest to largest "
    "beside it); mlp: 60-40-20 tanh MLPs of Zietlow 2022 Table 3.1, 10 members; wide: 784-400-400, 500-500-784 "
    "tanh MLPs, 4 members; conv: 32-32-64-64/256, 64x64, 2 members; networks of conv in {precision}"
)


def ours(data: str, members: int, steps: int, **settings: object) -> float:
    """Member-steps per second of a cohort, all its processes together; the slowest process sets the time."""
    with tempfile.TemporaryDirectory() as folder:
        run = fit(data, "beta-vae", seeds=range(members), steps=steps, out=Path(folder) / "run", show=False, **settings)
        return members * steps / run.table()["seconds"].max()


def compare(label: str, reference: list, data: str, members: int, steps: int, plain_steps: int, **settings) -> dict:
    for loop in reference:
        loop.run(3)
    mine, theirs = [], []
    with bar(f"bench cohort: {label}", TURNS) as advance:
        for _ in range(TURNS):
            theirs.append(max(plain_steps / loop.run(plain_steps) for loop in reference))
            torch.set_num_threads(1)
            mine.append(ours(data, members, steps, **settings))
            advance()
    ratios = sorted(a / b for a, b in zip(mine, theirs, strict=True))
    spread = {"ratio": median(ratios), "smallest": ratios[0], "largest": ratios[-1]}
    return {"ours": median(mine), "plain": median(theirs), **spread}


def loops(model: type, x: torch.Tensor) -> list:
    return [plain.PlainLoop(model(), x, 64, threads) for threads in (1, 2)]


def mlp() -> dict:
    vectors = load_data("synth-nonlinear")
    x = vectors.batch(torch.arange(len(vectors)))
    return compare("10 small MLPs", loops(plain.MLPVAE, x), "synth-nonlinear", 10, 3000, 400, **SMALL)


def pictures() -> torch.Tensor:
    sprites = load_data("sprites")
    return sprites.batch(torch.randperm(len(sprites))[:4096])


def wide() -> dict:
    tiles = pictures()[:, :, ::2, ::2].flatten(1)[:, :784].contiguous()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiles.npy"
        np.save(path, tiles.numpy())
        return compare("4 wide MLPs", loops(plain.WideVAE, tiles), str(path), 4, 200, 60, **WIDE)


def conv() -> dict:
    settings = {"beta": 4.0, "batch": 64, "workers": 2}
    return compare("2 conv 64x64", loops(plain.ConvVAE, pictures()), "sprites", 2, 40, 12, **settings)


def run(parts: tuple[str, ...] = PARTS) -> dict:
    from unseam.train.torch_private import fast_bfloat16

    found = {name: one() for name, one in zip(PARTS, (mlp, wide, conv), strict=True) if name in parts}
    how = HOW.format(turns=TURNS, precision="bfloat16" if fast_bfloat16() else "float32 (this CPU has no bfloat16)")
    return {"ratios": {f"cohort-{name}": one["ratio"] for name, one in found.items()}, "how": how, **found}
