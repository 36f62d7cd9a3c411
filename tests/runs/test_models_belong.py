"""Numbers of models that were not trained here: each of the latents, rows, likelihood and file that it stands with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unseam
from unseam.cli import main
from unseam.cli.model_file import read_observations
from unseam.data import load_data
from unseam.geometry.adapted import flat_part
from unseam.geometry.groups import middle
from unseam.models.adapters import adapter_for
from unseam.models.adapters.base import EncoderOutput, posterior_outputs
from unseam.models.posterior import Full
from unseam.runs.adapted_run import as_run
from unseam.show.any_model import film_of_model

G = torch.Generator().manual_seed(0)
W = torch.randn(3, 6, generator=G) * torch.tensor([[3.0], [2.0], [1.0]])
X = torch.randn(200, 3, generator=G) @ W
SPREAD = torch.tensor([0.1, 0.2, 0.3])


def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = x @ torch.linalg.pinv(W)
    return mean, SPREAD.log().expand_as(mean)


PAIR = (encode, lambda z: z @ W)


def test_a_part_has_the_posterior_of_its_own_latents() -> None:
    adapter = adapter_for(PAIR)
    assert adapter is not None
    part = flat_part(adapter.adapt(PAIR, X), [2, 0])
    assert part.variances is not None
    expected = SPREAD[[2, 0]].expand(len(X), 2)
    torch.testing.assert_close(part.variances, expected)
    torch.testing.assert_close(part.encode(X).variance, expected)
    torch.testing.assert_close(part.codes, encode(X)[0][:, [2, 0]])


def test_a_full_posterior_of_many_latents_comes_back() -> None:
    L = torch.randn(5, 4, 4, generator=G).tril() + 4 * torch.eye(4)
    S = L @ L.mT
    found = Full.from_outputs(posterior_outputs(EncoderOutput(torch.zeros(5, 4), covariance=S)), 4)
    torch.testing.assert_close(found.covariance(), S, rtol=1e-4, atol=1e-4)


def test_beta_of_a_part_is_of_its_own_latents() -> None:
    """Latents 1 and 2 follow the law with beta 2, latent 0 with another."""
    M = W.square().sum(1) / 0.5
    variances = 1 / (1 + M / torch.tensor([9.0, 2.0, 2.0]))
    both = (lambda x: (encode(x)[0], variances.log().expand(len(x), 3)), PAIR[1])
    assert "2 is an estimate" in unseam.align(both, X, latents=[2, 1], s2=0.5, beta=None).verdict


def test_settings_reach_the_number(tmp_path: Path) -> None:
    cost = {}
    for s2, beta in ((0.1, 1.0), (0.4, 1.0), (0.1, 3.0)):
        given: dict[str, Any] = {"s2": s2, "beta": beta}
        run = as_run(PAIR, X, **given, out=tmp_path / f"{s2}-{beta}")
        assert (run.config.architecture.s2, run.config.members[0].kl_weight) == (pytest.approx(s2), beta)
        cost[s2, beta] = unseam.diagnose(PAIR, X, **given).entanglement_cost
        assert unseam.diagnose(run).entanglement_cost == pytest.approx(cost[s2, beta], rel=1e-3)
        assert unseam.align(PAIR, X, **given).table[0]["before"] == pytest.approx(cost[s2, beta], rel=1e-3)
        assert unseam.theorems(PAIR, X, **given).premise("C1").cost == pytest.approx(cost[s2, beta], rel=1e-3)
        page = unseam.report(run, tmp_path / "page.html", show=False).read_text()
        assert f"<dd>gaussian, s2 {s2:g}</dd>" in page
        assert f"<dd>{beta:g}</dd>" in page
    assert len({round(value, 4) for value in cost.values()}) == 3


def test_a_model_without_posterior_is_whitened_unless_asked_otherwise() -> None:
    both = (lambda x: encode(x)[0] * torch.tensor([1.0, 5.0, 0.2]), PAIR[1])
    assert not torch.allclose(unseam.align(both, X).frame.scale, torch.eye(3).double())
    assert torch.equal(unseam.align(both, X, whiten=False).frame.scale, torch.eye(3).double())
    assert torch.equal(unseam.align(PAIR, X, beta=1.0).frame.scale, torch.eye(3).double())


def test_a_film_without_a_row_starts_where_codes_are_typical() -> None:
    film = film_of_model(PAIR, X, steps=3)
    code = encode(X)[0]
    start = code[middle(code.double().numpy())].clone()
    latent = int(film.names[0][1:])
    start[latent] = film.values[0, 0]
    torch.testing.assert_close(film.frames[0, 0], start @ W, rtol=1e-4, atol=1e-4)


def test_the_explorer_has_the_latents_that_were_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr("unseam.show.explorer.server.serve_explorer", lambda gallery, *_: served.append(gallery))
    unseam.explore(PAIR, X, latents=[2, 0], open_browser=False)
    subject = served[0].subject(served[0].shown[0])
    torch.testing.assert_close(subject.decode(torch.eye(2))[0] - subject.decode(torch.zeros(1, 2))[0], W[2])


def test_factors_of_a_named_data_set_are_of_the_rows_that_are_read() -> None:
    x, factors = read_observations("sprites", "m.py:model")
    data = load_data("sprites")
    assert len(x) < len(data)  # drawn at random
    row = 17
    place = int(sum(v * s for v, s in zip(factors[row].astype(int), _strides(data.space.sizes), strict=True)))
    torch.testing.assert_close(data.batch(torch.tensor([place]))[0], x[row])


def _strides(sizes: tuple[int, ...]) -> list[int]:
    return [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]


FILE = """
import torch
W = torch.tensor({weights})
class Model(torch.nn.Module):
    def encode(self, x):
        return x @ torch.linalg.pinv(W)
    def decode(self, z):
        return z @ W
