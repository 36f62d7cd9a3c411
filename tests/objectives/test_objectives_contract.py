"""What every objective must do, for all of them at once."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal, get_origin, get_type_hints

import pytest
import torch
from objective_cases import VARIANTS, Member, extreme_posterior
from torch.func import functional_call, stack_module_state, vmap

from unseam.axes import Pass
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES, Context, Objective, hyperparameters

DOCS = (Path(__file__).parents[2] / "docs" / "objectives.md").read_text()


def names_in_the_table(page: str) -> list[str]:
    return re.findall(r"^\| `([a-z0-9-]+)` \| .*\| .*\| .*\|$", page.split("## ")[0], re.MULTILINE)


def test_the_page_lists_every_objective_in_the_order_of_the_registry():
    assert names_in_the_table(DOCS) == list(OBJECTIVES)


def test_an_objective_may_have_a_digit_in_its_name():
    assert names_in_the_table("| `l1-vae` | a | b | c |\n| `vae` | a | b | c |\n") == ["l1-vae", "vae"]


def test_a_fixed_attribute_cannot_become_a_hyperparameter():
    with pytest.raises(TypeError, match=r"Mine.beta_is has an annotation, which would make it a parameter"):

        class Mine(Objective):
            beta_is: str = "beta"


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objective_describes_itself(name):
    kind = OBJECTIVES[name]
    assert kind.formula
    assert kind.paper
    assert kind.__doc__
    summary, _, rest = kind.__doc__.partition("\n\n")
    assert "\n" not in summary  # `unseam objectives` prints it as one line
    assert rest.split()[:2] == ["Examples", "--------"]
    assert set(kind.grid) <= set(hyperparameters(kind))
    kind().check()
    for setting, values in kind.grid.items():
        for value in values:
            kind(**{setting: float(value)}).check()


class Loss(torch.nn.Module):
    """All players as one module, so that functional_call can hand over one member's parameters."""

    def __init__(self, member):
        super().__init__()
        self.member, self.players = member, torch.nn.ModuleDict(member.modules)

    def forward(self, hyper, x, noise, second):
        m = self.member
        posterior, z, theta = m.model(x, noise["z"])
        context = Context(m.model, 3, 10, 50, m.modules, noise, second)
        losses = m.lifted(hyper).losses()
        return {p: t(Pass(x, posterior, z, theta), context).loss() for p, t in losses.items()}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_a_cohort_is_its_members(variant, likelihood):
    """vmap over three seeds, each with its own hyperparameters: losses and gradients are those of each alone."""
    members = [Member(variant, likelihood, seed=s) for s in range(3)]
    hypers = [{k: v * (1 + 0.1 * s) for k, v in m.as_tensors().items()} for s, m in enumerate(members)]
    losses = [Loss(m) for m in members]
    parameters, buffers = stack_module_state(losses)  # type: ignore[arg-type]
    data = [(h, m.x, m.noise, m.second) for h, m in zip(hypers, members, strict=True)]
    alone = [loss(*d) for loss, d in zip(losses, data, strict=True)]

    def one(p, b, *d):
        return functional_call(losses[0], (p, b), d)

    stacked = torch.utils._pytree.tree_map(lambda *leaves: torch.stack(leaves), *data)
    together = vmap(one)(parameters, buffers, *stacked)
    for player in alone[0]:
        torch.testing.assert_close(together[player], torch.stack([a[player] for a in alone]), rtol=1e-9, atol=1e-9)
    total = sum(t.sum() for t in together.values())
    sum(t for a in alone for t in a.values()).backward()
    gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
    for (name, p), gradient in zip(parameters.items(), gradients, strict=True):
        mine = torch.stack([_grad(loss.get_parameter(name)) for loss in losses])
        torch.testing.assert_close(torch.zeros_like(p) if gradient is None else gradient, mine, rtol=1e-7, atol=1e-8)


def _grad(parameter):
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_gradients_are_finite_differences(variant, likelihood, monkeypatch):
    """Along random directions, in double precision. What is detached counts as a constant, which is its meaning."""
    member, frozen, recording = Member(variant, likelihood), [], [True]
    detach = torch.Tensor.detach

    def detach_once(tensor):
        if recording[0]:
            frozen.append(detach(tensor).clone())  # a parameter is moved in place below
            return frozen[-1]
        frozen.append(frozen.pop(0))
        return frozen[-1]

    uses_detach = variant in ("qlae", "sigma-vae optimal", "factor-vae", "weak-gan", "tripod")
    for player, module in member.modules.items():
        frozen.clear()
        parameters = list(module.parameters())
        with monkeypatch.context() as patch:
            if uses_detach:
                patch.setattr(torch.Tensor, "detach", detach_once)
            recording[0] = True
            loss = member.terms()[player].loss()
            recording[0] = False
            gradient = torch.autograd.grad(loss, parameters, allow_unused=True)
            for seed in range(3):
                g = torch.Generator().manual_seed(seed)
                direction = [torch.randn(p.shape, generator=g, dtype=p.dtype) for p in parameters]
                slope = sum((d * v).sum() for d, v in zip(gradient, direction, strict=True) if d is not None)
                up, down = (_moved(member, player, parameters, direction, h) for h in (1e-6, -1e-6))
                torch.testing.assert_close(slope, (up - down) / 2e-6, rtol=2e-6, atol=1e-6)


