"""How fast are the metrics? Ours beside straightforward scikit-learn, in one run, on one table.

10,000 training and 5,000 held-out rows, 10 latents, the factor sizes of dSprites. Ratios are reference time over
ours. The reference DCI would take about ten minutes, so it runs 3 of its 100 boosting stages and is scaled
by 100 / 3 (its cost is proportional to the stages: the trees are alike).
"""

import resource
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from unseam import metrics as ours
from unseam.atomic import cores
from unseam.axes import Factor, FactorSpace

sys.path.insert(0, str(Path(__file__).parent))
import _reference_metrics as reference
from _known import known

SIZES = (3, 6, 40, 32, 32)
STAGES = 3
PARTS = ("each", "suite", "growth")
HOW = (
    "10,000 + 5,000 rows, 10 latents, factors [3, 6, 40, 32, 32], code = factors + noise 0.1; best of {repeat} "
    "interleaved rounds on {cores} core(s); reference = benchmarks/_reference_metrics.py; reference DCI is {stages} of "
    "100 boosting stages times {scale:.1f}; metrics-suite: the same eight in one call, over the sum of the reference's"
)


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def table():
    codes, factors = known("noisy-0.1", 15_000, SIZES, latents=10)
    return codes[:10_000], factors[:10_000], codes[10_000:], factors[10_000:]


def encoder():
    mean = np.array([(s - 1) / 2 for s in SIZES], np.float32)
    std = np.array([np.sqrt((s * s - 1) / 12) for s in SIZES], np.float32)
    mix = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0][:, :5].astype(np.float32)
    return lambda factors: ((factors - mean) / std).astype(np.float32) @ mix.T


def contests():
    """name -> (reference, ours, how many times the reference's time counts)."""
    z, v, zt, vt = table()
    held = {"test_codes": zt, "test_factors": vt}
    space = FactorSpace(tuple(Factor(f"f{i}", s) for i, s in enumerate(SIZES)))
    encode, rng = encoder(), np.random.default_rng(0)
    return {
        "mig": (lambda: reference.mig(z, v), lambda: ours.mig(z, v), 1),
        "modularity": (lambda: reference.modularity(z, v), lambda: ours.modularity(z, v), 1),
        "sap": (lambda: reference.sap(z, v, zt, vt), lambda: ours.sap(z, v, **held), 1),
        "irs": (lambda: reference.irs(z, v), lambda: ours.irs(z, v), 1),
        "explicitness": (lambda: reference.explicitness(z, v, zt, vt), lambda: ours.explicitness(z, v, **held), 1),
        "factor-vae": (
            lambda: reference.factor_vae(encode, SIZES, rng),
            lambda: ours.factor_vae(space=space, sampler=encode),
            1,
        ),
        "beta-vae": (
            lambda: reference.beta_vae(encode, SIZES, rng),
            lambda: ours.beta_vae(space=space, sampler=encode),
            1,
        ),
        "dci": (lambda: reference.dci(z, v, zt, vt, STAGES), lambda: ours.dci(z, v, **held), 100 / STAGES),
    }


def race(repeat: int) -> dict[str, tuple[float, float]]:
    """Best times (reference, ours) of interleaved rounds; two rounds of DCI, which takes longest."""
    out = {}
    for name, (theirs, mine, scale) in contests().items():
        times = [(seconds(theirs), seconds(mine)) for _ in range(min(repeat, 2) if name == "dci" else repeat)]
        out[name] = (scale * min(t for t, _ in times), min(m for _, m in times))
    return out


def suite() -> dict[str, float]:
    """Seconds of the eight in one call, beside the reference's; of every metric; and this process's peak memory."""
    z, v, zt, vt = table()
    held, names = {"test_codes": zt, "test_factors": vt}, list(contests())
    eight = [seconds(lambda: ours.score(z, v, metrics=names, **held)) for _ in range(2)]
    theirs = {name: scale * seconds(call) for name, (call, _, scale) in contests().items()}
    return {
        "seconds": seconds(lambda: ours.score(z, v, **held)),
        "eight metrics": min(eight),
        "eight metrics of the reference": sum(theirs.values()),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def growth() -> dict[str, dict[str, float]]:
    """Seconds of the information metrics against rows, to see that the cost is linear."""
    names = ["mig", "mig-sup", "modularity", "jemmig", "dcimig", "irs", "code-mutual-information"]
    out = {}
    for n in (10_000, 100_000, 1_000_000):
        z, v = known("noisy-0.1", n, SIZES, latents=10)
        out[str(n)] = {name: seconds(partial(ours.score, z, v, metrics=name)) for name in names}
    return out


def run(parts: tuple[str, ...] = PARTS, repeat: int = 3) -> dict:
    warnings.simplefilter("ignore")
    times = race(repeat) if "each" in parts else {}
    whole = suite() if "suite" in parts else {}
    ratios = {f"metrics/{name}": theirs / mine for name, (theirs, mine) in times.items()}
    if whole:
        ratios["metrics-suite"] = whole["eight metrics of the reference"] / whole["eight metrics"]
    return {
        "ratios": ratios,
        "seconds": {name: {"reference": theirs, "ours": mine} for name, (theirs, mine) in times.items()},
        "suite": whole,
        "growth": growth() if "growth" in parts else {},
        "how": HOW.format(repeat=repeat, cores=cores(), stages=STAGES, scale=100 / STAGES),
    }
