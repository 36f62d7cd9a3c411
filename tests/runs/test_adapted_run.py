"""Other people's models as runs: report, explorer, traversals, scores and command line take what `diagnose` takes."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA, KernelPCA
from torch import Tensor, nn

import unseam
from unseam.cli import main, model_file
from unseam.cli.model_file import load_model
from unseam.data import load_data
from unseam.errors import BadInput
from unseam.geometry.groups import middle
from unseam.run import load_run
from unseam.runs.adapted_run import as_run
from unseam.runs.evaluate import evaluate
from unseam.show.any_model import film_of_model
from unseam.show.explorer.at_point import geometry
from unseam.show.explorer.open_runs import open_gallery

RNG = torch.Generator().manual_seed(0)
Z = torch.randn(400, 2, generator=RNG)
W = torch.tensor([[2.0, 0.0], [0.0, 1.0]]) @ torch.randn(2, 16, generator=RNG)
X = (Z @ W + 0.1 * torch.randn(400, 16, generator=RNG)).reshape(400, 1, 4, 4)
VAE_FILE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, full=False):
        super().__init__()
        W = torch.tensor({weights})
        self.up = nn.Linear(2, 16)
        self.down = nn.Linear(16, 2)
        with torch.no_grad():
            self.up.weight.copy_(W.T)
            self.up.bias.zero_()
            self.down.weight.copy_(torch.linalg.pinv(W).T)
            self.down.bias.zero_()

    def encode(self, x):
        mean = self.down(x.flatten(1))
        return mean, torch.log(torch.tensor([0.0025, 0.01])).expand_as(mean)

    def decode(self, z):
        return self.up(z).reshape(-1, 1, 4, 4)

def trained():
    return Model().eval()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    (place / "my_vae.py").write_text(VAE_FILE.format(weights=W.tolist()))
    np.save(place / "x.npy", X.numpy())
    np.savez(place / "both.npz", images=X.numpy(), others=np.zeros(3))
    np.save(place / "factors.npy", Z.numpy())
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    namespace: dict[str, Any] = {}
    exec((folder / "my_vae.py").read_text(), namespace)
    return namespace["trained"]()


def test_the_run_encodes_decodes_and_is_diagnosed_as_the_model(model: Any, tmp_path: Path) -> None:
    run = as_run(model, X, factors=Z.numpy(), out=tmp_path / "run", s2=0.01, beta=1.0)
    mean, log_variance = model.encode(X)
    np.testing.assert_allclose(run.encode(X.numpy()), mean.detach(), atol=1e-6)
    np.testing.assert_allclose(run.decode(Z.numpy()), model.decode(Z).detach(), atol=1e-6)
    torch.testing.assert_close(run.model(0).encode(X).variance(), log_variance.exp())
    mine, theirs = unseam.diagnose(run), unseam.diagnose(model, X, s2=0.01, beta=1.0)
    assert mine.dto == pytest.approx(theirs.dto, rel=1e-4)
    assert mine.entanglement_cost == pytest.approx(theirs.entanglement_cost, rel=1e-3, abs=1e-6)
    row = run.table().iloc[0]
    q_kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1).mean()
    assert row["kl"] == pytest.approx(q_kl.item(), rel=0.05)  # whole batches only
    assert row["note"] == "not trained here: Model"
    assert evaluate(run, "mcc")[0]["mcc"].value > 0.7
    assert "rows that were given with the model" in str(
        unseam.runs.represent.sample_rows(run)  # type: ignore[attr-defined]
    )
    with pytest.raises(BadInput, match=r"a model that was not trained here .Model., not the model"):
        load_run(run.folder).model(0)


def test_beta_is_estimated_where_it_is_not_known(model: Any, tmp_path: Path) -> None:
    run = as_run(model, X, out=tmp_path / "run", s2=0.01)
    assert run.beta(0) == pytest.approx(unseam.diagnose(model, X, s2=0.01).beta, rel=1e-6)
    assert "estimate from the Sigma law" in run.table()["note"][0]


def test_report_and_explorer(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = unseam.report(model, data=X, factors=Z.numpy(), show=False)
    assert page == Path("runs/Model/report.html")
    text = page.read_text()
    assert "Model on array" in text
    assert "training data" not in text.replace("trained", "")
    assert "Model, not trained here" in text
    assert "an estimate from the Sigma law" in text
    assert "unseam train" not in text  # nothing that would make it again
    assert "unseam.report(model, data=x, s2=0.5)" in text
    again = unseam.report(model, data=X, s2=0.01, show=False).read_text()  # the call that is printed is one
    assert "unseam.report(model, data=x, s2=0.01)" in again
    assert 'id="training"' not in text
    assert "over training" not in text
    assert "..<" not in text
    gallery = open_gallery([as_run(model, X, out=tmp_path / "run")], [None, None])
    assert gallery.label(next(iter(gallery.models)))["objective"] == "Model"
    subject = gallery.subject(gallery.shown[0])
    columns = geometry(subject, torch.zeros(2)).columns.reshape(2, -1)
    torch.testing.assert_close(columns.float().abs().sum(), W.abs().sum(), rtol=1e-4, atol=1e-4)


def test_a_linear_scikit_learn_model_is_a_run_and_a_curved_one_is_not(tmp_path: Path) -> None:
    x = X.flatten(1).double().numpy()
    pca = PCA(2).fit(x)
    run = as_run(pca, x, out=tmp_path / "pca")
    np.testing.assert_allclose(run.reconstruct(x), pca.inverse_transform(pca.transform(x)), atol=1e-4)
    assert run.config.objective == "ae"
    curved = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(x)
    with pytest.raises(BadInput, match="not linear and does not compute in torch"):
        as_run(curved, x, out=tmp_path / "curved").model(0)
    assert not (tmp_path / "curved").exists()


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 4, 2, 2), nn.ConvTranspose2d(4, 1, 2, 2)

    def encode(self, x: Tensor) -> Tensor:
        return self.down(x)

    def decode(self, z: Tensor) -> Tensor:
        return self.up(z)


def test_a_run_of_some_latents_holds_the_others_at_a_typical_row(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Convolutional().eval()
    codes = net.encode(X).detach().flatten(1)
    chosen = [(1, 0, 1), (3, 1, 1), 0]
    run = as_run(net, X, latents=chosen, out=tmp_path / "run")
    torch.testing.assert_close(run.encode(X), codes[:, [5, 15, 0]])
    row = middle(codes.double().numpy())
    held = codes[row].repeat(3, 1)
    held[:, [5, 15, 0]] = codes[:3, [5, 15, 0]]
    expected = net.decode(held.reshape(3, 4, 2, 2)).detach()
    torch.testing.assert_close(run.model(0).decode(codes[:3, [5, 15, 0]]).reshape(expected.shape), expected)
    page = unseam.report(run, tmp_path / "page.html", show=False).read_text()
    assert f"latents [5, 15, 0] of 16 are looked at, what else the decoder takes is held as in row {row}" in page
    assert "Convolutional, 3 of 16 latents" in page
    assert "are these latents in this order, and the loss is that of the decoder with the rest held" in page
    assert "unseam.report(model, data=x, latents=[5, 15, 0]" in page
    assert as_run(net, X, out=tmp_path / "all").config.architecture.latents == 16
    with pytest.raises(BadInput, match="names 65 latents; reports and the explorer lay out at most 64"):
        as_run((nn.Linear(16, 70), nn.Linear(70, 16)), X.flatten(1), latents=range(65), out=tmp_path / "many")
    for verb in (unseam.diagnose, unseam.align, unseam.theorems, unseam.report, unseam.explore):
        with pytest.raises(BadInput, match="belongs to a model; all latents of a run are looked at"):
            verb(run, latents=[0, 1])
    wide = as_run((nn.Linear(16, 70), nn.Linear(70, 16)), X.flatten(1), out=tmp_path / "wide")
    assert wide.config.architecture.latents == 32


def test_latents_that_are_not_flat_are_traversed(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Convolutional().eval()
    shown = film_of_model(net, X, row=3, steps=3)
    assert shown.frames.shape == (16, 3, 1, 4, 4)
    assert set(shown.names) == {f"z({c}, {i}, {j})" for c in range(4) for i in range(2) for j in range(2)}
    code = net.encode(X[3:4]).detach()
    c, i, j = map(int, shown.names[0][2:-1].split(","))
    code[0, c, i, j] = shown.values[0, 2]
    torch.testing.assert_close(shown.frames[0, 2], net.decode(code)[0].detach(), rtol=1e-4, atol=1e-4)
    files = unseam.traverse(net, X, out=tmp_path / "film", gif=True)
    assert all(path.exists() for path in files.values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((nn.Linear(2, 16), None), "is a decoder alone, or not a model"),
        (((nn.Linear(16, 2), nn.Linear(2, 16)), None), "needs observations: data="),
        (((nn.Linear(16, 2), nn.Linear(2, 7)), X.flatten(1)), "another number of values than x"),
    ],
)
def test_what_cannot_be_a_run_is_one_line(given: tuple[Any, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        as_run(*given, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_line_takes_a_file_and_a_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place, x = f"{folder}/my_vae.py:trained", str(folder / "x.npy")
    assert main(["diagnose", place, "--data", f"{folder}/both.npz:images", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["members"]
    namespace: dict[str, Any] = {}
    exec((folder / "my_vae.py").read_text(), namespace)
    assert row["dto"] == pytest.approx(unseam.diagnose(namespace["trained"](), X).dto, rel=1e-4)
    assert main(["report", place, "--data", x]) == 0
    assert (tmp_path / "runs/Model/report.html").exists()
    assert main(["traverse", place, "--data", x, "--frames", "3"]) == 0
    assert (tmp_path / "traversals/trained.png").exists()
    assert main(["evaluate", place, "--data", x, "--factors", str(folder / "factors.npy"), "--metrics", "mcc"]) == 0
    capsys.readouterr()
    for words, error in (
        (["diagnose", place], "needs --data FILE"),
        (["report", f"{folder}/my_vae.py:nothing", "--data", x], "my_vae.py has no nothing"),
        (["traverse", f"{folder}/none.py:trained", "--data", x], "nothing there"),
        (["report", str(tmp_path / "runs/Model"), "--data", x], "--data belongs to a model"),
    ):
        assert main(words) == 2
        assert error in capsys.readouterr().err


def test_align_score_and_match_take_a_file_and_a_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place, x, factors = f"{folder}/my_vae.py:trained", str(folder / "x.npy"), str(folder / "factors.npy")
    namespace: dict[str, Any] = {}
    exec((folder / "my_vae.py").read_text(), namespace)
    model = namespace["trained"]()

    assert main(["align", place, "--data", x, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["out"] == "aligned/trained"
    assert document["model"] == place
    saved = np.load("aligned/trained/member-0.npz")
    theirs = unseam.align(model, X)
    np.testing.assert_allclose(np.abs(saved["rotation"]), np.abs(theirs.rotation), atol=1e-3)
    np.testing.assert_allclose(saved["codes_before"], model.encode(X)[0].detach(), atol=1e-5)
    with pytest.raises(BadInput, match=r"my_vae.py:trained, whose networks are not stored.*unseam.align\(model, x\)"):
        unseam.load_alignment("aligned/trained")
    assert main(["align", place, "--data", x]) == 0  # again, in a folder of its own
    assert "written to aligned/trained-2" in capsys.readouterr().out.replace("\n", " ")

    assert main(["score", place, factors, "--data", x, "--metrics", "mcc", "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)["scores"]["mcc"]["value"]
    assert by_command == pytest.approx(unseam.score(model, Z.numpy(), data=X, metrics="mcc")["mcc"].value)

    assert main(["match", place, f"{folder}/my_vae.py:Model", "--data", x, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["of"] == "codes"
    assert found["stable"] == 1
    as_run(model, X, out=tmp_path / "run")
    for words, error in (
        (["align", place], "needs --data FILE"),
        (["align", place, "--data", x, "--member", "2"], "is one member, number 0"),
        (["align", str(tmp_path / "run"), "--data", x], "--data belongs to a model"),
        (["score", place, factors], "needs --data FILE"),
        (["score", str(folder / "x.npy"), factors, "--data", x], "--data belongs to a model"),
        (["match", place, str(folder / "x.npy"), "--data", x], "models are matched with models only"),
        (["match", place, place], "needs --data FILE"),
    ):
        assert main(words) == 2
        message = capsys.readouterr().err
        assert error in message
        assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def load():\n    return 1 / 0", r"line 2 of m.py fails with ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name", r"line 1 of m.py fails with ModuleNotFoundError: No module named"),
        ("load = (", r"m.py fails with SyntaxError"),
        ("load = 'hello'", r"is of type str; give a model with encode and decode"),
        (
            "def load():\n    return lambda z: z",
            r"of type function; give a model with encode and decode, an \(encoder, decoder\) pair",
        ),
    ],
)
def test_a_file_that_makes_no_model_is_one_line(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text(text)
    np.save("x.npy", X.numpy())
    np.save("y.npy", Z.numpy())
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    before = sorted(tmp_path.rglob("*"))
    for verb in ("diagnose", "align", "traverse", "report", "explore", "evaluate", "match", "score"):
        more = {"match": ["m.py:load"], "score": ["y.npy"]}.get(verb, [])
        assert main([verb, "m.py:load", *more, "--data", "x.npy"]) == 2
        message = capsys.readouterr().err
        assert re.search(words, message)
        assert message.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_settings_of_a_model_are_refused_beside_a_run(tmp_path: Path) -> None:
    """A run has its own likelihood and beta: what would change nothing is not taken in silence."""
    run = as_run((nn.Linear(16, 2), nn.Linear(2, 16)), X.flatten(1), out=tmp_path / "run")
    shared = {"likelihood": "bernoulli", "s2": 0.1}
    weighed = {**shared, "beta": 4.0, "posterior": Z, "codes": Z}
    verbs: list[tuple[Any, dict[str, Any]]] = [
        (unseam.diagnose, {**weighed, "factors": 2, "encoder": len, "has_beta": False, "columns": "mean", "chunk": 3}),
        (unseam.align, {**weighed, "restarts": 0, "whiten": True, "encoder": len}),
        (unseam.theorems, weighed),
        (unseam.report, {**shared, "factors": Z}),
        (unseam.explore, {"factors": Z}),
        (as_run, {**shared, "factors": Z, "beta": 4.0, "out": tmp_path / "other"}),
    ]
    for verb, settings in verbs:
        for name, value in settings.items():
            with pytest.raises(BadInput, match=f"{name}= belongs to a model; a run has its own"):
                verb(run, **{name: value})
    same = unseam.diagnose(run, None, None, beta="auto", columns="weighted", has_beta=True, samples=256, latents="auto")
    assert same.dto == unseam.diagnose(run).dto
    pair = (nn.Linear(16, 2), nn.Linear(2, 16))
    for verb in (unseam.diagnose, unseam.align, unseam.theorems, unseam.traverse):
        with pytest.raises(BadInput, match="member=3: a model is one member, number 0"):
            verb(pair, X.flatten(1), member=3)


def test_what_was_assumed_of_a_model_is_noted_by_every_verb(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = (nn.Linear(16, 2), nn.Sequential(nn.Linear(2, 16), nn.Sigmoid()))
    x = torch.rand(100, 16)
    note = "the likelihood is not known and a Gaussian is assumed"
    assert note in str(unseam.diagnose(net, x).warnings)
    assert note in unseam.align(net, x, points=50).verdict
    run = as_run(net, x, out=tmp_path / "run")
    assert note in str(list(run.table()["note"]))
    assert note in unseam.report(run, tmp_path / "page.html", show=False).read_text()
    assert note not in str(list(as_run(net, x, s2=0.1, out=tmp_path / "known").table()["note"]))


def test_beta_of_a_full_posterior_is_called_an_estimate(tmp_path: Path) -> None:
    W = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    S = torch.linalg.inv(torch.eye(3) + W.T @ W / 2)
    pinv = torch.linalg.pinv(W).T
    both = (lambda x: torch.distributions.MultivariateNormal(x @ pinv, S.expand(len(x), 3, 3)), lambda z: z @ W.T)
    x = torch.randn(200, 3) @ W.T
    run = as_run(both, x, s2=0.5, out=tmp_path / "run")
    assert run.config.members[0].kl_weight == pytest.approx(4, rel=1e-3)
    assert "beta is an estimate from the Sigma law" in str(list(run.table()["note"]))
    run = as_run(both, x, s2=0.5, latents=[0, 2], out=tmp_path / "part")
    assert run.config.members[0].kl_weight == pytest.approx(4, rel=1e-3)
    run = as_run(both, x, s2=0.5, beta=3.0, out=tmp_path / "given")
    assert "estimate" not in str(list(run.table()["note"]))


def test_a_file_imports_its_own_neighbours(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "its_networks.py").write_text(f"NAME = {name!r}\n")
        (tmp_path / name / "vae.py").write_text("import its_networks\nmodel = (str, lambda z: its_networks.NAME)\n")
    found = [load_model(f"{tmp_path}/{name}/vae.py:model")[1](0) for name in ("a", "b", "b", "a")]
    assert found == ["a", "b", "b", "a"]


def test_rows_that_are_read_of_a_large_data_set_are_announced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model_file, "_MOST_ROWS", 50)
    Path("pca.py").write_text("import torch\nW = torch.eye(3)[:, :2]\nmodel = (lambda x: x @ W, lambda z: z @ W.T)\n")
    assert main(["diagnose", "pca.py:model", "--data", "synth-linear", "--points", "20"]) == 0
    streams = capsys.readouterr()
    total = len(load_data("synth-linear"))
    assert f"50 of the {total:,} rows of synth-linear, drawn at random, are read" in streams.err
    assert "at 20 of the 50 rows read of synth-linear" in streams.out
    for flag, value, words in (("--member", "2", "member=2: a model is one member"), ("--device", "cpu", "--device")):
        for verb in ("diagnose", "align"):
            assert main([verb, "pca.py:model", "--data", "synth-linear", flag, value]) == 2
            assert words in capsys.readouterr().err


def test_a_run_with_other_data_has_its_own_networks_and_takes_no_others(tmp_path: Path) -> None:
    pinv = torch.linalg.pinv(W)
    run = as_run((lambda x: x @ pinv, lambda z: z @ W), X.flatten(1), s2=0.1, out=tmp_path / "run")
    cost = unseam.diagnose(run).entanglement_cost
    half = 0.5 * X.flatten(1)
    assert unseam.diagnose(run, half).entanglement_cost == pytest.approx(cost, rel=1e-3)  # it is linear
    assert len(unseam.align(run, half[:100]).codes) == 100
    assert unseam.theorems(run, half).premise("C1").value == pytest.approx(unseam.theorems(run).premise("C1").value)
    with pytest.raises(BadInput, match=r"a model that was not trained here .pair., not the model: give it"):
        load_run(run.folder, networks=(nn.Linear(16, 2), nn.Linear(2, 16)))
