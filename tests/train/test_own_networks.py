"""`fit(networks=)`: the user's own encoder and decoder, checked, trained, stored as weights, loaded again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import unseam
from unseam.errors import BadInput
from unseam.objectives.elbo import BetaVAE
from unseam.run import Run, load_run
from unseam.runs.align import align
from unseam.runs.aligned_run import write_aligned_run
from unseam.train import fit, resume, step_by_step

X = np.random.default_rng(0).normal(size=(200, 2)) @ np.array([[2.0, 0, 1, 0], [0, 1.0, 0, 1]]) + 0.1
X = (X + 0.05 * np.random.default_rng(1).normal(size=X.shape)).astype(np.float32)
PIXELS = (1 / (1 + np.exp(-X))).astype(np.float32).reshape(200, 2, 2)


class Encoder(nn.Module):
    """A constant of its own and one weight that does not learn."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("random", torch.randn(4))
        self.frozen = nn.Parameter(torch.tensor([1.0, 2.0, 0.5, 1.5]), requires_grad=False)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.net(x.flatten(1) * self.frozen + self.random).chunk(2, 1)
        return mean, log_variance


def make() -> tuple[nn.Module, nn.Module]:
    return Encoder(), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))


def train(out: Path, **settings: Any) -> Run:
    return fit(X, out=out, show=False, **{"networks": make, "steps": 30, "batch": 16, "log_every": 10, **settings})


def test_networks_train_and_a_member_is_the_same_alone(tmp_path: Path) -> None:
    both = train(tmp_path / "both", seeds=[0, 1], beta=[0.1, 0.2], steps=200, lr=0.02, s2=0.05)
    alone = train(tmp_path / "alone", seeds=[1], beta=0.2, steps=200, lr=0.02, s2=0.05)
    for a, b in zip(both.model(3).state_dict().values(), alone.model(0).state_dict().values(), strict=True):
        assert torch.equal(a, b)
    log = both.log()
    losses = log[(log["member"] == 0) & (log["name"] == "held-out/loss")].sort_values("step")["value"].to_list()
    assert losses[-1] < losses[0] / 2
    assert both.config.architecture.latents == 2
    assert not torch.equal(both.model(0).encoder.network.random, both.model(1).encoder.network.random)
    torch.testing.assert_close(both.model(0).encoder.network.frozen, torch.tensor([1.0, 2.0, 0.5, 1.5]))


def test_a_run_loads_with_the_networks_again(tmp_path: Path) -> None:
    run = train(tmp_path / "run")
    codes = run.encode(X[:5])
    kinds = {path.suffix for path in run.folder.rglob("*") if path.is_file()}
    assert kinds <= {".json", ".safetensors", ".npy", ".sqlite", ".sqlite-shm", ".sqlite-wal"}
    with pytest.raises(BadInput, match=r"cannot be imported; pass them.*Encoder and Sequential.*load_run\(folder, net"):
        stranger(run.folder).model(0)
    assert np.array_equal(load_run(run.folder, networks=make).encode(X[:5]), codes)
    assert np.array_equal(load_run(run.folder, networks=make()).encode(X[:5]), codes)  # its buffer is stored too
    other = (make()[0], nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 4)))
    with pytest.raises(
        BadInput, match=r"do not fit this run: decoder.* has shape \(2,\) in them and \(8,\) in the run"
    ):
        load_run(run.folder, networks=other).model(0)


def stranger(folder: Path) -> Run:
    """The run as another program opens it, in which the function cannot be imported."""
    document = json.loads((folder / "config.json").read_text())
    document["networks"]["function"] = ""
    (folder / "config.json").write_text(json.dumps(document))
    return load_run(folder)


def test_a_function_of_a_module_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_networks_of_test.py").write_text(
        "from torch import nn\n\ndef make():\n    return nn.Linear(4, 4), nn.Linear(2, 4)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_networks_of_test  # type: ignore[import-not-found]

    run = train(tmp_path / "run", networks=my_networks_of_test.make, seeds=[0, 1], workers=2)
    assert run.config.networks is not None
    assert run.config.networks.function == "my_networks_of_test:make"
    assert np.array_equal(load_run(run.folder).encode(X[:5], 1), run.encode(X[:5], 1))
    (run.folder / "config.json").write_text((run.folder / "config.json").read_text().replace("_of_test", "_elsewhere"))
    with pytest.raises(BadInput, match=r"made by my_networks_elsewhere:make, which cannot be imported"):
        load_run(run.folder).model(0)


