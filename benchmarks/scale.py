"""`unseam bench scale`: how the cost of a training step grows with members, latents, rows and image size.

Each curve changes one thing of a small cohort and measures processor seconds a step (one process, one thread, without
start-up, the engine of a long run), and the process's peak memory. Convolutions are measured with the step written out,
the other curves by XLA too, where JAX is installed. Where the cost grows by more than BENT
times the size between two neighbours, the curve is said to stop being linear there; below that, growing is at least as
cheap as starting another run.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from unseam.progress import bar

BENT = 1.25  # growth of the cost over growth of the size, between neighbours
STEPS = {"written-out": 60, "xla": 1_280}  # XLA reports after chunks of 128 steps
CURVES = {
    "members": (1, 3, 10, 30, 100),
    "latents": (2, 8, 32, 128),
    "rows": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "size": (16, 32, 64, 128),
}
PARTS = tuple(CURVES)
WORDS = {"members": "members", "latents": "latents", "rows": "rows on disk", "size": "image size (conv)"}
MLP = {"network": "mlp", "encoder": (64, 64), "decoder": (64, 64)}


def measure(curve: str, n: int, engine: str) -> dict[str, float]:
    """Seconds a step and peak memory of one point, in a process of its own."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC"), "1")
    command = [sys.executable, __file__, curve, str(n), engine]
    answer = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    return json.loads(answer.stdout.splitlines()[-1])


def point(curve: str, n: int, engine: str) -> dict[str, float]:
    from unseam.train import cohort, compiled_step, fit

    ticks: list[tuple[int, float]] = []  # steps done since the last one, processor time
    train_group = cohort.train_group

    def timed(job, data, tick) -> None:
        def counted(done, *losses):
            ticks.append((done, time.process_time()))
            return tick(done, *losses)

        train_group(job, data, counted)

    cohort.train_group, compiled_step.LONG = timed, 1  # of this process, which measures one point
    with tempfile.TemporaryDirectory() as folder:
        data, options, settings = "synth-nonlinear", {"size": 2_000}, {**MLP, "latents": 5}
        seeds = range(n if curve == "members" else 1)
        if curve == "latents":
            settings["latents"] = n
        if curve == "size":
            data, options, settings = "sprites", {"size": n, "shapes": 1}, {"network": "conv"}
        if curve == "rows":
            data, options = rows(Path(folder) / "rows.npy", n), {}
        steps = STEPS[engine]
        run = fit(data, "beta-vae", seeds=seeds, steps=steps, workers=1, log_every=steps, watch=0, show=False,
                  engine=engine, data_parameters=options, out=Path(folder) / "run", **settings)  # fmt: skip
        assert set(run.table()["engine"]) == {engine}
    seconds = seconds_a_step(ticks)
    return {"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0}


def seconds_a_step(ticks: list[tuple[int, float]]) -> float:
    """The median over what was reported; a report covers one step or a chunk of them.

    >>> seconds_a_step([(2, 0.0), (2, 10.0), (1, 15.0), (4, 55.0)])
    5.0
    """
    pairs = pairwise(ticks)
    return float(np.median([(now - before) / steps for (_, before), (steps, now) in pairs]))


def engines(curve: str) -> tuple[str, ...]:
    """Those that can run the networks of a curve here."""
    xla = curve != "size" and importlib.util.find_spec("jax") is not None
    return ("written-out", "xla") if xla else ("written-out",)


def rows(path: Path, n: int) -> str:
    """n rows of 6 numbers on disk, written a block at a time."""
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, 6))
    for i in range(0, n, 1_000_000):
        out[i : i + 1_000_000] = np.random.default_rng(i).normal(size=out[i : i + 1_000_000].shape)
    out.flush()
    return str(path)


