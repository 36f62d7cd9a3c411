"""One member of every objective on tiny networks, to walk the whole registry at once."""

from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from unseam.axes import Pass, Terms
from unseam.models import Architecture, Autoencoder, Diagonal, Full
from unseam.objectives import OBJECTIVES, Context, Objective

SMALL = {
    "factor-vae": {"width": 16, "depth": 2},
    "ortho-vae": {"points": 3},
    "ima-vae": {"points": 3},
    "sparse-jacobian": {"points": 3},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, SMALL.get(name, {})) for name in OBJECTIVES} | {
    "beta-vae warm-up": ("beta-vae", {"schedule": "warm-up"}),
    "beta-tcvae stratified": ("beta-tcvae", {"estimator": "stratified", "alpha": 0.5, "gamma": 2.0}),
    "det-vae exact": ("det-vae", {"hessian": "exact"}),
    "sigma-vae optimal": ("sigma-vae", {"variance": "optimal"}),
    "info-vae imq": ("info-vae", {"kernel": "imq", "alpha": 0.5}),
}


class Member:
    """A model, its other players and what a step hands to the objective."""

    def __init__(
        self,
        variant: str,
        likelihood: str = "gaussian",
        n: int = 6,
        K: int = 3,
        B: int = 5,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        name, settings = VARIANTS[variant]
        kind = OBJECTIVES[name]
        self.objective: Objective = kind(**settings)
        architecture = Architecture(
            network="mlp",
            latents=K,
            encoder=(7,),
            decoder=(7,),
            encoder_activation="tanh",
            decoder_activation="tanh",
            likelihood="gaussian" if kind.learned_s2 else likelihood,  # type: ignore[arg-type]
            posterior=kind.posterior,
            learned_s2=kind.learned_s2,
        )
        self.model: Autoencoder = architecture.build((n,), seed).to(dtype)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            players = self.objective.players(self.model)
        self.modules: dict[str, nn.Module] = {p: player.module.to(dtype) for p, player in players.items()}
        g = torch.Generator().manual_seed(seed + 100)
        draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)  # noqa: E731
        self.x, self.second = torch.sigmoid(3 * draw(B, n)), torch.sigmoid(3 * draw(B, n))
        shapes = {"z": (B, K), **self.objective.noise_shapes(B, K)}
        self.noise = {name: draw(*shape) for name, shape in shapes.items()}
        if self.objective.pairing():  # all factors differ within a pair but one, as many factors as latents
            shared = torch.randint(K, (B,), generator=g)
            self.noise["changed"] = 1 - torch.nn.functional.one_hot(shared, K).to(dtype)

    def context(self, noise: dict[str, Tensor] | None = None, second: Tensor | None = None) -> Context:
        return Context(
            self.model, 3, 10, 50, self.modules, noise or self.noise, self.second if second is None else second
        )

    def terms(self, objective: Objective | None = None, pass_: Pass | None = None) -> dict[str, Terms]:
        context = self.context()
        if pass_ is None:
            posterior, z, theta = self.model(self.x, self.noise["z"])
            pass_ = Pass(self.x, posterior, z, theta)
        return {player: terms(pass_, context) for player, terms in (objective or self.objective).losses().items()}

    def as_tensors(self) -> dict[str, Tensor]:
        """The float settings as 0-d tensors, as inside a cohort."""
        floats = [f.name for f in fields(self.objective) if f.type in (float, "float")]  # type: ignore[arg-type]
        return {n: torch.tensor(float(getattr(self.objective, n)), dtype=self.x.dtype) for n in floats}

    def lifted(self, hyper: dict[str, Tensor]) -> Objective:
        return replace(self.objective, **hyper)  # type: ignore[type-var]


def extreme_posterior(member: Member, log_var: Tensor, mean: Tensor) -> Diagonal | Full:
    """A posterior with the log-variances asked for, of the family the objective uses."""
    if member.objective.posterior == "full":
        return Full(mean, 0.5 * log_var, torch.zeros(*mean.shape, mean.shape[1], dtype=mean.dtype))
    return Diagonal(mean, log_var)