def test_resumed_is_uninterrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train(tmp_path / "whole", patience=20, log_every=5)
    real, count = step_by_step.update, iter(range(100))

    def dies(*args: Any) -> None:
        if next(count) == 13:
            raise RuntimeError("power cut")
        real(*args)

    monkeypatch.setattr(step_by_step, "update", dies)
    with pytest.raises(RuntimeError, match="power cut"):
        train(tmp_path / "cut", checkpoint_steps=5, patience=20, log_every=5)
    monkeypatch.undo()
    again = resume(tmp_path / "cut", networks=make)
    for a, b in zip(whole.model(0).state_dict().values(), again.model(0).state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_modules_start_from_their_weights_and_stay_as_they_are(tmp_path: Path) -> None:
    pair = make()
    before = [p.clone() for p in pair[1].parameters()]
    run = train(tmp_path / "run", networks=pair, steps=1, lr=1e-12)
    for a, b, c in zip(pair[1].parameters(), before, run.model(0).decoder.parameters(), strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(b, c)
    with pytest.raises(BadInput, match="same for all 2 seeds; give a function"):
        train(tmp_path / "two", networks=pair, seeds=[0, 1])


def test_an_aligned_run_of_own_networks_is_the_same_model(tmp_path: Path) -> None:
    run = train(tmp_path / "run", steps=300, s2=0.05, beta=0.5)
    turned = write_aligned_run(tmp_path / "turned", run, {0: align(run, 0, points=100)[0]})
    np.testing.assert_allclose(turned.reconstruct(X), run.reconstruct(X), atol=1e-4)


@pytest.mark.parametrize("objective", ["ae", "beta-vae-sigma", "factor-vae", "beta-tcvae"])
def test_other_objectives_take_them(tmp_path: Path, objective: str) -> None:
    width = {"ae": 2, "beta-vae-sigma": 5}.get(objective, 4)
    networks = lambda: (nn.Linear(4, width), nn.Linear(2, 4))  # noqa: E731
    run = fit(X, objective, networks=networks, steps=3, out=tmp_path / "run", show=False)
    assert run.encode(X[:3]).shape == (3, 2)


class Both(nn.Module):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer, self.weight = answer, nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Any:
        return self.answer(x.flatten(1) * self.weight)


TIED = nn.Linear(4, 4)


@pytest.mark.parametrize(
    ("networks", "words"),
    [
        (nn.Linear(4, 4), "networks is Linear; give"),
        ((nn.Linear(4, 4),), "networks gives a tuple of 1"),
        (lambda: nn.Linear(4, 4), "networks gives Linear"),
        ((TIED, nn.Sequential(nn.Linear(2, 4), TIED)), "share one parameter"),
        ((nn.LazyLinear(4), nn.Linear(2, 4)), "lazy layer has no weights yet"),
        ((nn.Linear(4, 5), nn.Linear(2, 4)), "returns 5 numbers for each observation; a diagonal posterior"),
        ((nn.Linear(3, 4), nn.Linear(2, 4)), r"encoder fails on an input of shape \(4, 4\)"),
        ((nn.Linear(4, 4), nn.Linear(3, 4)), r"decoder fails on an input of shape \(4, 2\)"),
        ((nn.Linear(4, 4), nn.Linear(2, 5)), r"decoder turns codes \(4, 2\) into \(4, 5\); the data needs \(4, 4\)"),
        ((nn.Linear(4, 4), Both(lambda z: (z, z))), "the decoder returns a tuple of 2"),
        ((Both(lambda x: {"mu": x}), nn.Linear(2, 4)), "the encoder returns dict"),
        ((nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4)), nn.Linear(2, 4)), "encoder changes its buffer '0.running"),
        ((nn.Linear(4, 4), nn.Sequential(nn.Linear(2, 4), nn.Dropout())), "decoder gives two answers to one input"),
        ((Both(lambda x: x - x.mean(0)), nn.Linear(2, 4)), "encoder mixes the rows of a batch"),
    ],
)  # fmt: skip
def test_networks_that_do_not_fit_are_one_line(tmp_path: Path, networks: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        train(tmp_path / "run", networks=networks)
    assert not (tmp_path / "run").exists()


def test_a_sigmoid_before_a_bernoulli_is_refused(tmp_path: Path) -> None:
    encoder, decoder = nn.Sequential(nn.Flatten(), nn.Linear(4, 4)), nn.Sequential(nn.Linear(2, 4), nn.Sigmoid())
    with pytest.raises(BadInput, match="must return logits"):
        fit(PIXELS, networks=(encoder, decoder), steps=2, out=tmp_path / "run")
    fit(PIXELS, networks=(encoder, decoder), likelihood="gaussian", steps=2, out=tmp_path / "run", show=False)


def test_own_without_networks_and_other_latents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="network='own' needs fit"):
        fit(X, network="own", out=tmp_path / "run")
    with pytest.raises(BadInput, match="latents=7, but the encoder of networks has 2"):
        train(tmp_path / "run", latents=7)
    ours = fit(X, network="linear", latents=2, steps=2, out=tmp_path / "ours", show=False)
    with pytest.raises(BadInput, match="with the networks of unseam"):
        load_run(ours.folder, networks=make)


class Detached(BetaVAE):
    def __call__(self, pass_: Any, context: Any) -> Any:
        return super().__call__(pass_._replace(theta=pass_.theta.detach() + 0 * pass_.theta), context)


class Random(BetaVAE):
    def __call__(self, pass_: Any, context: Any) -> Any:
        return super().__call__(pass_._replace(theta=pass_.theta + torch.randn(())), context)


class Infinite(BetaVAE):
    def __call__(self, pass_: Any, context: Any) -> Any:
        return super().__call__(pass_._replace(theta=pass_.theta / 0), context)


class Broken(BetaVAE):
    def __call__(self, pass_: Any, context: Any) -> Any:
        raise KeyError("kl")


def own(kind: type, out: Path, **settings: Any) -> Run:
    return fit(X, kind, network="linear", latents=2, steps=2, out=out, show=False, **settings)


def test_the_gradient_of_an_objective_is_compared_with_its_slope(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="objective Detached: the gradient of 'model' differs .* check=False"):
        own(Detached, tmp_path / "a")
    own(Detached, tmp_path / "b", check=False)  # warnings are errors in these tests
    own(type("Mine", (BetaVAE,), {}), tmp_path / "c")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Random, "gives two losses for one batch"),
        (Infinite, "at the initial weights"),
        (Broken, "fails on a batch of 16 .KeyError"),
    ],
)
def test_an_objective_that_fails_is_refused_before_the_first_step(tmp_path: Path, kind: type, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        own(kind, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_verbs_take_the_run(tmp_path: Path) -> None:
    run = train(tmp_path / "run", steps=100)
    assert unseam.report(run, show=False).exists()
    assert unseam.diagnose(run).active <= 2
