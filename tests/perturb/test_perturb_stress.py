"""The robustness radius against eigenvectors, random search and symmetry."""

import json
import math
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unseam.cli import main
from unseam.errors import BadInput
from unseam.perturb.confirm import confirm
from unseam.perturb.stress import SLOPE, Break, Stress, as_rows, break_pair, stress, stress_run, turn_of
from unseam.runs.represent import represent, some
from unseam.train import fit

room, confirm_room = import_module("unseam.perturb.stress"), import_module("unseam.perturb.confirm")


def plane(seed, n=8):
    rng = np.random.default_rng(seed)
    J = np.linalg.qr(rng.normal(size=(n, 2)))[0] * [3.0, rng.uniform(0.5, 2.5)]
    return J @ np.array([[1, 0.1 * seed / 10], [0, 1]]), rng.uniform(0.5, 2, n)


def turned_by(J, W, e, b, u):
    moved = J + e * np.outer(u, [math.cos(b), math.sin(b)])
    before, after = (turn_of(x.T @ (W[:, None] * x)) for x in (J, moved))
    return abs((after - before + 90) % 180 - 90)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("degrees", [5.0, 15.0, 30.0])
def test_at_the_radius_the_axes_have_turned_by_just_that(seed, degrees):
    J, W = plane(seed)
    e, b, u = break_pair(J[:, 0], J[:, 1], J.T @ (W[:, None] * J), W, degrees)
    assert turned_by(J, W, e, b, u) == pytest.approx(degrees, abs=1e-6)
    assert turned_by(J, W, 0.9 * e, b, u) < degrees


@pytest.mark.parametrize("seed", range(4))
def test_no_smaller_change_does_it(seed):
    """Random pictures, corners and mixtures just inside the radius never turn the axes as far."""
    J, W = plane(seed)
    e = break_pair(J[:, 0], J[:, 1], J.T @ (W[:, None] * J), W)[0]
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        u = rng.choice([-1.0, 1.0], 8) if rng.random() < 0.5 else rng.uniform(-1, 1, 8)
        assert turned_by(J, W, 0.995 * e, rng.uniform(0, 2 * math.pi), u) < 15.0


def test_closer_singular_values_break_sooner_and_equal_ones_at_once():
    draw = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    draw = draw / draw.std(0)
    radii = [stress(lambda z, r=r: z * torch.tensor([r, 1.0]), draw).radius for r in (1.05, 1.2, 1.5, 3.0)]
    assert radii == sorted(radii)
    assert radii[0] < 0.1 * radii[-1]


def test_the_radius_has_the_unit_of_the_data_and_ignores_that_of_the_codes():
    draw = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    one = stress(lambda z: z * torch.tensor([2.0, 1.0]), draw).radius
    assert stress(lambda z: 10 * z * torch.tensor([2.0, 1.0]), draw).radius == pytest.approx(10 * one, rel=1e-5)
    assert stress(lambda z: z / 5 * torch.tensor([2.0, 1.0]), 5 * draw).radius == pytest.approx(one, rel=1e-5)


def test_only_latents_in_use_are_asked():
    draw = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    found = stress(lambda z: z * torch.tensor([2.0, 1.0, 1e-3]), draw, latents=(0, 1))
    assert [b.pair for b in found.breaks] == [(0, 1)]
    assert stress(lambda z: z, draw, latents=(0,)).radius == math.inf


def test_data_changed_by_the_radius_turns_the_axes_of_what_is_fitted_to_it():
    """x' = x + eps u tanh(a . z), by simulation: the linear map from z to x' prefers axes turned by 15 degrees."""
    z = np.random.default_rng(0).normal(size=(200_000, 2))
    z = (z - z.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(z.T))).T
    J = np.array([[2.0, 0.3], [0.5, 1.0], [0.0, 0.7]])
    broken = stress(lambda t: t @ torch.tensor(J.T, dtype=torch.float32), z[:500] / z[:500].std(0, ddof=1)).breaks[0]
    moved = z @ J.T + broken.radius * np.outer(np.tanh(z @ broken.mix), broken.image)
    fitted = np.linalg.lstsq(z, moved, rcond=None)[0].T
    assert abs(turn_of(fitted.T @ fitted) - turn_of(J.T @ J)) == pytest.approx(15, abs=0.3)


def test_passive_latents_of_a_run_have_no_axes(tmp_path, monkeypatch):
    run = fit("synth-linear", steps=2, network="linear", latents=3, workers=1, show=False, out=tmp_path / "run",
              data_parameters={"size": 100})  # fmt: skip
    said = SimpleNamespace(latents=[SimpleNamespace(active=active) for active in (True, False, True)])
    monkeypatch.setattr(room, "diagnose", lambda *_, **__: {0: said})
    assert [found.pair for found in stress_run(run)[0].breaks] == [(0, 2)]