plain = Model()
turned = ((lambda x: plain.encode(x) @ {turn}), plain.decode)
"""


def test_the_command_line_passes_on_what_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=G))[0].tolist()
    Path("m.py").write_text(FILE.format(weights=W.tolist(), turn=f"torch.tensor({turn})"))
    x = torch.sigmoid(X)
    np.save("x.npy", x.numpy())
    seen: dict[str, dict[str, Any]] = {}
    from unseam.runs import any_model

    for name in ("diagnose", "theorems", "align"):
        real = getattr(any_model, name)
        monkeypatch.setattr(
            any_model, name, lambda *a, _name=name, _real=real, **k: seen.update({_name: k}) or _real(*a, **k)
        )
    common = ["--data", "x.npy", "--likelihood", "bernoulli", "--seed", "3", "--json"]
    assert main(["diagnose", "m.py:plain", *common, "--points", "50", "--theorems"]) == 0
    assert main(["align", "m.py:plain", *common, "--points", "60"]) == 0
    assert {k: v for k, v in seen["diagnose"].items() if v is not None} == {
        "likelihood": "bernoulli", "points": 50, "seed": 3,
    }  # fmt: skip
    assert seen["theorems"] == {"likelihood": "bernoulli", "seed": 3}
    assert {k: v for k, v in seen["align"].items() if v is not None} == {
        "likelihood": "bernoulli", "points": 60, "seed": 3,
    }  # fmt: skip
    capsys.readouterr()
    assert main(["match", "m.py:plain", "m.py:turned", "--data", "x.npy", "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["mean"] < 0.99  # they are two models


def test_networks_of_the_user_are_not_counted_as_its_weights(tmp_path: Path) -> None:
    """A run folder of a model holds rows and numbers only."""
    run = as_run((nn.Linear(6, 2), nn.Linear(2, 6)), X, out=tmp_path / "run")
    assert run.weights(0) == {}
