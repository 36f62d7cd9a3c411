"""Geometry against references in the same run, one thread: DtO, Jacobians, memory, align.

Ours and the reference take turns; each one's time is its fastest round's.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import nn
from torch.func import jacfwd, vmap

from unseam.geometry import align, dto, jacobian, pullbacks
from unseam.geometry.jacobian import singular

LATENTS, POINTS, MATRICES = 10, 256, 1000


def conv_decoder() -> nn.Module:
    """FC 256, then four transposed convolutions to 64 x 64."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(LATENTS, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU()]
    layers += [nn.Unflatten(1, (64, 4, 4))]
    for a, b in ((64, 64), (64, 32), (32, 32)):
        layers += [nn.ConvTranspose2d(a, b, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 1, 4, 2, 1)).requires_grad_(False)


def mlp_decoder(latents: int) -> nn.Module:
    torch.manual_seed(0)
    widths = (latents, 256, 256, 784)
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers).requires_grad_(False)


def milp_dto(V: np.ndarray) -> float:
    """The thesis' way: one integer program per matrix, min |V - (B+ - B-)|_1 over binary B+, B- (SciPy's HiGHS)."""
    d = V.shape[1]
    rows, columns = np.kron(np.eye(d), np.ones(d)), np.kron(np.ones(d), np.eye(d))
    once = LinearConstraint(np.block([[rows, rows], [columns, columns]]), 1, 1)
    distances = []
    for one in V:
        cost = np.concatenate([np.abs(one - 1) - np.abs(one), np.abs(one + 1) - np.abs(one)]).ravel()
        x = milp(cost, constraints=once, integrality=np.ones(2 * d * d), bounds=Bounds(0, 1)).x.round()
        distances.append(np.linalg.norm(one - (x[: d * d] - x[d * d :]).reshape(d, d)))
    return float(np.mean(distances))


def fastest(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of each call's fastest round; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def dto_speedup() -> dict[str, float]:
    J = torch.randn(MATRICES, 40, LATENTS, generator=torch.Generator().manual_seed(0)).double()
    gram = J.mT @ J
    V = singular(gram)[1].numpy()
    assert abs(dto(gram) - milp_dto(V)) < 1e-9  # also the milp's only round
    ours = fastest({"ours": lambda: dto(gram)}, 5)["ours"]
    milp_seconds = fastest({"milp": lambda: milp_dto(V)}, 1)["milp"]
    return {"dto: milp / ours": milp_seconds / ours}


def jacobian_cost() -> dict[str, float]:
    decode = conv_decoder()
    z = torch.randn(POINTS, LATENTS, generator=torch.Generator().manual_seed(0))

    def forward() -> None:
        for _ in range(LATENTS):
            decode(z)

    best = fastest(
        {
            "forward": forward,
            "ours": lambda: jacobian(decode, z),
            "plain": lambda: vmap(jacfwd(lambda one: decode(one[None])[0]))(z),
        },
        4,
    )
    return {
        "jacobian: ours / 10 forward passes": best["ours"] / best["forward"],
        "jacobian: vmap(jacfwd) / 10 forward passes": best["plain"] / best["forward"],
    }


def peak_memory() -> dict[str, float]:
    """Peak resident memory of a fresh process that takes M at 10,000 points of the conv decoder."""
    out = subprocess.run([sys.executable, __file__, "peak"], check=True, capture_output=True, text=True)
    return {"memory at 10,000 points: GB": float(out.stdout)}


def print_peak() -> None:
    torch.set_num_threads(1)
    z = torch.randn(10_000, LATENTS, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        pullbacks(conv_decoder(), z)
    status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory from before exec
    print(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**20)


def align_seconds(latents: int) -> float:
    """Jacobians, rotation, restarts and the check at unseen points, for 2,000 points of an MLP decoder."""
    decode, z = mlp_decoder(latents), torch.randn(2000, latents, generator=torch.Generator().manual_seed(0))
    return fastest({"align": lambda: align(decode, z, s2=0.01)}, 1)["align"]


def run() -> dict[str, Any]:
    torch.set_num_threads(1)
    with torch.no_grad():
        ratios = dto_speedup() | jacobian_cost() | peak_memory()
        ratios |= {f"align 2,000 points x {k} latents: seconds": align_seconds(k) for k in (10, 64)}
    how = (
        f"one thread; {MATRICES} Jacobians of {LATENTS} latents for the DtO; conv decoder (FC 256, four transposed "
        f"convolutions, 64x64) at {POINTS} points for the Jacobian; MLP decoder 256-256-784 for align; fastest round"
    )
    return {"ratios": ratios, "how": how, "threads": os.environ.get("OMP_NUM_THREADS", "all")}


if __name__ == "__main__" and sys.argv[1:] == ["peak"]:
    print_peak()