def bends(curve: str, sizes: tuple[int, ...], seconds: list[float]) -> int | None:
    """The size from which on the cost grows faster than the size; image sizes are compared by their pixels.

    >>> bends("members", (1, 10, 100), [1.0, 2.0, 30.0])
    100
    """
    power = 2 if curve == "size" else 1
    for a, b, s, t in zip(sizes, sizes[1:], seconds, seconds[1:], strict=False):
        if t / s > BENT * (b / a) ** power:
            return b
    return None


def run(parts: tuple[str, ...] = PARTS) -> dict:
    found: dict[str, dict] = {}
    curves = [(curve, engine) for curve in parts for engine in engines(curve)]
    with bar("bench scale", sum(len(CURVES[curve]) for curve, _ in curves)) as advance:
        for curve, engine in curves:
            sizes, points = CURVES[curve], []
            for n in sizes:
                points.append(measure(curve, n, engine))
                advance()
            bent = bends(curve, sizes, [p["seconds"] for p in points])
            name = curve if engine == "written-out" else f"{curve}-{engine}"
            found[name] = {"sizes": sizes, "points": points, "stops being linear at": bent}
    first = {name: one["points"][0]["seconds"] for name, one in found.items()}
    ratios = {
        f"scale-{name}-{n}": point_["seconds"] / first[name]
        for name, one in found.items()
        for n, point_ in zip(one["sizes"], one["points"], strict=True)
    }
    words = "; ".join(f"{name}: {one['stops being linear at'] or 'linear or better throughout'}" for name, one in
                      found.items())  # fmt: skip
    how = f"processor seconds a step over those of the smallest size, one thread; stops being linear at: {words}"
    return {"ratios": ratios, "how": how, **found}


def draw(found: dict[str, dict], path: str) -> None:
    """Milliseconds a step and peak memory over each size, with the line of proportional growth from the last point."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, axes = plt.subplots(2, len(CURVES), figsize=(13, 5.4), layout="constrained", sharex="col")
    for (above, below), name in zip(axes.T, CURVES, strict=True):
        lines = {label: found[key] for label, key in (("written out", name), ("XLA", f"{name}-xla")) if key in found}
        sizes, costs, most, bent = np.array(found[name]["sizes"]), [], 0.0, {}
        for label, one in lines.items():
            cost = 1e3 * np.array([p["seconds"] for p in one["points"]])
            memory = np.array([p["memory"] for p in one["points"]]) / 2**20
            above.loglog(sizes, cost, "o-", label=label)
            below.semilogx(sizes, memory, "o-")
            costs, most = [*costs, *cost], max(most, memory.max())
            if one["stops being linear at"]:
                bent[label] = one["stops being linear at"]
        load = sizes**2 / sizes[-1] ** 2 if name == "size" else sizes / sizes[-1]
        above.loglog(sizes, max(costs) * load, ":", color="grey", label="in proportion")
        words = "\n".join(f"{label}: more than linear from {n:,} on" for label, n in bent.items())
        above.set_title(words or "linear or better throughout", fontsize=9)
        above.set_ylim(min(costs) / 2, max(costs) * 2)
        above.yaxis.set_major_formatter("{x:g}")
        above.yaxis.set_minor_formatter(NullFormatter())
        below.set(xlabel=WORDS[name], xticks=sizes, xticklabels=[f"{n:,}" if n < 1e5 else f"{n:.0e}" for n in sizes])
        below.set_ylim(0, 1.15 * most)
        below.minorticks_off()
    axes[0, 0].set_ylabel("ms a step")
    axes[1, 0].set_ylabel("peak memory, MiB")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path)


if __name__ == "__main__":
    if sys.argv[1] != "draw":
        print(json.dumps(point(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    else:  # python benchmarks/scale.py draw FIGURE.svg RESULT.json ... (of `unseam bench scale --json` or its parts)
        results = [json.loads(Path(path).read_text())["detail"].values() for path in sys.argv[3:]]
        draw({k: v for parts in results for part in parts for k, v in part.items() if k in CURVES}, sys.argv[2])
