"""Do seeds agree on what is true? Sparse autoencoders of data whose features are known, matched with each other.

Data as in benchmarks of sparse autoencoders: sparse sums of more features than dimensions, frequencies that fall as a
power of the rank (Zipf), and children that are active only with their parent. Three TopK autoencoders with different
seeds are trained on each kind of data. `match` sees the seeds only; the truth is used to check what it said.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

LONG = True  # about three minutes of processor time
SEEDS = 3
AT = 0.7  # cosine from which on a direction is a true feature, or another seed's


@dataclass(frozen=True)
class World:
    """Data, and the autoencoder that is trained on them."""

    features: int = 256
    n: int = 64
    zipf: float = 0.0  # frequency of the feature of rank r is in proportion to r^-zipf
    active: float = 5.0  # features that are active in a row, on average, before the hierarchy
    children: float = 0.0  # share of the features that are active only with their parent
    latents: int = 256
    steps: int = 1500


WORLDS = {
    "fewer features than dimensions": World(features=48, latents=48, active=3),
    "4 features for each dimension": World(),
    "the same, Zipf frequencies": World(zipf=1.0),
    "the same, Zipf and hierarchy": World(zipf=1.0, children=0.5),
    "half as many latents as features": World(zipf=1.0, children=0.5, latents=128),
    "twice as many latents as features": World(zipf=1.0, children=0.5, latents=512),
    "8 features for each dimension": World(features=512, latents=512, zipf=1.0, children=0.5),
    "stopped after 150 steps": World(zipf=1.0, children=0.5, steps=150),
    "not trained": World(zipf=1.0, children=0.5, steps=0),
}


class Truth:
    """Directions, frequencies and parents; `draw` makes rows."""

    def __init__(self, world: World, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.directions = rng.normal(size=(world.features, world.n))
        self.directions /= np.linalg.norm(self.directions, axis=1, keepdims=True)
        frequency = np.arange(1, world.features + 1) ** -world.zipf
        self.frequency = np.minimum(0.5, world.active * frequency / frequency.sum())
        order = rng.permutation(world.features)
        born = int(world.children * world.features)
        self.child, roots = order[:born], order[born:]
        self.parent = rng.choice(roots, born, p=self.frequency[roots] / self.frequency[roots].sum())
        self.given_parent = np.minimum(0.5, self.frequency[self.child] / self.frequency[self.parent])

    def draw(self, rows: int, rng: np.random.Generator) -> np.ndarray:  # (rows, n)
        on = rng.random((rows, len(self.directions))) < self.frequency
        if len(self.child):
            on[:, self.child] = on[:, self.parent] & (rng.random((rows, len(self.child))) < self.given_parent)
        size = np.maximum(0.2, rng.normal(1.0, 0.25, size=on.shape))
        return (on * size) @ self.directions


def train(truth: Truth, world: World, seed: int, batch: int = 256) -> tuple[np.ndarray, float]:
    """Decoder (latents, n) of a TopK autoencoder, and the share of the variance that it explains on new rows."""
    import torch

    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 1])
    decoder = torch.nn.functional.normalize(torch.randn(world.latents, world.n), dim=1).requires_grad_()
    encoder = decoder.detach().clone().requires_grad_()
    bias, mean = torch.zeros(world.latents, requires_grad=True), torch.zeros(world.n, requires_grad=True)
    optimiser = torch.optim.Adam([decoder, encoder, bias, mean], lr=3e-3)
    k = round(world.active)
    pool = torch.tensor(np.concatenate([truth.draw(2000, rng) for _ in range(20 if world.steps else 1)])).float()

    def reconstruct(x: torch.Tensor) -> torch.Tensor:
        z = torch.relu((x - mean) @ encoder.T + bias)
        top = z.topk(k, dim=1)
        return torch.zeros_like(z).scatter(1, top.indices, top.values) @ decoder + mean

    for step in range(world.steps):
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * min(1.0, 2 * (1 - step / world.steps))
        x = pool[torch.randint(len(pool), (batch,))]
        loss = (x - reconstruct(x)).square().sum(dim=1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            decoder /= decoder.norm(dim=1, keepdim=True).clamp_min(1e-8)
    with torch.no_grad():
        x = torch.tensor(truth.draw(4000, np.random.default_rng(99)), dtype=torch.float32)
        rest = (x - reconstruct(x)).square().sum() / (x - x.mean(dim=0)).square().sum()
    return decoder.detach().numpy(), 1 - float(rest)


def measure(world: World, seed: int = 0) -> dict[str, float | None]:
    """What the seeds say, and what the truth says of it."""
    import unseam

    truth = Truth(world, seed)
    trained = [train(truth, world, s) for s in range(SEEDS)]
    seeds = [decoder for decoder, _ in trained]
    found = unseam.match(*seeds, signed=True, at=AT, show=False)
    pair = found.pairs[0]
    with_truth = unseam.match(truth.directions, *seeds, signed=True, at=AT, show=False)
    recovered = np.mean([p.values >= AT for p in with_truth.pairs if p.one == 0])
    true = unseam.match(seeds[0], truth.directions, signed=True, at=AT, show=False).pairs[0].values >= AT
    often = np.argsort(-truth.frequency)[: world.features // 4]
    agreement = np.mean([p.values for p in found.pairs if p.one == 0], axis=0)
    return {
        "explained": float(np.mean([share for _, share in trained])),
        "recovered": float(recovered),
        "recovered_frequent": float(np.mean([p.values[often] >= AT for p in with_truth.pairs if p.one == 0])),
        "true": float(true.mean()),
        "stable": float(found.stable.mean()),
        "stable_that_are_true": float(true[found.stable].mean()) if found.stable.any() else None,
        "others_that_are_true": float(true[~found.stable].mean()) if not found.stable.all() else None,
        "ranking": _area(agreement, true),
        "top_100": pair.to_json(AT)["coverage"]["top"]["100"],
        "all": pair.to_json(AT)["coverage"]["top"]["all"],
        "hard_chance": pair.hard_chance,
    }


def _area(score: np.ndarray, positive: np.ndarray) -> float | None:
    """How often a true direction has the larger score than one that is not; None where there is one kind only."""
    if positive.all() or not positive.any():
        return None
    difference = score[positive][:, None] - score[~positive]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def table(found: dict[str, dict]) -> str:
    """For docs/match.md."""
    names = {
        "explained": "variance explained", "recovered": "features recovered", "true": "directions that are true",
        "stable": "directions that are stable", "stable_that_are_true": "stable ones that are true",
        "others_that_are_true": "others that are true", "ranking": "true ranked above false",
    }  # fmt: skip
    lines = ["| data and autoencoder | " + " | ".join(names.values()) + " |", "| --- |" + " ---: |" * len(names)]
    for name, row in found.items():
        cells = ["-" if row[key] is None else f"{row[key]:.0%}".replace("%", " %") for key in names]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run(steps: int | None = None, **options: Any) -> dict:
    """All worlds; `out` is a folder for match-truth.json."""
    began, found = time.process_time(), {}
    for name, world in WORLDS.items():
        found[name] = measure(replace(world, steps=steps if steps is not None else world.steps))
        print(name, json.dumps(found[name]), flush=True) if options.get("verbose") else None
    rows = [row for row in found.values() if row["true"] is not None]
    correlation = float(np.corrcoef([r["stable"] for r in rows], [r["true"] for r in rows])[0, 1])
    if options.get("out"):
        Path(options["out"]).mkdir(parents=True, exist_ok=True)
        (Path(options["out"]) / "match-truth.json").write_text(json.dumps(found, indent=1) + "\n")
    return {
        "ratios": {"match-truth correlation of stable and true shares": correlation},
        "how": f"{SEEDS} seeds on each of {len(found)} kinds of data; {time.process_time() - began:.0f} s of CPU",
        "text": table(found),
        **found,
    }


if __name__ == "__main__":
    done = run(verbose=True)
    print(done["text"], done["how"], done["ratios"], sep="\n")
    Path("benchmarks/results/match-truth.json").write_text(
        json.dumps({name: done[name] for name in WORLDS}, indent=1) + "\n"
    )