def _moved(member, player, parameters, direction, h):
    with torch.no_grad():
        for p, v in zip(parameters, direction, strict=True):
            p.add_(h * v)
        value = member.terms()[player].loss()
        for p, v in zip(parameters, direction, strict=True):
            p.sub_(h * v)
    return value


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_extreme_variances_and_inputs_stay_finite(variant, likelihood):
    """log-variances from -30 to 20, mixed within a batch, x exactly 0 or 1, in single precision."""
    member = Member(variant, likelihood, K=4, B=6, dtype=torch.float32)
    mean = torch.linspace(-3, 3, 24).reshape(6, 4).requires_grad_()
    log_var = torch.linspace(-30, 20, 24).reshape(6, 4).requires_grad_()
    x = (member.x > 0.5).float()
    member.second = 1 - x
    if member.objective.posterior in ("point", "quantised", "rounded"):
        posterior = member.model.encode(x)
    else:
        posterior = extreme_posterior(member, log_var, mean)
    z = posterior.sample(member.noise["z"])
    for player, terms in member.terms(pass_=Pass(x, posterior, z, member.model.decode(z))).items():
        leaves = [*member.modules[player].parameters(), mean, log_var]
        gradients = torch.autograd.grad(terms.loss(), leaves, allow_unused=True, retain_graph=True)
        assert all(torch.isfinite(value).all() for value in terms.values.values()), player
        assert all(torch.isfinite(g).all() for g in gradients if g is not None), player


@pytest.mark.parametrize("name", OBJECTIVES)
def test_check_refuses_what_makes_no_sense(name):
    objective = OBJECTIVES[name]()
    hints = get_type_hints(type(objective))
    for f in fields(objective):
        if hints[f.name] is float:
            for bad in (-1.0, float("nan"), float("inf")) + (() if f.name in objective.may_be_zero else (0.0,)):
                with pytest.raises(BadInput, match=f.name):
                    replace(objective, **{f.name: bad}).check()
        if get_origin(hints[f.name]) is Literal:
            with pytest.raises(BadInput, match="Known"):
                replace(objective, **{f.name: "nonsense"}).check()


@pytest.mark.parametrize("variant", VARIANTS)
def test_terms_are_per_sample_or_of_the_batch(variant):
    member = Member(variant)
    for player, terms in member.terms().items():
        assert terms.values, player
        assert {tuple(v.shape) for v in terms.values.values()} <= {(), (len(member.x),), (3,)}, player  # 3: `points`


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kl_has_the_weight_that_is_said(variant):
    """kl_weight() is the weight of the KL among the terms; None without one, or if another term prices variance too."""
    member = Member(variant)
    said, terms = member.objective.kl_weight(), member.terms()["model"]
    if said is None and (beside := {"slow-vae": "transition"}.get(variant)):
        log_var = torch.zeros(len(member.x), 3, dtype=torch.float64, requires_grad=True)
        posterior = extreme_posterior(member, log_var, torch.zeros_like(log_var))
        z = posterior.sample(member.noise["z"])
        found = member.terms(pass_=Pass(member.x, posterior, z, member.model.decode(z)))["model"]
        assert terms.weights[beside] > 0
        assert (torch.autograd.grad(found.values[beside].sum(), log_var)[0].abs() > 0.1).all()
        return
    if said is None:
        assert "kl" not in terms.values or terms.weights.get("kl") == 0
        return
    parts = ("kl",) if terms.weights.get("kl", 1.0) else ("mutual_information", "tc", "dimension_kl")
    strength = VARIANTS[variant][1].get("schedule", "constant")
    share = 1.0 if strength == "constant" else 0.6  # step 3 of 10, a warm-up of half the run
    felt = [float(terms.weights.get(p, 1.0)) for p in parts if p != "tc"]  # tc: what no single posterior sees
    assert felt == pytest.approx([said * share] * len(felt))


# hfs draws its points by their place in the batch; which they are does not matter when all are asked (its own test)
@pytest.mark.parametrize("name", [n for n, kind in OBJECTIVES.items() if kind.smallest_batch > 1 and n != "hfs"])
def test_batch_statistics_do_not_depend_on_the_order_of_the_batch(name):
    """Permuting x and its noise together permutes nothing that is averaged (the critic's second batch stays).

    Partners move with their images. PCL's random partner is the neighbour's, so there the order may only be turned.
    """
    member = Member(name)
    before = member.terms()["model"].loss()
    order = torch.arange(5).roll(2) if name == "pcl" else torch.tensor([3, 0, 4, 1, 2])
    member.x, member.noise["z"] = member.x[order], member.noise["z"][order]
    for directions in {"signs", "normal"} & set(member.noise):  # (R, B, K)
        member.noise[directions] = member.noise[directions][:, order]
    if member.objective.pairing():
        member.second = member.second[order]
    torch.testing.assert_close(member.terms()["model"].loss(), before)
