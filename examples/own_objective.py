"""Your own objective, without touching the package: a frozen dataclass with one `__call__`, passed to `unseam.fit`.

Run it with: python examples/own_objective.py

    loss = -E_q log p(x|z) + beta KL(q(z|x) || p(z)) + gamma E sum_k |e_k(x)|        few latents speak at a time

Float fields are hyperparameters: a list of values sweeps them, each member of the cohort with its own.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import unseam
from unseam.axes import Pass, Terms
from unseam.objectives import Context, Objective


@dataclass(frozen=True)
class SparseVAE(Objective):
    """beta-VAE with a price on every unit of code."""

    gamma: float = 1.0
    """price of a unit of |e_k(x)|"""
    beta: float = 1.0
    """weight of the KL"""

    formula: ClassVar[str] = "-E_q log p(x|z) + beta KL(q(z|x) || p(z)) + gamma E sum_k |e_k(x)|"
    paper: ClassVar[str] = "this script"
    beta_is: ClassVar[str] = "beta"  # the weight of the KL, which a diagnosis needs; left out, it is estimated

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        terms = {
            "reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta),  # (B,)
            "kl": pass_.posterior.kl(),  # (B,)
            "l1": pass_.posterior.mean.abs().sum(1),  # (B,)
        }
        return Terms(terms, {"kl": self.beta, "l1": self.gamma})


def main(out: Path, steps: int = 2000) -> "unseam.train.Run":
    """Three prices, two seeds each, as one cohort; prints what the price does to the code."""
    data = unseam.load_data("sprites", size=16, shapes=1, scales=1, orientations=1)
    run = unseam.fit(
        data, SparseVAE, gamma=[0.01, 1.0, 20.0], seeds=[0, 1], steps=steps, latents=4, network="mlp", encoder=(64,),
        decoder=(64,), out=out,
    )  # fmt: skip
    log = run.log()
    last = log[(log["step"] == log["step"].max()) & (log["name"] == "l1")].set_index("member")["value"]
    table = run.table().assign(l1=last)
    print(table[["seed", "gamma", "loss", "reconstruction", "kl", "l1", "active"]].to_string(index=False))
    return run


if __name__ == "__main__":
    main(Path(tempfile.mkdtemp()) / "run")
