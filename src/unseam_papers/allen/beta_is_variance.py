"""A7: Allen 2024, Theorem 3: a beta-VAE with variance s2 is a VAE with variance beta s2.

    loss(beta, s2) = beta [ loss(1, beta s2) ] + const

So an optimiser that does not see the loss's scale (Adam with eps = 0) takes the same steps on both, and plain gradient
descent does when its learning rate is adjusted: lr for the beta-VAE, beta lr for the VAE. A Bernoulli at beta = 1/kappa
is a Binomial of kappa trials: its log p(kappa x|z) = kappa log p(x|z) + const is kappa repeated observations. For any
likelihood the best posterior is q ~ p(x|z)^(1/beta) p(z), where the bound is beta log int p(x|z)^(1/beta) p(z) dz.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Binomial
from torch.nn import functional

from unseam.data import load_data
from unseam.models import Diagonal
from unseam.rng import generator
from unseam.run import Run
from unseam_papers.allen.setups import LARGER, mlp
from unseam_papers.frame.draw import BLUE, DARK, GREEN, GREY, ORANGE, RED, Figure, panels, ticks
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import control, identity

ID, TITLE = "A7", "A beta-VAE is a VAE with a wider likelihood"
CLAIM = "A beta-VAE with Var[x|z] = s2 is the same as a VAE with Var[x|z] = beta s2 and an adjusted learning rate."
SOURCE = "Allen 2024, Theorem 3 and section 3.3"
PAPER = LARGER
_S2, _LR, SGD_LR = 0.005, 1e-3, 1e-4
_SAME = 1e-9  # relative difference of weights below which two trajectories are the same; double precision has 2e-16
_TRAINING = {"latents": 2, "precision": "float64", "workers": 1, **mlp(20, 20)}  # a dead ReLU makes Adam divide 0/0
KAPPAS = (2, 5, 20)  # trials of the Binomial; beta = 1 / kappa
TEMPERATURES = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)  # t / beta
_PAIRS: dict[str, tuple[dict[str, Any], bool, bool, str]] = {
    # what is compared: (settings, is the learning rate adjusted?, is s2 scaled?, colour)
    "Adam, eps = 0": ({"lr": _LR, "eps": 0.0}, False, True, BLUE),
    "SGD, learning rate adjusted": ({"optimiser": "sgd", "lr": SGD_LR}, True, True, GREEN),
    "SGD, same learning rate": ({"optimiser": "sgd", "lr": SGD_LR}, False, True, ORANGE),
    "Adam, eps = 1e-3": ({"lr": _LR, "eps": 1e-3}, False, True, GREY),
    "Adam, eps = 0, s2 not scaled": ({"lr": _LR, "eps": 0.0}, False, False, RED),
}
_EQUAL = tuple(_PAIRS)[:2]  # the theorem; the others are controls
RULES = {
    "theorem": "equivalent to a VAE with Var[x|z] = beta s2 and adjusted learning rate",
    "binomial": "Bernoulli at beta = 1/kappa against a Binomial(kappa) at beta = 1: weights at the end",
    "repeated": "as though each observation were made kappa times",
    "tempered": "best t of q ~ p(x|z)^(1/t) p(z), and how far its beta-ELBO is from beta log int p(x|z)^(1/beta) p(z)",
    "best": "maximised if q(z|x) ~ p(x|z)^(1/beta) p(z)",
}
CHOICES = (
    "Data and model: Synth. Non-Lin. (10,000 points), networks 20-20 tanh, 2 latents, s2 = 0.005, float64.",
    "What the same means: weights within 1e-9 of their size at every snapshot, over all betas and seeds.",
    "Our first betas and s2 left collapsed models and an SGD control that diverged; the values here were taken then.",
    "The Binomial pair: x is the mean of kappa Bernoulli draws with probabilities sigmoid(3 x') of 500 points x' of "
    "Synth. Non-Lin.; one hidden layer of 20 tanh units each way, Adam with eps = 0, the same batches and noise.",
    "The best posterior: both sides by the trapezium rule on a grid over |z_i| < 6, with the trained decoders.",
)


@dataclass(frozen=True)
class Settings:
    """Trajectories of this many steps, looked at at every snapshot."""

    betas: tuple[float, ...]
    seeds: int
    steps: int
    snapshots: int
    size: int = 10_000
    grid: int = 401  # points a side of the quadrature


SCALES = {
    "tiny": Settings(betas=(0.25, 4.0), seeds=1, steps=10, snapshots=2, size=500, grid=101),
    "quick": Settings(betas=(0.1, 0.5, 4.0), seeds=2, steps=1500, snapshots=15),
    "paper": Settings(betas=(0.03, 0.1, 0.5, 2.0, 4.0, 16.0), seeds=5, steps=20_000, snapshots=40, size=50_000),
}


def compute(settings: Settings, work: Work) -> Numbers:
    return {
        "steps": steps_of(settings),
        "betas": list(settings.betas),
        "pairs": work.each(_PAIRS, lambda name: _differences(name, settings, work)),
        "binomial": work.once("binomial", lambda: [binomial(kappa, settings.steps) for kappa in KAPPAS]),
        "tempered": work.once("tempered", lambda: temperatures(settings, work)),
    }


def steps_of(settings: Settings) -> list[int]:
    return [round(settings.steps * (i + 1) / settings.snapshots) for i in range(settings.snapshots)]


def _differences(name: str, settings: Settings, work: Work) -> list[list[float]]:  # (beta, snapshot)
    """The largest relative difference of the weights over the seeds, for each beta and snapshot."""
    same, adjusted, scaled, _ = _PAIRS[name]
    one = trajectories(work, settings, "beta-vae", beta=list(settings.betas), s2=_S2, **same)
    out = []
    for number, beta in enumerate(settings.betas):
        own = {**same, "lr": same["lr"] * (beta if adjusted else 1)}
        two = trajectories(work, settings, "vae", s2=beta * _S2 if scaled else _S2, **own)
        first = number * settings.seeds  # of the beta-VAE: betas x seeds, the seeds run fastest
        pairs = [(first + m, m) for m in range(settings.seeds)]
        apart = [[difference(one, a, two, b, step) for step in steps_of(settings)] for a, b in pairs]
        out.append(np.max(apart, axis=0).tolist())
    return out


def trajectories(work: Work, settings: Settings, objective: str, **more: Any) -> Run:
    size = {"seeds": list(range(settings.seeds)), "steps": settings.steps, "snapshots": settings.snapshots}
    return work.train(
        "synth-nonlinear", objective, data_parameters={"size": settings.size}, **_TRAINING, **size, **more
    )


def difference(one: Run, a: int, two: Run, b: int, step: int) -> float:
    """|w - w'| / |w| over all weights of two members at one step; 1 where one of them diverged before."""
    if not {step} <= {*one.snapshots()} & {*two.snapshots()}:
        return 1.0
    first, second = one.weights(a, step), two.weights(b, step)
    return _relative([first[name] for name in first], [second[name] for name in first])


