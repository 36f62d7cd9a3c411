"""The robustness radius against eigenvectors, random search and symmetry."""

import json
import math
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from unseam.cli import main
from unseam.data.wrap import fold
from unseam.errors import BadInput
from unseam.models.likelihood import LIKELIHOODS, Bernoulli
from unseam.models.mixed_likelihood import Mixed
from unseam.perturb.retrain import confirm
from unseam.perturb.stress import SLOPE, Break, Stress, as_rows, break_pair, rounded, stress, stress_run, turn_of
from unseam.runs.represent import represent, some
from unseam.train import fit

room, confirm_room = import_module("unseam.perturb.stress"), import_module("unseam.perturb.retrain")


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
    rows = some(torch.arange(100), confirm_room._ROWS)
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


def curved(kind, dtype=torch.float32):
    """A decoder of four latents and 23 values, and 300 codes."""
    draw = torch.Generator().manual_seed(7)
    A, B, C = (torch.randn(*shape, generator=draw).to(dtype) for shape in ((4, 23), (4, 16), (16, 23)))
    codes = (torch.randn(300, 4, generator=draw) * torch.tensor([1.0, 2.0, 0.5, 1.0])).to(dtype)
    return (lambda z: z @ A) if kind == "linear" else (lambda z: torch.tanh(z @ B) @ C), codes


@pytest.mark.parametrize("kind", ["linear", "curved"])
def test_gaussian_radii_follow_from_the_mean_jacobian_and_the_mean_metric(kind):
    """E[J] and E[J^T J] / s2 by autograd, row by row and in double precision; a Gaussian folds nothing."""
    s2, eps = 0.37, 0.1
    decoder, codes = curved(kind, torch.float64)
    J = (torch.func.vmap(torch.func.jacrev(decoder))(codes) * codes.std(0)).numpy()  # (300, 23, 4)
    c, M, W = J.mean(0), np.einsum("bnk,bnl->kl", J, J) / 300 / s2, np.full(23, 1 / s2)
    found = stress(*curved(kind), s2=s2, eps=eps)
    assert len(found.breaks) == 6
    for b in found.breaks:
        i, j = b.pair
        truth = c[:, i], c[:, j], M[np.ix_(b.pair, b.pair)], W
        assert b.radius == pytest.approx(break_pair(*truth)[0] / SLOPE, rel=1e-3)
        assert b.turn == pytest.approx(room.turn_by(*truth, eps * SLOPE), abs=0.2)  # known to a tenth of a degree
        a, e = np.array(b.mix), b.radius * SLOPE
        across = np.outer(a, b.image @ c[:, b.pair]) * e / s2
        moved = truth[2] + across + across.T + np.outer(a, a) * e**2 * (b.image**2).sum() / s2
        assert abs((turn_of(moved) - turn_of(truth[2]) + 90) % 180 - 90) == pytest.approx(15, abs=0.1)
    noisy = stress(*curved(kind), s2=s2, data=torch.rand(300, 23), noise=torch.ones(4))
    assert [b.radius for b in noisy.breaks] == pytest.approx([b.radius for b in found.breaks], rel=1e-5)


def middle(v, n=12, K=2, seed=0):
    """Bernoulli pixels of variance v, moved a little by K latents: logits that hardly leave their place."""
    m = (1 - math.sqrt(1 - 4 * v)) / 2
    draw = torch.Generator().manual_seed(seed)
    A = torch.randn(K, n, generator=draw) * torch.linspace(3, 1, K)[:, None] * 1e-3
    return lambda z: math.log(m / (1 - m)) + z @ A / v, A, torch.randn(500, K, generator=draw)


@pytest.mark.parametrize("v", [0.1, 0.2, 0.24])
@pytest.mark.parametrize("seed", range(3))
def test_bernoulli_pixels_of_one_variance_are_gaussian_ones(v, seed):
    """Where no value comes near 0 or 1, W = 1/v: the radius of a Gaussian with s2 = v and the same columns."""
    decoder, A, codes = middle(v, seed=seed)
    gaussian = stress(lambda z: z @ A, codes, s2=v)
    bernoulli = stress(decoder, codes, "bernoulli")
    assert bernoulli.radius < 0.01
    assert bernoulli.radius == pytest.approx(gaussian.radius, rel=0.01)
    ours, theirs = (b.breaks[0].image * b.breaks[0].mix[0] for b in (bernoulli, gaussian))  # -u with -a is the same
    assert np.array_equal(np.sign(ours), np.sign(theirs))


