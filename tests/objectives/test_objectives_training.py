"""Every objective through the training room: it learns, a cohort is its members, resuming changes nothing."""

import math

import pytest
import torch

from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES, hyperparameters
from unseam.run.checkpoint import load_checkpoint
from unseam.train import Interrupted, fit, resume, step_by_step

SPRITES = {"size": 16, "shapes": 1, "scales": 1, "orientations": 4, "xs": 8, "ys": 8}
TINY = {"network": "mlp", "encoder": (24,), "decoder": (24,), "latents": 3, "batch": 32, "show": False, "workers": 1}
SETTINGS = {
    "factor-vae": {"width": 32, "depth": 2},
    "annealed-vae": {"c_max": 4.0},
    "info-vae": {"lam": 50.0},
    "qlae": {"levels": 5},
    "tripod": {"decoder_activation": "tanh"},  # ReLU has no second derivatives, only kinks
}


def train(name, out, data="sprites", **settings):
    options = {"data_parameters": SPRITES} if data == "sprites" else {}
    return fit(data, name, out=out, **options, **{**TINY, **SETTINGS.get(name, {}), **settings})


def weights(run):
    """Every player's parameters, members first."""
    tensors = {}
    for path in sorted((run.folder / "checkpoints").glob("group-*.safetensors")):
        for name, value in load_checkpoint(path)[0].items():
            tensors.setdefault(name, []).append(value)
    return {name: torch.cat(parts) for name, parts in tensors.items() if not name.startswith("optimiser/")}


@pytest.mark.parametrize("name", [n for n in OBJECTIVES if n not in ("pcl", "weak-gan")])  # those that reconstruct
def test_it_learns(name, tmp_path):
    """On small sprites, on held-out samples and its own loss, against the same weights untrained."""
    untrained = train(name, tmp_path / "untrained", steps=1, lr=1e-12)
    trained = train(name, tmp_path / "trained", steps=120, lr=3e-3)
    before, after = (run.table().loc[0] for run in (untrained, trained))
    assert after["status"] == "finished"
    assert after["loss"] < before["loss"]
    assert after["reconstruction"] < before["reconstruction"]
    assert math.isfinite(after["loss"])


def test_pcl_learns_to_tell_pairs(tmp_path):
    untrained = train("pcl", tmp_path / "untrained", steps=1, lr=1e-12)
    trained = train("pcl", tmp_path / "trained", steps=120, lr=3e-3, log_every=1)
    before, after = (run.table().loc[0] for run in (untrained, trained))
    assert after["loss"] < before["loss"]
    right = trained.log().query("name == 'correct'")["value"]
    assert right[-20:].mean() > max(0.6, right[:5].mean())


def test_the_encoder_of_a_weak_gan_finds_the_codes_of_what_is_generated(tmp_path):
    """A game's losses need not fall, but -log q(z|G(z)) must, and q must find z on images it has not seen."""
    run = train("weak-gan", tmp_path / "run", steps=300, lr=3e-3, log_every=1)
    surprise = run.log().query("name == 'encoder'")["value"]
    assert surprise[-20:].mean() < surprise[:5].mean()
    assert run.table()["status"].tolist() == ["finished"]
    z, model = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)), run.model(0)
    with torch.no_grad():
        found = model.encode(model.likelihood.mean(model.decode(z))).mean
    rho = torch.corrcoef(torch.cat([z, found], 1).T)[:3, 3:].diagonal()
    assert rho.min() > 0.8


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_cohort_is_its_members_and_resuming_changes_nothing(name, tmp_path, monkeypatch):
    """Two seeds x two strengths, stopped and resumed: bit for bit the uninterrupted run; and each member alone."""
    common = {"steps": 6, "precision": "float64", "how": "stacked", "seeds": [0, 1]}
    swept = {strength: [1.5, 3.0] for strength in list(hyperparameters(OBJECTIVES[name]))[:1]}
    whole = train(name, tmp_path / "whole", **common, **swept)

    with monkeypatch.context() as patch:
        patch.setattr(step_by_step, "update", _stop_after(4, step_by_step.update))
        with pytest.raises(Interrupted):
            train(name, tmp_path / "stopped", checkpoint_steps=3, **common, **swept)
    resumed = resume(tmp_path / "stopped", show=False)
    expected = weights(whole)
    for key, value in weights(resumed).items():
        assert torch.equal(value, expected[key]), key

    last = {k: v[-1] for k, v in swept.items()}
    alone = train(name, tmp_path / "alone", **{**common, "seeds": [1]}, **last)
    for key, value in weights(alone).items():
        torch.testing.assert_close(value[0], expected[key][-1], rtol=1e-6, atol=1e-8, msg=key)


def _stop_after(steps, update):
    done = []

    def stopping(*args, **kwargs):
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(1)
        return update(*args, **kwargs)

    return stopping