def _relative(one: Any, two: Any) -> float:
    """|a - b| / |a| over lists of tensors."""
    pairs = list(zip(one, two, strict=True))
    apart = sum(float((a - b).square().sum()) for a, b in pairs)
    return float((apart / sum(float(a.square().sum()) for a, _ in pairs)) ** 0.5)


def binomial(kappa: int, steps: int) -> dict[str, float]:
    """Three trainings from one start: Bernoulli at beta = 1/kappa, Binomial(kappa), and Bernoulli at beta = 1."""
    draw = generator(0, "A7", kappa)
    data = load_data("synth-nonlinear", size=500)
    p = torch.sigmoid(3 * data.batch(torch.arange(500)).double())
    x = torch.bernoulli(p.expand(kappa, *p.shape), generator=draw).mean(0)
    sides = ((x.shape[1], 4), (2, x.shape[1]))
    bodies = [nn.Sequential(nn.Linear(a, 20), nn.Tanh(), nn.Linear(20, b)) for a, b in sides]
    for weight in (w for body in bodies for w in body.parameters()):
        nn.init.normal_(weight, std=0.3, generator=draw)
    noise = torch.randn(steps, 500, 2, generator=draw, dtype=torch.float64)

    def bernoulli(beta: float) -> Any:
        return lambda theta, kl: (functional.softplus(theta) - x * theta).sum(1) + beta * kl

    def many(theta: Tensor, kl: Tensor) -> Tensor:
        return kl - Binomial(kappa, logits=theta).log_prob((kappa * x).round()).sum(1)

    plain, trials, ordinary = (
        _descend(bodies, loss, x, noise) for loss in (bernoulli(1 / kappa), many, bernoulli(1.0))
    )
    return {"kappa": kappa, "same": _relative(plain, trials), "beta 1": _relative(ordinary, trials)}


