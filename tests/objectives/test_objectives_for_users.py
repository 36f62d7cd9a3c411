"""What a user meets: the list, the page, and an objective of their own."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from unseam.cli import main
from unseam.data import load_data
from unseam.objectives import OBJECTIVES
from unseam.run import load_run
from unseam.run.config import sweep_members
from unseam.show.pages.objectives import objectives_page, traversals
from unseam.train import resume

SMALL = {"size": 16, "shapes": 1, "scales": 1, "orientations": 1, "xs": 8, "ys": 8}


def example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_names_formula_paper_and_strengths(capsys):
    assert main(["objectives"]) == 0
    text = capsys.readouterr().out
    for name, kind in OBJECTIVES.items():
        assert f"{name}: " in text
        assert kind.formula in text
        assert kind.paper in text
    assert "--beta 4  (Locatello 2019 sweeps 1, 2, 4, 6, 8, 16)" in text


def test_the_list_is_one_json_document_whose_settings_train_accepts(capsys):
    assert main(["objectives", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["objectives"]
    assert list(listed) == list(OBJECTIVES)
    for name, about in listed.items():
        swept = {h: v["locatello_2019"] or v["default"] for h, v in about["hyperparameters"].items()}
        members, _ = sweep_members(OBJECTIVES[name], [0], swept | about["settings"])
        grids = [len(v["locatello_2019"]) for v in about["hyperparameters"].values() if v["locatello_2019"]]
        assert len(members) == (grids[0] if grids else 1)


def test_an_unknown_name_is_one_line_and_exit_code_2(capsys):
    assert main(["objectives", "beta-vea"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean 'beta-vae'" in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("suffix", [".html", ".png"])
def test_the_page_shows_every_objective_asked_for(tmp_path, suffix):
    names = ("beta-vae", "qlae")
    settings = {"latents": 3, "encoder": (16,), "decoder": (16,), "network": "mlp", "batch": 16, "show": False}
    out = objectives_page(load_data("sprites", **SMALL), tmp_path / f"page{suffix}", names, 30, **settings)
    if suffix == ".png":
        assert out.read_bytes().startswith(b"\x89PNG")
        return
    text = out.read_text()
    assert all(f"<h2>{name}</h2>" in text for name in names)
    assert text.count("data:image/png;base64,") == 2
    before = (tmp_path / "page" / "qlae" / "config.json").stat().st_mtime_ns
    objectives_page(load_data("sprites", **SMALL), out, names, 30, **settings)
    assert (tmp_path / "page" / "qlae" / "config.json").stat().st_mtime_ns == before  # read, not trained again
    strips = traversals(load_run(tmp_path / "page" / "beta-vae"), rows=2, columns=5)
    assert [tuple(s.shape) for s in strips] == [(5, 1, 16, 16)] * 2


@pytest.mark.parametrize(
    ("data", "out", "message"), [("synth-linear", "a.html", "images"), ("sprites", "a.pdf", "a.pdf")]
)
def test_the_page_refuses(data, out, message, tmp_path, capsys):
    assert main(["objectives", "--page", data, "--out", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err


def test_an_objective_of_ones_own(tmp_path, capsys):
    """The example trains as it stands, its price does what it says, and a stopped run goes on with the class."""
    own = example("own_objective")
    run = own.main(tmp_path / "run", steps=300)
    assert "gamma" in capsys.readouterr().out
    assert run.config.objective == "SparseVAE"
    table = run.table()
    assert (table["status"] == "finished").all()
    x = run.data.batch(torch.arange(len(run.data)))
    with torch.no_grad():
        code = [run.model(m).encode(x).mean.abs().sum(1).mean().item() for m in range(6)]
    assert min(code[:2]) > max(code[2:4]) > max(code[4:])
    assert resume(tmp_path / "run", own.SparseVAE, show=False).table()["loss"].tolist() == table["loss"].tolist()


def test_an_objective_of_ones_own_is_checked(tmp_path):
    own = example("own_objective")
    with pytest.raises(ValueError, match=r"gamma=-1\.0 of SparseVAE must be positive"):
        own.SparseVAE(gamma=-1.0).check()