def with_sure(count, logit=-16.0):
    """Pixels that two latents move, and pixels that nothing moves and of which the decoder is sure."""
    decoder, _, codes = middle(0.2)
    return lambda z: torch.cat([100 * (decoder(z) - decoder(0 * z)), torch.full((len(z), count), logit)], 1), codes


def test_sure_pixels_do_not_take_the_radius_to_nothing():
    """With W = 1/v a single pixel of logit -16 would make it a hundred times smaller."""
    few, many = (stress(*with_sure(count), "bernoulli").radius for count in (1, 30))
    alone = stress(*with_sure(0), "bernoulli").radius
    assert alone > few > 0.8 * alone
    assert few > many > 0.01
    surer = stress(*with_sure(30, -30.0), "bernoulli").radius
    assert surer == pytest.approx(many, rel=1e-3)


def test_a_bernoulli_radius_ignores_order_signs_and_units():
    decoder, codes = with_sure(30)
    one = stress(decoder, codes, "bernoulli").breaks[0]
    order = torch.randperm(42, generator=torch.Generator().manual_seed(1))
    moved = stress(lambda z: decoder(z)[:, order], codes, "bernoulli").breaks[0]
    assert moved.radius == pytest.approx(one.radius, rel=1e-5)
    swapped = stress(lambda z: decoder(z.flip(1)), codes.flip(1), "bernoulli").breaks[0]
    assert swapped.radius == pytest.approx(one.radius, rel=1e-2)  # mixtures are tried a degree apart
    negative = stress(lambda z: -decoder(z), codes, "bernoulli").breaks[0]  # 0 and 1 have changed places
    assert negative.radius == pytest.approx(one.radius, rel=1e-5)
    larger = stress(lambda z: decoder(z / 5), 5 * codes, "bernoulli", noise=np.full(2, 0.5)).breaks[0]
    assert larger.radius == pytest.approx(stress(decoder, codes, "bernoulli", noise=np.full(2, 0.1)).radius, rel=1e-5)


def turn_with(columns, folded, noise, e, b, u):
    """The turn that a change e makes, from the same statistics, written out pixel by pixel; |u| is 0 or 1."""
    c_i, c_j, M, W = columns
    on = np.abs(u)
    k = rounded(np.array([(math.cos(b) * noise[0]) ** 2 + (math.sin(b) * noise[1]) ** 2]))[0]
    square = e**2 * (on * (W - folded.even + k * folded.even)).sum()
    a, across = (math.cos(b), math.sin(b)), [e * (u * W * c).sum() for c in (c_i, c_j)]
    off = M[0, 1] + (on * folded.ij).sum() + a[0] * across[1] + a[1] * across[0] + a[0] * a[1] * square
    apart = M[0, 0] - M[1, 1] + (on * folded.difference).sum()
    apart += 2 * (a[0] * across[0] - a[1] * across[1]) + (a[0] ** 2 - a[1] ** 2) * square
    return abs((math.degrees(0.5 * math.atan2(2 * off, apart)) - turn_of(M) + 90) % 180 - 90)