def _descend(bodies: list[nn.Sequential], loss: Any, x: Tensor, noise: Tensor) -> list[Tensor]:
    """The weights after Adam with eps = 0, one step a draw of the noise, full batches."""
    encode, decode = (deepcopy(body).double() for body in bodies)
    weights = [*encode.parameters(), *decode.parameters()]
    optimiser = torch.optim.Adam(weights, lr=_LR, eps=0.0)
    for one in noise:
        q = Diagonal(*encode(x).chunk(2, 1))
        optimiser.zero_grad()
        loss(decode(q.sample(one)), q.kl()).mean().backward()
        optimiser.step()
    return [w.detach() for w in weights]


def temperatures(settings: Settings, work: Work) -> list[dict[str, Any]]:
    """For each beta: what the bound loses at q ~ p(x|z)^(1/t) p(z), t around beta, and how far it is from its limit."""
    same = _PAIRS[_EQUAL[0]][0]
    run = trajectories(work, settings, "beta-vae", beta=list(settings.betas), s2=_S2, **same)
    x = run.data.batch(run.held_out()[:8]).double()
    models = [run.model(m).double() for m in range(0, len(run.members), settings.seeds)]  # the first seed of each beta
    pairs = zip(settings.betas, models, strict=True)
    return [{"beta": beta, **tempered(model, x, beta, settings.grid)} for beta, model in pairs]


@torch.no_grad()
def tempered(model: Any, x: Tensor, beta: float, side: int) -> dict[str, Any]:
    """E_q log p(x|z) - beta KL(q || p(z)) at q ~ p(x|z)^(1/t) p(z) over t, by quadrature, in nats."""
    line = torch.linspace(-6, 6, side, dtype=torch.float64)
    theta = model.decode(torch.cartesian_prod(line, line))
    prior = torch.log_softmax(-0.5 * torch.cartesian_prod(line, line).square().sum(1), 0)  # masses of the cells
    bounds = []
    for one in x:
        log_p = model.likelihood.log_prob(one.expand_as(theta), theta)
        log_q = [torch.log_softmax(log_p / (beta * t) + prior, 0) for t in TEMPERATURES]
        limit = beta * torch.logsumexp(log_p / beta + prior, 0)
        bounds.append([float((q.exp() * (log_p - beta * (q - prior))).sum() - limit) for q in log_q])
    return {"short": (-np.mean(bounds, 0) / beta).tolist(), "best": np.argmax(bounds, 1).tolist()}  # units of beta


def judge(numbers: Numbers) -> list[VerdictRow]:
    rows = [trajectory(name, np.array(paths)) for name, paths in numbers["pairs"].items()]
    many, cold, one = numbers["binomial"], numbers["tempered"], TEMPERATURES.index(1.0)
    same, other = max(m["same"] for m in many), min(m["beta 1"] for m in many)
    note = f"kappa {', '.join(map(str, KAPPAS))}; against a Bernoulli at beta = 1: {other:.2g} or more"
    apart, at = max(abs(c["short"][one]) for c in cold), {t for c in cold for t in c["best"]}
    ours = f"t = {' or '.join(f'{TEMPERATURES[t]:g}' for t in sorted(at))} beta; {apart:.1g} beta"
    loss = f"t = 2 beta loses {np.mean([c['short'][TEMPERATURES.index(2.0)] for c in cold]):.2g} beta"
    good, rule, says = at == {one} and apart < 1e-9, "t = beta, and below 1e-9 beta", RULES["repeated"]
    return [
        *rows,
        identity("binomial", RULES["binomial"], f"{same:.2g}", same < _SAME, f"below {_SAME:g}", note, says),
        identity("tempered", RULES["tempered"], ours, good, rule, loss, RULES["best"]),
    ]