def test_confirm_trains_on_what_it_says(tmp_path, monkeypatch):
    """ "changed" is the data moved by twice the radius along the weakest pair, "unchanged" the data."""
    run = fit("synth-linear", steps=2, network="linear", latents=2, workers=1, show=False, out=tmp_path / "run",
              data_parameters={"size": 100})  # fmt: skip
    weakest = Break((0, 1), 0.25, (0.6, 0.8), np.array([1.0, -1.0, 1.0]))
    given = {}

    def again(run, member, x, seeds, folder, show):
        given[folder.name] = x
        return run

    monkeypatch.setattr(confirm_room, "train_again", again)
    told = confirm_room.confirm(run, 0, Stress((weakest,), 1.0, 15.0), seeds=(0,))
    rows = some(torch.arange(100), confirm_room.ROWS)
    z = confirm_room.scaled(represent(run.model(0), run.data, rows).codes)
    assert told.eps == 0.5
    assert torch.equal(given["unchanged"], run.data.batch(rows))
    change = 0.5 * np.outer(np.tanh(z @ [0.6, 0.8]), [1, -1, 1])
    np.testing.assert_allclose(given["changed-0.5"] - given["unchanged"], change, atol=1e-5)


def test_a_change_of_the_radius_turns_by_the_degrees_it_was_asked_for():
    draw = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    decoder = lambda z: z * torch.tensor([3.0, 2.0, 1.0])  # noqa: E731
    for degrees in (5.0, 30.0):
        eps = stress(decoder, draw, degrees=degrees).radius
        found = stress(decoder, draw, eps=eps)
        assert max(b.turn for b in found.breaks) == pytest.approx(degrees, abs=0.1)
        assert as_rows(found)[0]["turn"] == found.breaks[0].turn
    assert stress(decoder, draw, eps=100.0).breaks[0].turn == 45.0
    assert "turn" not in as_rows(stress(decoder, draw))[0]
    with pytest.raises(BadInput, match="eps=0"):
        stress(decoder, draw, eps=0.0)


def test_the_slope_is_that_of_tanh():
    t = np.linspace(-10, 10, 20_001)
    density = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
    assert np.trapezoid((1 - np.tanh(t) ** 2) * density, t) == pytest.approx(SLOPE, abs=1e-4)


def test_models_trained_again_turn_on_changed_data_and_not_without(tmp_path):
    """Two columns of lengths 3 and 1, a third unused; what was trained for one eps is not taken for another."""
    w = np.random.default_rng(0).normal(size=(600, 2))
    np.save(tmp_path / "x.npy", np.pad((w - w.mean(0)) / w.std(0) * [3.0, 1.0], ((0, 0), (0, 1))).astype(np.float32))
    settings = {"network": "linear", "latents": 2, "s2": 0.5, "beta": 1.0, "steps": 800, "lr": 1e-2, "batch": 200}
    run = fit(tmp_path / "x.npy", out=tmp_path / "run", scale="none", workers=1, show=False, **settings)
    found = stress_run(run, show=False)[0]
    told = confirm(run, 0, found, seeds=(0,), show=False)
    assert told.eps == pytest.approx(2 * found.radius)
    assert told.changed[0] > 15 > 5 > told.unchanged[0]
    small = confirm(run, 0, found, seeds=(0,), show=False, eps=found.radius / 100)
    assert small.unchanged == told.unchanged
    assert small.changed[0] < 5
    assert confirm(run, 0, found, seeds=(0,), show=False) == told


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="degrees=60"):
        stress(lambda z: z, torch.randn(10, 2), degrees=60)
    with pytest.raises(BadInput, match="at least 2 latents"):
        stress(lambda z: z, torch.randn(10, 1))


def test_the_verb_says_what_a_bernoulli_radius_is_not(tmp_path, capsys):
    """On images of sure pixels it printed a radius of a millionth, as if the axes were that weak."""
    for likelihood in ("bernoulli", "gaussian"):
        run = fit("sprites", steps=2, network="mlp", encoder=(4,), decoder=(4,), latents=2, workers=1, show=False,
                  likelihood=likelihood, out=tmp_path / likelihood,
                  data_parameters={"size": 8, "orientations": 1, "xs": 4, "ys": 4})  # fmt: skip
        assert main(["stress", str(run.folder), "--points", "10", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["caveat"]
        assert bool(told) == (likelihood == "bernoulli")
