"""`unseam bench cohort`: member-steps per second of a cohort over those of a plain one-model PyTorch loop.

Ours and the reference take turns in one run (the reference with 1 and with 2 threads; its best turn counts, as does
our best). Ours is timed inside the training processes, from the first to the last step, without their start-up.
"""

import importlib.util
import tempfile
from pathlib import Path

import torch

from unseam.data import load_data
from unseam.progress import bar
from unseam.train import fit

spec = importlib.util.spec_from_file_location("_plain_loop", Path(__file__).with_name("_plain_loop.py"))
assert spec is not None
assert spec.loader is not None
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)

SMALL = {
    "network": "mlp", "latents": 2, "encoder": (60, 40, 20), "decoder": (60, 40, 20), "encoder_activation": "tanh",
    "decoder_activation": "tanh", "beta": 1e-3, "batch": 64, "log_every": 100,
}  # fmt: skip
ROUNDS = 3


def ours(data: str, members: int, steps: int, **settings: object) -> float:
    """Member-steps per second of a cohort, all its processes together; the slowest process sets the time."""
    with tempfile.TemporaryDirectory() as folder:
        run = fit(data, "beta-vae", seeds=range(members), steps=steps, out=Path(folder) / "run", show=False, **settings)
        return members * steps / run.table()["seconds"].max()


def compare(
    label: str, reference: list, data: str, members: int, steps: int, plain_steps: int, **settings: object
) -> dict:
    theirs, mine = [], []
    for loop in reference:
        loop.run(3)
    with bar(f"bench cohort: {label}", ROUNDS) as advance:
        for _ in range(ROUNDS):
            theirs += [plain_steps / loop.run(plain_steps) for loop in reference]
            torch.set_num_threads(1)
            mine.append(ours(data, members, steps, **settings))
            advance()
    return {"ours": max(mine), "plain": max(theirs), "ratio": max(mine) / max(theirs)}


def run() -> dict:
    vectors = load_data("synth-nonlinear")
    x = vectors.batch(torch.arange(len(vectors)))
    sprites = load_data("sprites")
    images = sprites.batch(torch.randperm(len(sprites))[:4096])
    threads = (1, 2)
    small = compare(
        "10 small MLPs", [plain.PlainLoop(plain.MLPVAE(), x, 64, t) for t in threads], "synth-nonlinear", 10, 3000, 400,
        **SMALL, workers=2,
    )  # fmt: skip
    conv = compare(
        "conv 64x64", [plain.PlainLoop(plain.ConvVAE(), images, 64, t) for t in threads], "sprites", 2, 40, 12,
        beta=4.0, batch=64, workers=2, precision="auto",
    )  # fmt: skip
    how = (
        "member-steps per second of the cohort over those of a plain PyTorch loop (eager, Adam, in-memory batches, "
        "float32, best of 1 and 2 threads), batch 64, best of 3 alternating turns; small: 60-40-20 tanh MLPs of "
        "Zietlow 2022 Table 3.1, 10 members; conv: 32-32-64-64/256, 64x64, 2 members"
    )
    return {
        "ratios": {"cohort-mlp": small["ratio"], "cohort-conv": conv["ratio"]},
        "how": how,
        "small": small,
        "conv": conv,
    }