@pytest.mark.parametrize("seed", range(4))
def test_no_smaller_bernoulli_change_does_it(seed):
    """At r(e) the axes have turned by just 15 degrees, and nothing smaller does that with the weights of e."""
    draw = torch.Generator().manual_seed(seed)
    A, bias = torch.randn(2, 8, generator=draw) * torch.tensor([[1.5], [1.0]]), -6 * torch.rand(8, generator=draw)
    codes, noise = torch.randn(300, 2, generator=draw), np.array([0.3, 0.1])
    e = stress(lambda z: z @ A + bias, codes, "bernoulli", noise=noise * codes.std(0).numpy()).radius * SLOPE
    found = room.mean_columns(lambda z: z @ A + bias, codes, Bernoulli(), (e,)).scaled(codes.std(0).numpy())
    pair, folded = found.pair(0, 1, 0), found.folded(0, 1, 0, e, noise)
    assert folded.even.any()
    r, b, u = break_pair(*pair, 15.0, folded)
    assert r == pytest.approx(e, rel=0.02)  # the radius is where r(e) = e, found on a grid of changes
    assert turn_with(pair, folded, noise, r, b, u) == pytest.approx(15, abs=1e-4)
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        u = rng.choice([-1.0, 0.0, 1.0], 8, p=[0.45, 0.1, 0.45])
        assert turn_with(pair, folded, noise, 0.98 * r, rng.uniform(0, 2 * math.pi), u) < 15.0


@pytest.mark.parametrize("count", [0, 5, 30])
def test_the_grid_of_changes_is_fine_enough_and_crossed_once(count):
    """A grid eight times finer finds the same radius, and r(e) <= e from there on."""
    decoder, codes = with_sure(count)
    fine = tuple(np.geomspace(1e-4, 0.39, 256))
    columns = room.mean_columns(decoder, codes, Bernoulli(), fine).scaled(codes.std(0).double().numpy())
    r = [
        break_pair(*columns.pair(0, 1, k), 15.0, columns.folded(0, 1, k, e, np.full(2, 0.2)))[0]
        for k, e in enumerate(fine)
    ]
    below = np.array(r) <= fine
    first = int(below.argmax())
    assert below[first:].all()
    found = stress(decoder, codes, "bernoulli", noise=0.2 * codes.std(0))
    assert found.radius * SLOPE == pytest.approx(fine[first], rel=0.04)


def test_folded_values_move_as_the_formulas_say():
    """x is 0 or 1 with mean m; x' = fold(x + e t), by simulation: its mean, its variance, the slope that is kept."""
    rng, e, m = np.random.default_rng(0), 0.1, 0.2
    t = rng.normal(size=400_000)
    d = e * np.abs(t)
    np.testing.assert_allclose(fold(torch.as_tensor(e * t)), d, atol=1e-12)  # x = 0
    np.testing.assert_allclose(fold(torch.as_tensor(1 + e * t)), 1 - d, atol=1e-12)
    mean = m * (1 - d) + (1 - m) * d
    theta = torch.tensor([[math.log(m / (1 - m))]])
    told = Bernoulli().moved(theta, torch.tensor([[[e]]]), torch.zeros(1, 1))
    assert 1 / float(told.weight) == pytest.approx((mean * (1 - mean)).mean(), rel=1e-3)
    assert float(told.squared_slope) == pytest.approx(((1 - 2 * d) ** 2).mean(), rel=1e-3)
    assert float(told.square) == pytest.approx((1 - 2 * m) ** 2)
    assert float(told.odd) == 0
    inside = Bernoulli().moved(theta, torch.tensor([[[e]]]), torch.full((1, 1), 0.2))
    assert [float(part) for part in inside] == pytest.approx([1 / (m * (1 - m)), 1, 1, 1])


@pytest.mark.parametrize("n", [0.05, 0.2, 0.5, 1.0])
def test_noise_rounds_the_kink_off(n):
    """Against quadrature of E[T'^2 / T] with T itself by quadrature; more noise, larger radius."""

    def T(t):
        return quad(lambda s: abs(t + n * s) * norm.pdf(s), -9, 9, points=[-t / n] if t < 9 * n else None)[0]

    def part(t):
        return 2 * norm.pdf(t) * (2 * norm.cdf(t / n) - 1) ** 2 / T(t)

    truth = math.sqrt(2 / math.pi) * (quad(part, 0, n)[0] + quad(part, n, 8)[0])
    assert float(rounded(np.array([n**2]))[0]) == pytest.approx(truth, rel=1e-3)
    decoder, codes = with_sure(30)
    less, more = (stress(decoder, codes, "bernoulli", noise=np.full(2, s)).radius for s in (n / 2, n))
    assert less < more


