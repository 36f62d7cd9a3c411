"""Runs explained and repaired: `unseam diagnose`, `unseam align`, and the functions behind them."""

import json
from pathlib import Path

import numpy as np
import pytest

from unseam.cli import main
from unseam.explain import explain, history, repair, weakest_correlation
from unseam.geometry.rank import rank
from unseam.show.geometry_figures import diagnosis_figure, save
from unseam.train import Run, fit


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two linear VAEs with full posteriors, which leave the axes to chance, trained briefly."""
    return fit(
        "synth-linear",
        "beta-vae-sigma",
        seeds=[0, 1],
        beta=1e-2,
        steps=400,
        lr=1e-2,
        network="linear",
        latents=2,
        snapshots=2,
        workers=1,
        data_parameters={"size": 2000},
        out=tmp_path_factory.mktemp("geometry") / "run",
        show=False,
    )


def test_explain_and_history(run: Run) -> None:
    found = explain(run, points=100)
    assert set(found) == {0, 1}
    d = found[0]
    assert d.active == 2
    assert d.sigma_law_r is None or -1 <= d.sigma_law_r <= 1
    assert d.elbo is not None
    past = history(run, 0, points=50)
    assert len(past.steps) == len(past.delta_kl) > 1
    assert past.snapshot_steps[-1] == 400
    assert past.cost[-1] == pytest.approx(d.entanglement_cost, rel=1e-6)  # linear: the same at every point
    assert sorted(rank(list(found.values())).order) == [0, 1]


def test_repair_of_a_linear_decoder_is_complete(run: Run) -> None:
    """It has one Jacobian, so one rotation makes its columns orthogonal everywhere."""
    for member in (0, 1):
        found, arrays = repair(run, member, points=200)
        assert found.table[0]["before"] > 1e-8 > 1e-12 > found.table[0]["after"]
        assert found.helped == ("did not help" not in found.verdict)
        assert arrays["codes"].shape == (200, 2)


def test_figures(run: Run, tmp_path: Path) -> None:
    d = explain(run, [0], points=50)[0]
    with_past = save(diagnosis_figure(d, history(run, 0, points=20), "title"), tmp_path / "a" / "one.png")
    assert with_past.read_bytes()[:4] == b"\x89PNG"
    alone = save(diagnosis_figure(d), tmp_path / "two.svg")
    assert "<svg" in alone.read_text()
    assert sorted(p.name for p in tmp_path.rglob("*.p*")) == ["one.png"]


def test_diagnose_verb(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(run.folder), "--points", "50", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    keys = {
        "member",
        "dto",
        "dto_haar",
        "entanglement_cost",
        "ima_contrast",
        "sigma_law_r",
        "active",
        "latents",
        "verdict",
    }
    for number, member in enumerate(document["members"]):
        assert keys <= set(member)
        assert member["member"] == number
        assert {"kl", "sigma2", "jacobian_norm", "active"} <= set(member["latents"][0])
        assert Path(member["figure"]).is_file()
    assert main(["diagnose", str(run.folder), "--member", "1", "--points", "50", "--no-figures"]) == 0
    said = capsys.readouterr().out
    assert "of 2 latents active" in said
    assert "member 0" not in said


def test_align_verb(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "aligned"
    assert main(["align", str(run.folder), "--out", str(out), "--points", "100", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((out / "alignment.json").read_text())
    for member in document["members"]:
        stored = np.load(out / f"member-{member['member']}.npz")
        rotation = np.array(member["rotation"])
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(stored["codes_before"] @ rotation, stored["codes"], atol=1e-5)
        assert stored["factors"].shape == (100, 2)
        assert member["table"][-1]["what"] == "weakest factor correlation"
    assert main(["align", str(run.folder), "--out", str(out), "--member", "0", "--points", "100"]) == 0
    assert "entanglement cost" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["diagnose", "align"])
@pytest.mark.parametrize(("arguments", "said"), [(["--member", "7"], "members 0..1"), (["--points", "1"], "points=1")])
def test_bad_input(run: Run, verb: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(run.folder), *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_not_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(tmp_path)]) == 2
    assert "not a run folder" in capsys.readouterr().err


def test_weakest_correlation() -> None:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(300, 2))
    assert weakest_correlation(np.exp(factors[:, ::-1]), factors) == 1.0  # order and monotone maps do not matter
    assert weakest_correlation(rng.normal(size=(300, 3)), factors) < 0.3