def test_theorem_3_beta_is_a_scale_of_the_variance(tmp_path):
    """loss(beta, s2)/beta = loss(1, beta s2) + const, so Adam with eps = 0 walks the same path from the same seed."""
    beta = math.exp(-1.5)  # log s2 is exact in single precision, in which a model keeps it
    common = {
        "data": "synth-linear",
        "steps": 60,
        "precision": "float64",
        "eps": 0.0,
        "encoder_activation": "tanh",
        "decoder_activation": "tanh",
        "snapshots": 3,
    }
    left = train("beta-vae", tmp_path / "left", beta=beta, s2=1.0, **common)
    right = train("beta-vae", tmp_path / "right", beta=1.0, s2=beta, **common)
    other = train("beta-vae", tmp_path / "other", beta=1.0, s2=1.0, **common)
    for step in left.snapshots():
        ours, theirs = left.model(0, step).state_dict(), right.model(0, step).state_dict()
        for key, value in ours.items():
            torch.testing.assert_close(value, theirs[key], rtol=1e-6, atol=1e-7, msg=f"{key} at {step}")
    moved = [(left.model(0).state_dict()[k] - v).abs().max() for k, v in other.model(0).state_dict().items()]
    assert max(moved) > 1e-2  # the paths could have differed


def test_annealed_vae_holds_the_kl_at_the_capacity(tmp_path):
    run = train(
        "annealed-vae", tmp_path / "run", c_max=[2.0, 4.0], ramp=0.5, gamma=100.0, steps=500, lr=3e-3, log_every=5
    )
    log = run.log().pivot_table(index=["member", "step"], columns="name", values="value")
    for member, c_max in enumerate((2.0, 4.0)):
        rows = log.loc[member]
        late = rows[rows.index > 300]
        assert (late["capacity"] == c_max).all()
        assert abs(late["kl"].mean() - c_max) < 0.1 * c_max
        rising = rows[(rows.index > 100) & (rows.index < 240)]
        assert abs(rising["kl"] - rising["capacity"]).mean() < 0.15 * c_max


def test_a_schedule_is_followed(tmp_path):
    run = train("beta-vae", tmp_path / "run", beta=8.0, schedule="warm-up", steps=20, log_every=1)
    log = run.log().pivot_table(index="step", columns="name", values="value")
    beta = (log["loss"] - log["reconstruction"]) / log["kl"]
    assert beta[0] == pytest.approx(0, abs=1e-3)
    assert beta[5] == pytest.approx(4, rel=1e-2)
    assert beta[15] == pytest.approx(8, rel=1e-2)


def test_a_run_knows_the_weight_of_its_kl(tmp_path):
    """beta of beta-TCVAE weighs the total correlation: it is not the beta of the Sigma law."""
    assert train("beta-tcvae", tmp_path / "tc", beta=6.0, steps=1).beta(0) == 1
    assert train("beta-vae", tmp_path / "beta", beta=6.0, steps=1).beta(0) == 6


def test_quantised_codes_are_what_a_trained_model_returns(tmp_path):
    run = train("qlae", tmp_path / "run", steps=50, lr=3e-3, weight_decay=0.1)
    with torch.no_grad():
        codes = run.model(0).encode(run.data.batch(torch.arange(len(run.data)))).mean
    assert all(len(codes[:, k].unique()) <= 5 for k in range(3))


@pytest.mark.parametrize(
    ("objective", "settings", "message"),
    [
        ("beta-va", {}, "did you mean 'beta-vae'"),
        ("beta-vae", {"bta": 3.0}, "did you mean 'beta'"),
        ("beta-vae", {"beta": 0.0}, "must be positive"),
        ("beta-vae", {"beta": [1.0, -2.0]}, "beta=-2.0"),
        ("beta-vae", {"beta": float("nan")}, "beta=nan"),
        ("beta-tcvae", {"estimator": "stratifed"}, "did you mean 'stratified'"),
        ("ortho-vae", {"points": 0}, "points=0"),
        ("info-vae", {"alpha": 2.0}, "alpha=2.0"),
        ("sigma-vae", {"likelihood": "bernoulli"}, "Gaussian likelihood"),
        ("qlae", {"levels": 1}, "levels=1"),
        *[(name, {"batch": 1}, "batch=1") for name, kind in OBJECTIVES.items() if kind.smallest_batch > 1],
    ],
)
def test_bad_input_is_refused_before_training(objective, settings, message, tmp_path):
    with pytest.raises(BadInput, match=message) as error:
        train(objective, tmp_path / "run", **settings)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_bernoulli_on_data_outside_0_1_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"\[0, 1\]"):
        train("beta-vae", tmp_path / "run", data="synth-linear", likelihood="bernoulli")