def test_the_data_says_what_is_folded():
    """Of pixels in the middle, binary data folds every change, which leaves no linear term: a larger radius."""
    decoder, _, codes = middle(0.2)
    grey = stress(decoder, codes, "bernoulli")
    same = stress(decoder, codes, "bernoulli", data=torch.sigmoid(decoder(codes)))
    binary = stress(decoder, codes, "bernoulli", data=torch.bernoulli(torch.sigmoid(decoder(codes)).nan_to_num()))
    assert same.radius == grey.radius
    assert binary.radius > 1.5 * grey.radius
    with pytest.raises(BadInput, match="data has 3 rows and codes 500"):
        stress(decoder, codes, "bernoulli", data=torch.zeros(3, 12))


def test_equal_axes_turn_at_once():
    codes = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert stress(lambda z: z, codes).radius == 0


ALL = {**LIKELIHOODS, "mixed": lambda: Mixed(("gaussian:2", "bernoulli:2"))}


@pytest.mark.parametrize("name", ALL)
def test_every_likelihood_has_a_radius_or_says_why_not(name):
    decoder, codes = lambda z: z @ torch.tensor([[3.0, 0, 1, 0], [0, 1.0, 0, 1]]) / 3, torch.randn(50, 2)
    if name in ("bernoulli", "gaussian"):
        assert 0.001 < stress(decoder, codes, ALL[name]()).radius < 5
        return
    with pytest.raises(BadInput, match=f"likelihood='{name}': counts and classes.*bernoulli, gaussian can"):
        stress(decoder, codes, ALL[name]())


def test_a_run_of_counts_is_refused_in_one_line(tmp_path, capsys):
    x = np.random.default_rng(0).poisson(3.0, size=(60, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    run = fit(tmp_path / "x.npy", likelihood="poisson", steps=2, network="linear", latents=2, workers=1, show=False,
              out=tmp_path / "run")  # fmt: skip
    assert main(["stress", str(run.folder)]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "bernoulli, gaussian can" in said[0]


def test_the_verb_says_what_a_bernoulli_radius_is(tmp_path, capsys, monkeypatch):
    """On images of sure pixels it printed a radius of a millionth. Data and posterior reach the formula."""
    given = []
    monkeypatch.setattr(room, "stress", lambda *args, **told: given.append(told) or stress(*args, **told))
    said = SimpleNamespace(latents=[SimpleNamespace(active=True)] * 2)
    monkeypatch.setattr(room, "diagnose", lambda *_, **__: {0: said})
    for likelihood in ("bernoulli", "gaussian"):
        run = fit("sprites", steps=2, network="mlp", encoder=(4,), decoder=(4,), latents=2, workers=1, show=False,
                  likelihood=likelihood, out=tmp_path / likelihood,
                  data_parameters={"size": 8, "orientations": 1, "xs": 4, "ys": 4})  # fmt: skip
        assert main(["stress", str(run.folder), "--points", "10", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert bool(told["caveat"]) == (likelihood == "bernoulli")
        assert given[-1]["data"].shape[1:] == (1, 8, 8)
        assert (given[-1]["noise"] > 0.1).all()


def test_where_seeds_do_not_agree_nothing_is_confirmed(tmp_path, capsys, monkeypatch):
    run = fit("synth-linear", steps=2, network="linear", latents=2, workers=1, show=False, out=tmp_path / "run",
              data_parameters={"size": 100})  # fmt: skip
    said = SimpleNamespace(latents=[SimpleNamespace(active=True)] * 2)
    monkeypatch.setattr(room, "diagnose", lambda *_, **__: {0: said})
    for unchanged in (2.0, 40.0):
        told = confirm_room.Confirmed(0.1, [30.0], [1.0, unchanged])
        monkeypatch.setattr(confirm_room, "confirm", lambda *_, told=told, **__: told)
        assert main(["stress", str(run.folder), "--confirm"]) == 0
        assert ("seeds do not agree" in capsys.readouterr().out) == (unchanged > 15)