def trajectory(name: str, paths: np.ndarray) -> VerdictRow:  # (beta, snapshot)
    """The theorem's pairs must not differ; the others must."""
    largest, end, what = paths.max(), paths[:, -1].min(), f"{name}: largest relative difference of the weights"
    if name in _EQUAL:
        return identity(name, what, f"{largest:.2g}", largest < _SAME, f"below {_SAME:g}", published=RULES["theorem"])
    ours, rule = f"{largest:.2g}; at the end {end:.2g} or more", f"above {1e4 * _SAME:g}: the theorem does not cover it"
    return control(name, what, ours, bool(end > 1e4 * _SAME), rule)


def draw(numbers: Numbers) -> Figure:
    """The difference of the weights over training, one line a beta; what a wrong temperature loses."""
    fig, (ax, cold) = panels(10.5, columns=2, width_ratios=(2.4, 1))
    steps = numbers["steps"]
    ends = {name: np.log10(np.maximum(paths, 1e-18))[:, -1].mean() for name, paths in numbers["pairs"].items()}
    place = np.inf
    for name in sorted(ends, key=lambda name: -ends[name]):
        colour, place = _PAIRS[name][3], min(ends[name], place - 1.1)  # labels a little more than a decade apart
        for path in numbers["pairs"][name]:
            ax.plot(steps, np.maximum(path, 1e-18), color=colour, lw=1.2)
        ax.text(steps[-1] * 1.01, 10**place, name, color=colour, va="center", fontsize=8)
    ax.axhline(2.2e-16, color=DARK, lw=0.8, ls="--")
    ax.text(0, 3e-16, "double precision", fontsize=8, va="bottom")
    ax.set(yscale="log", ylim=(1e-18, 10), xlabel="training step", ylabel="relative difference of the weights")
    ax.set_title("beta-VAE(s2) against VAE(beta s2), betas " + ", ".join(f"{b:g}" for b in numbers["betas"]))
    ax.set_xlim(0, steps[-1] * 1.36)
    for number, cell in enumerate(numbers["tempered"]):
        shade = (BLUE, GREEN, ORANGE, GREY, RED, DARK)[number % 6]
        cold.plot(TEMPERATURES, cell["short"], "o-", ms=4, color=shade, label=f"beta = {cell['beta']:g}")
    cold.set(xscale="log", xlabel="temperature t / beta", ylabel="beta-ELBO lost, / beta")
    cold.set_title("q ~ p(x|z)^(1/t) p(z)")
    ticks(cold, (0.25, 0.5, 1, 2, 4), ("1/4", "1/2", "1", "2", "4"))
    cold.legend()
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    worst = {name: np.max(paths) for name, paths in numbers["pairs"].items()}
    same = [name for name in _EQUAL if worst[name] < _SAME]
    return (
        f"{len(same)} of {len(_EQUAL)} pairs that the theorem calls equal go through the same weights from start to "
        f"end, to {max(worst[name] for name in _EQUAL):.1g} of their size over betas {min(numbers['betas']):g} to "
        f"{max(numbers['betas']):g}; a Bernoulli at beta = 1/kappa ends {rows['binomial'].ours} from a Binomial of "
        "kappa trials. These are identities of objectives, not of every training: an optimiser that sees the scale of "
        f"the loss tells the two apart (SGD at the same learning rate: {worst['SGD, same learning rate']:.2g}; Adam "
        f"with eps = 1e-3: {worst['Adam, eps = 1e-3']:.2g}), and so does a variance that is not scaled "
        f"({worst['Adam, eps = 0, s2 not scaled']:.2g}). The best posterior over all densities has temperature beta: "
        f"{rows['tempered'].ours}."
    )
