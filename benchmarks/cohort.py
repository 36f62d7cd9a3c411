"""`unseam bench cohort`: member-steps per second of a cohort over those of what a user would take instead.

Two references. One is one model in a PyTorch loop, with the better of 1 and 2 threads. *best* is the fastest of what
two cores can do without unseam (_competitors.py): two plain processes, two tuned bfloat16 processes, and a vmapped JAX
scan in two processes. All take short turns in one run. A turn's ratio is ours over the reference of the same turn; what
is reported is the median over the turns, and its spread. Ours is timed inside the training processes, from the first to
the last step with all that is logged, without start-up and compilation; so are the references, which log nothing.
"""

import importlib.util
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import ModuleType

import numpy as np
import torch

from unseam.data import load_data
from unseam.progress import bar
from unseam.train import fit


def beside(name: str) -> ModuleType:
    """A module of this folder, which need not be on the import path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plain, competitors = beside("_plain_loop"), beside("_competitors")

TANH = {"network": "mlp", "encoder_activation": "tanh", "decoder_activation": "tanh", "batch": 64, "workers": 2}
SMALL = {**TANH, "latents": 2, "encoder": (60, 40, 20), "decoder": (60, 40, 20), "beta": 1e-3}
WIDE = {**TANH, "latents": 6, "encoder": (400, 400), "decoder": (500, 500), "beta": 1.0, "likelihood": "gaussian",
        "scale": "none"}  # fmt: skip
CONV = {"beta": 4.0, "batch": 64, "workers": 2}
TURNS = 7
PARTS = ("mlp", "wide", "conv", "best")  # the last: ratios to the best alternative alone, for `SHORT`
SHORT = (("mlp", 10), ("mlp", 100), ("wide", 4), ("conv", 2))  # about ten minutes on two free cores
USUAL = {"mlp": 10, "wide": 4, "conv": 2}  # members of the ratios without a number in their name
MEMBERS = (2, 10, 40, 100)
WORK = {"mlp": 80_000, "wide": 800, "conv": 80}  # member-steps of a turn of ours; more where each step has many members
LEAST = {"mlp": 2_000, "wide": 1_200, "conv": 8}  # steps of each member: so many that `auto` chooses as in a real run
THEIRS = {"mlp": {"plain": 400, "tuned": 400, "jax": 1_000}, "wide": {"plain": 60, "tuned": 60, "jax": 200},
          "conv": {"plain": 12, "tuned": 12}}  # fmt: skip
# steps of a turn of theirs; JAX's convolutions are far slower than torch's on a CPU, so they are left out
HOW = (
    "member-steps per second of the cohort on two cores, batch 64, median of {turns} alternating turns (smallest to "
    "largest beside it); over a plain PyTorch loop (eager, Adam, in-memory batches, float32, the better of 1 and 2 "
    "threads), and over the best of two plain processes, two tuned ones (bfloat16 autocast, channels_last, fused Adam) "
    "and a vmapped JAX scan in two processes (mlp and wide, where JAX is installed); mlp: 60-40-20 tanh MLPs of "
    "Zietlow 2022 Table 3.1, 10 members; wide: 784-400-400, 500-500-784 tanh MLPs, 4 members; conv: 32-32-64-64/256, "
    "64x64, 2 members; a number at the end of a name is another number of members; networks of conv in {precision}"
)


def ours(data: str, members: int, steps: int, **settings: object) -> tuple[float, str]:
    """Member-steps per second of a cohort, all its processes together, and its engine."""
    with tempfile.TemporaryDirectory() as folder:
        run = fit(data, "beta-vae", seeds=range(members), steps=steps, out=Path(folder) / "run", show=False, **settings)
        table = run.table()
        groups = [float(table["seconds"][group[0]]) for group in run.config.groups]
        seconds = max(*groups, sum(groups) / run.config.training.workers)  # groups that wait for a process
        return members * steps / seconds, str(table["engine"][0])


def compare(part: str, model: type, x: torch.Tensor, data: str, members: int, **settings: object) -> dict:
    """Turns of ours and of every reference, for one number of members."""
    steps = max(LEAST[part], WORK[part] // members)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        np.save(folder / "x.npy", x.numpy())
        loops = [plain.PlainLoop(model(), x, 64, threads) for threads in (1, 2)]
        rates: dict[str, Callable[[], float]] = {}
        for kind, count in THEIRS[part].items():
            if kind == "jax" and importlib.util.find_spec("jax") is None:
                continue
            pair = competitors.Pair(kind, part, members, folder / "x.npy")
            stack.callback(pair.close)
            pair.rate(count)  # compiled and warm
            rates[kind] = lambda pair=pair, count=count: pair.rate(count)
        found: dict[str, list[float]] = {name: [] for name in ("ours", "one loop", *rates)}
        engine, few = "", max(8, THEIRS[part]["plain"])
        for loop in loops:
            loop.run(3)
        with bar(f"bench cohort: {part}, {members} members", TURNS) as advance:
            for _ in range(TURNS):
                found["one loop"].append(max(few / loop.run(few) for loop in loops))
                for name, rate in rates.items():
                    found[name].append(rate())
                torch.set_num_threads(1)
                rate_, engine = ours(data, members, steps, **settings)
                found["ours"].append(rate_)
                advance()
    best = [max(turn) for turn in zip(*(found[name] for name in rates), strict=True)]
    medians = {name: median(values) for name, values in found.items()}
    winner = max(rates, key=lambda name: medians[name])
    spreads = {"over one loop": _spread(found["ours"], found["one loop"]), "over best": _spread(found["ours"], best)}
    return {"members": members, "steps": steps, "engine": engine, "best": winner, **medians, **spreads}


def _spread(mine: list[float], theirs: list[float]) -> dict[str, float]:
    ratios = sorted(a / b for a, b in zip(mine, theirs, strict=True))
    return {"ratio": median(ratios), "smallest": ratios[0], "largest": ratios[-1]}


def mlp(members: int) -> dict:
    vectors = load_data("synth-nonlinear")
    x = vectors.batch(torch.arange(len(vectors)))
    return compare("mlp", plain.MLPVAE, x, "synth-nonlinear", members, **SMALL)


def pictures() -> torch.Tensor:
    sprites = load_data("sprites")
    return sprites.batch(torch.randperm(len(sprites))[:4096])


def wide(members: int) -> dict:
    tiles = pictures()[:, :, ::2, ::2].flatten(1)[:, :784].contiguous()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiles.npy"
        np.save(path, tiles.numpy())
        return compare("wide", plain.WideVAE, tiles, str(path), members, **WIDE)


def conv(members: int) -> dict:
    return compare("conv", plain.ConvVAE, pictures(), "sprites", members, **CONV)


def run(parts: tuple[str, ...] = PARTS) -> dict:
    from unseam.train.torch_private import fast_bfloat16

    ratios: dict[str, float] = {}
    detail: dict[str, list[dict]] = {}
    todo = [(name, members) for name in USUAL if name in parts for members in (USUAL[name], *MEMBERS)]
    for name, members in dict.fromkeys([*todo, *(SHORT if "best" in parts else ())]):
        found = {"mlp": mlp, "wide": wide, "conv": conv}[name](members)
        detail.setdefault(name, []).append(found)
        usual = members == USUAL[name]
        if usual:
            ratios[f"cohort-{name}"] = found["over one loop"]["ratio"]
        ratios[f"cohort-{name}-over-best{'' if usual else f'-{members}'}"] = found["over best"]["ratio"]
    how = HOW.format(turns=TURNS, precision="bfloat16" if fast_bfloat16() else "float32 (this CPU has no bfloat16)")
    return {"ratios": ratios, "how": how, **detail}
