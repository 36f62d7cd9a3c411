"""A perturbed data set: bounds, bytes, resuming, layouts, and the verb."""

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

import unseam
from unseam.cli import main
from unseam.cli.perturb import Command as Perturb
from unseam.data import config, load_data
from unseam.data.pairs import Pairing, partners
from unseam.data.sets.perturbed import Mover, write_perturbed
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.perturb import Settings, manipulate, perturb, turned_layout
from unseam.perturb.layouts import Precision, Teacher, teacher
from unseam.perturb.perturb_data import began, layouts, manipulation_summary, order_members, preferred_turn, worst_pair
from unseam.run import load_run
from unseam.runs.evaluate import evaluate
from unseam.show.contact_sheet import sheet_lines as sheet_rows
from unseam.show.pages.perturb import gap_figure, sheet
from unseam.train import fit

SPRITES = {"size": 16, "shapes": 1, "scales": 1, "orientations": 1, "xs": 8, "ys": 6}
SMALL = {"seeds": [0, 1], "steps": 150, "encoder": (16,), "decoder": (16,), "show": False, "workers": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return perturb(load_data("sprites", **SPRITES), tmp_path_factory.mktemp("made"), Settings(rounds=20), **SMALL)


def every(data):
    return data.batch(torch.arange(len(data)))


def test_no_value_moves_by_more_than_eps_nor_leaves_its_range(made):
    x, moved = every(made.data.base), every(made.data)
    assert 0 < (moved - x).abs().max() <= 0.1 + 1e-6
    assert made.largest_change == pytest.approx(float((moved - x).abs().max()))
    assert moved.min() >= 0
    assert moved.max() <= 1


def test_what_is_told_is_what_was_done(made):
    """The member with the most MIG is played against itself; sizes and turns are those of the data and the decoder."""
    mig = {m: found["mig"].value for m, found in evaluate(made.run, "mig", show=False).items()}
    assert mig[made.disentangled] == max(mig.values()) > min(mig.values())
    assert made.entangled == made.disentangled  # the same one, turned
    rms = (every(made.data) - every(made.data.base)).square().mean().sqrt()
    assert made.change == pytest.approx(float(rms), rel=1e-5)
    rows = torch.arange(len(made.data))
    best, *_, worst = order_members(made.run, show=False)[0]
    before, _ = layouts(made.run, made.data.base, rows, best, worst, "turned")
    assert made.turns["before"] == pytest.approx(preferred_turn(before, made.pair), abs=1e-3) != made.turns["after"]
    told = manipulation_summary(made, Settings(), "turned")
    assert (told["turn_before"], told["turn_after"]) == (made.turns["before"], made.turns["after"])
    found = made.found
    assert (told["gap_before"], told["gap_after"]) == (found.gap_before, found.gap_after)
    assert told["gap_before"] != told["gap_after"]
    assert (told["rounds"], told["gaps"]) == (found.rounds, found.gaps)
    weights = dict(zip(made.data.space.names, found.mover.scalar.weight[0].tolist(), strict=True))
    assert told["scalar"] == pytest.approx(weights, abs=1e-4)
    for name, data in (("original", made.data.base), ("perturbed", made.data)):
        whole = every(data).numpy()
        assert all(np.isclose(whole, one, atol=1e-5).all(axis=(1, 2, 3)).any() for one in made.pictures[name])
    small = np.abs(made.pictures["perturbed"] - made.pictures["original"]).reshape(8, -1).max(1)
    assert (small <= Settings().eps + 1e-6).all()  # so both are of the same rows


def test_the_page_shows_the_change_that_was_made(made):
    """Four lines of pictures, the third of which is the difference of the first two; the gap over its rounds."""
    lines = [ax for ax in sheet(made).axes if ax.get_title(loc="left")]
    assert [ax.get_title(loc="left").split(",")[0] for ax in lines] == [
        "original",
        "perturbed",
        "difference",
        "m along its scalar",
    ]
    first = [np.asarray(ax.images[0].get_array()) for ax in lines]
    np.testing.assert_allclose(first[1] - first[0], first[2], atol=1e-6)
    np.testing.assert_array_equal(first[0], made.pictures["original"][0, 0])
    curve, before, _ = gap_figure(made).axes[0].lines
    assert list(curve.get_xdata()) == made.found.rounds
    assert list(curve.get_ydata()) == made.found.gaps
    assert set(before.get_ydata()) == {made.found.gap_before}


def test_the_pair_is_the_one_whose_turning_costs_most():
    """Latents 0 and 1 hold x and y; turned against the third, which holds nothing, one of them would stay."""
    data = load_data("sprites", **SPRITES)
    rows = torch.arange(len(data))
    x, y = data.factors(rows)[:, 3:].float().unbind(1)
    mean = torch.stack([x, y, 1e-3 * torch.randn(len(data), generator=torch.Generator().manual_seed(0))], 1)
    layout = Teacher(mean - mean.mean(0), torch.ones_like(mean), torch.nn.Identity(), torch.nn.Identity(), Precision(3))
    assert worst_pair(layout, data, rows) == (0, 1)


def test_a_layout_has_the_beta_of_its_member(tmp_path):
    run = fit(
        "ring", beta=[0.5, 3.0], out=tmp_path / "run", steps=2, show=False, workers=1, network="linear", latents=2
    )
    found = layouts(run, run.data, torch.arange(20), 1, 0, "restart")
    assert [layout.beta for layout in found] == [3.0, 0.5]


def test_even_a_wild_mover_stays_within_eps(tmp_path):
    data, mover = load_data("sprites", **SPRITES), Mover(5, (1, 16, 16))
    with torch.no_grad():
        for parameter in mover.parameters():
            parameter.mul_(100)
    scale = (torch.zeros(5), torch.ones(5))
    wild = write_perturbed(tmp_path, config(data), 0.3, mover, scale)
    moved = every(wild)
    assert (moved - every(data)).abs().max() <= 0.3 + 1e-6
    assert moved.min() >= 0
    assert moved.max() <= 1


def test_a_folder_from_before_opens_as_it_was(tmp_path):
    """perturbed.json without an activation: relu, and as many hidden units as its weights say."""
    data, mover = load_data("sprites", **SPRITES), Mover(5, (1, 16, 16), "relu", hidden=128)
    write_perturbed(tmp_path, config(data), 0.1, mover, (torch.zeros(5), torch.ones(5)))
    document = json.loads((tmp_path / "perturbed.json").read_text())
    assert document.pop("activation") == "relu"
    (tmp_path / "perturbed.json").write_text(json.dumps(document))
    w = torch.randn(4, 5)
    with torch.no_grad():
        assert torch.equal(load_data(tmp_path).mover(w), mover(w))


def test_the_folder_is_the_data_and_its_factors_are_the_originals(made, tmp_path):
    again = load_data(made.data.folder)
    assert torch.equal(every(again), every(made.data))
    round_trip = load_data(**config(again))
    assert config(round_trip) == config(again)
    assert torch.equal(every(round_trip), every(again))
    index = torch.arange(len(again))
    assert torch.equal(again.factors(index), made.data.base.factors(index))
    assert torch.equal(again.observe(again.factors(index)), every(again))  # by factors as by rows
    shutil.copytree(made.data.folder, tmp_path / "moved")
    assert torch.equal(every(load_data(tmp_path / "moved")), every(again))


def test_it_trains_pairs_wraps_and_shows_like_any_data(made, tmp_path):
    data = load_data(made.data.folder)
    run = unseam.fit(data, "ada-gvae", latents=2, steps=5, batch=8, out=tmp_path / "run", **TINY)
    assert torch.equal(every(load_run(run.folder).data), every(data))
    rows = torch.arange(0, len(data), 2)
    found = partners(data, rows, Pairing("k"), torch.Generator().manual_seed(0), rows)
    assert torch.isin(found.rows, rows).all()
    half = load_data(made.data.folder, without="x<4")
    assert torch.equal(every(half), every(data)[data.factors(torch.arange(len(data)))[:, 3] >= 4])
    original, moved, difference = sheet_rows(data)[:3]
    assert [row.label for row in (original, moved, difference)] == ["original", "perturbed", "difference"]
    torch.testing.assert_close(original.images + 2 * 0.1 * (difference.images - 0.5), moved.images)


TINY = {"network": "mlp", "encoder": (8,), "decoder": (8,), "show": False, "workers": 1}


def toy(seed=0, K=3):
    """A layout whose decoder is a small network, at 200 random posteriors."""
    draw = torch.Generator().manual_seed(seed)
    model = Architecture("mlp", K, (8,), (8,), decoder_activation="tanh", likelihood="gaussian", s2=0.05).build((6,), 0)
    x = torch.rand(200, 6, generator=draw)
    with torch.no_grad():
        q = model.encode(x)
    return x, torch.randn(200, 2, generator=draw), teacher(model, q)


def test_a_turned_layout_has_the_same_information():
    """Its decoder undoes the turn: what it decodes from the turned means is what the other decodes from its own."""
    _, _, layout = toy()
    other = turned_layout(layout)
    with torch.no_grad():
        torch.testing.assert_close(other.decoder(other.mean), layout.decoder(layout.mean))
    assert (other.mean - layout.mean).abs().max() > 1e-3
    torch.testing.assert_close(other.mean.norm(dim=1), layout.mean.norm(dim=1))
    torch.testing.assert_close(other.variance.sum(1), layout.variance.sum(1))  # the trace of R diag(v) R^T
    weak = int(layout.variance.mean(0).argmax())
    assert torch.equal(other.mean[:, weak], layout.mean[:, weak])


def test_the_turn_of_a_linear_decoder_is_read_off():
    """d(z) = diag(3, 1) R^T z prefers axes turned by the angle of R."""
    for degrees in (0.0, 10.0, 40.0):
        t = math.radians(degrees)
        R = torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]])
        decoder = torch.nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            decoder.weight.copy_(torch.diag(torch.tensor([3.0, 1.0])) @ R.T)
        likelihood = Architecture("linear", 2, likelihood="gaussian").build((2,), 0).likelihood
        layout = Teacher(torch.randn(20, 2), torch.ones(20, 2), decoder, likelihood, Precision(2))
        assert preferred_turn(layout, (0, 1)) == pytest.approx(degrees, abs=1e-3)


def test_a_side_pays_for_the_precision_it_chooses():
    """KL of the scaled posterior, against torch.distributions; twice the variance is t = log 2 / 10."""
    _, _, layout = toy()
    with torch.no_grad():
        layout.precision.t[1] = math.log(2) / 10
    v = layout.variance * torch.tensor([1.0, 2.0, 1.0])
    q = torch.distributions.Normal(layout.mean, v.sqrt())
    prior = torch.distributions.Normal(torch.zeros_like(v), torch.ones_like(v))
    rows = torch.arange(5)
    expected = torch.distributions.kl_divergence(q, prior).sum(1)[:5]
    torch.testing.assert_close(layout.kl(rows), expected)
    torch.testing.assert_close(layout.sample(rows, torch.ones(5, 1, 3))[:, 0], (layout.mean + v.sqrt())[:5])


def test_as_published_only_decoders_learn():
    """With gap="reconstruction" precisions stay; with "elbo" they move."""
    for gap, moves in (("reconstruction", False), ("elbo", True)):
        x, w, layout = toy()
        other = turned_layout(layout)
        manipulate(x, w, [layout], [other], Settings(rounds=3, batch=8, gap=gap), show=False)
        assert bool(other.precision.t.abs().max() > 0) is moves
    with pytest.raises(BadInput, match="gap='loss' is unknown"):
        Settings(gap="loss")


def test_small_sprites_are_those_that_work(capsys):
    """Only where nothing but the size was said, and it is told."""
    chosen = Perturb("sprites", "out", options={"size": "16"}).chosen()
    assert chosen == {"size": "16", "shapes": "1", "orientations": "1", "without": "x<8|x>23|y<13|y>18", "grey": "0.1"}
    assert "--data.grey '0.1'" in capsys.readouterr().err
    for options in ({"size": "64"}, {"size": "16", "shapes": "2"}):
        assert Perturb("sprites", "out", options=options).chosen() == options


def test_the_gap_falls():
    x, w, layout = toy()
    dis, ent = layout, turned_layout(layout, (0, 1))
    settings = Settings(rounds=150, batch=32, eps=0.2, gap="reconstruction")  # the toy's ELBOs hardly differ
    found = manipulate(x, w, [dis], [ent], settings, show=False)
    assert found.rounds == [0, 50, 100, 150]
    assert found.gap_after < found.gap_before


def test_a_stopped_manipulation_goes_on_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["unseam.perturb.adversary"], "SAVE", 4)
    monkeypatch.setattr(sys.modules["unseam.perturb.adversary"], "SETTLE", 3)

    def run(path, rounds=10):
        x, w, layout = toy()
        return manipulate(x, w, [layout], [turned_layout(layout)], Settings(rounds=rounds, batch=8), path, show=False)

    whole = run(tmp_path / "whole.safetensors")
    run(tmp_path / "stopped.safetensors", rounds=6)  # leaves the checkpoint of round 4
    resumed = run(tmp_path / "stopped.safetensors")
    assert resumed.gap_after == whole.gap_after
    assert resumed.gaps[-1] == whole.gaps[-1]
    for name, value in whole.mover.state_dict().items():
        assert torch.equal(resumed.mover.state_dict()[name], value), name


def test_a_checkpoint_of_another_manipulation_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["unseam.perturb.adversary"], "SAVE", 2)
    x, w, layout = toy()
    path = tmp_path / "m.safetensors"
    manipulate(x, w, [layout], [turned_layout(layout)], Settings(rounds=2, batch=8), path, show=False)
    with pytest.raises(BadInput, match=r"eps=0.2, but .* was begun with 0.1"):
        manipulate(x, w, [layout], [turned_layout(layout)], Settings(eps=0.2, rounds=2, batch=8), path, show=False)
    _, _, other = toy(K=4)
    with pytest.raises(BadInput, match="other models or data"):
        manipulate(x, w, [other], [turned_layout(other)], Settings(rounds=2, batch=8), path, show=False)


def test_data_without_factors_moves_along_codes(tmp_path):
    x = np.random.default_rng(0).uniform(size=(150, 2)) @ np.array([[0.5, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.5]])
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    data = load_data(tmp_path / "x.npy")
    made = perturb(data, tmp_path / "out", Settings(rounds=5, batch=8), latents=2, **SMALL)
    assert made.data.space is None
    again = load_data(tmp_path / "out")
    assert again.own.shape == (150, 2)
    torch.testing.assert_close(again.own.std(0, correction=0), torch.ones(2), rtol=1e-3, atol=0)
    assert 0 < (every(again) - every(data)).abs().max() <= 0.1 + 1e-6
    assert "label-free" in made.chosen_by
    with pytest.raises(BadInput, match="along codes"):
        again.observe(torch.zeros(1, 2))


def test_models_of_other_data_are_refused(made, tmp_path):
    other = load_data("sprites", **{**SPRITES, "ys": 4})
    with pytest.raises(BadInput, match="other data"):
        perturb(other, tmp_path / "out", Settings(rounds=1), made.run)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"eps": 0.0}, "eps=0.0"), ({"eps": 0.7}, "eps=0.7"), ({"rounds": 0}, "rounds=0"), ({"lr": 0.0}, "lr=0.0")],
)
def test_settings_that_make_no_sense_are_named(settings, message):
    with pytest.raises(BadInput, match=message):
        Settings(**settings)


def changed(folder, **values):
    document = json.loads((folder / "perturbed.json").read_text())
    (folder / "perturbed.json").write_text(json.dumps({**document, **values}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "perturbed.json").write_text("{}"), "missing, damaged"),
        (lambda folder: (folder / "m.safetensors").write_bytes(b"x"), "m.safetensors is missing, damaged"),
        (lambda folder: changed(folder, eps=0.7), "eps is not what it should be"),
        (lambda folder: changed(folder, base={"name": str(folder)}), "the chain of bases comes back to"),
        (lambda folder: changed(folder, base={"name": "sprites", "size": [1]}), "must be a whole number"),
        (lambda folder: changed(folder, base={"name": "ring"}), "does not fit"),
        (lambda folder: changed(folder, reach=[[0.0], [0.0]]), "reach in perturbed.json"),
        (lambda folder: np.save(folder / "w.npy", np.zeros(3)), "is not one row of numbers a row of data"),
        (lambda folder: np.save(folder / "w.npy", np.array(0.5)), "is not one row of numbers a row of data"),
        (lambda folder: (folder / "w.npy").write_bytes(b"x"), "w.npy is corrupt"),
    ],
)
def test_a_damaged_folder_is_one_line(made, tmp_path, damage, message):
    folder = tmp_path / "folder"
    shutil.copytree(made.data.folder, folder)
    damage(folder)
    with pytest.raises(BadInput, match=message) as error:
        every(load_data(folder))
    assert "\n" not in str(error.value)


def test_a_circle_of_folders_ends_in_one_line_however_deep_the_stack_may_grow(tmp_path):
    """In a process of its own: mypy and notebooks raise the limit, and then the C stack overflows first."""
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        document = {"base": {"name": str(tmp_path / other)}, "eps": 0.1, "inputs": 2}
        (tmp_path / name / "perturbed.json").write_text(json.dumps(document))
    code = "import sys; sys.setrecursionlimit(10**6); from unseam.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["data", "show", str(tmp_path / "a"), "--out", str(tmp_path / "sheet.png")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "the chain of bases comes back to" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_chain_of_bases_has_an_end(made, tmp_path):
    """Sixteen folders are read, one more is refused."""
    link = made.data.folder
    for i in range(16):
        shutil.copytree(made.data.folder, tmp_path / str(i))
        changed(tmp_path / str(i), base={"name": str(link)})
        link = tmp_path / str(i)
    assert len(load_data(tmp_path / "14")) == len(made.data)
    with pytest.raises(BadInput, match="longer than 16 folders"):
        len(load_data(link))


FLAGS = [f"--data.{name}={value}" for name, value in SPRITES.items()]


def test_the_verb_prints_what_the_design_says_and_its_folder_trains(tmp_path, capsys):
    words = ["perturb", "sprites", *FLAGS, "--seeds", "0,1", "--steps", "60", "--rounds", "10", "--out"]
    assert main([*words, str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"data", "eps", "largest_change", "gap_before", "gap_after", "page"} <= set(told)
    assert told["largest_change"] <= told["eps"] + 1e-6
    page = (tmp_path / "out" / "perturb.html").read_text()
    assert told["page"] == str(tmp_path / "out" / "perturb.html")
    assert " nan " not in page
    assert main(["data", "show", told["data"], "--out", str(tmp_path / "sheet.png"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["name"] == told["data"]
    assert main(["train", told["data"], "--steps", "5", "--out", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["members"][0]["status"] == "finished"
    assert main([*words, str(tmp_path / "out"), "--json"]) == 0  # nothing is left to do
    again = json.loads(capsys.readouterr().out)
    assert {**again, "gap_after": 0} == {**told, "gap_after": 0}
    assert again["gap_after"] == pytest.approx(told["gap_after"])


def test_killed_before_its_page_the_verb_goes_on(tmp_path, capsys, monkeypatch):
    """The same command ends with the same bytes and a page; another one is refused, by the name of what is other."""
    out = tmp_path / "out"
    words = ["perturb", "sprites", *FLAGS, "--seeds", "0,1", "--rounds", "10", "--out", str(out)]

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("unseam.show.pages.perturb.write_perturb_page", die)
        with pytest.raises(Killed):
            main([*words, "--steps", "60"])
    before = {name: (out / name).read_bytes() for name in ("m.safetensors", "perturbed.json", "manipulation.json")}
    assert main([*words, "--steps", "61"]) == 2
    assert "steps=61, but" in capsys.readouterr().err
    assert main([*words, "--steps", "60"]) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert (out / "perturb.html").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sprites", "--eps", "0.9"], "eps=0.9"),
        (["synth-linear"], "[0, 1]"),
        (["sprites", "--run", "nowhere"], "nowhere"),
        (["sprites", "--data.noisy"], "random"),
        (
            ["sprites", "--data.shapes", "1", "--data.scales", "1", "--data.orientations", "1", "--data.xs", "1"],
            "one factor",
        ),
    ],
)
def test_bad_input_is_one_line(words, message, tmp_path, capsys):
    assert main(["perturb", *words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0


def test_stress_of_a_run(made, capsys):
    assert main(["stress", str(made.run.folder), "--points", "50", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for row in told["members"]:
        assert {"member", "radius", "radius_relative", "pair", "page"} <= set(row)
        if row["radius"] is None:
            continue
        assert row["radius"] == min(pair["radius"] for pair in row["pairs"])
        spread = row["radius"] / row["radius_relative"]
        assert 0.05 < spread < 1  # the standard deviation of sprites' pixels
    assert any(row["radius"] is not None for row in told["members"])


def test_a_run_on_other_data_leaves_the_folder_to_the_right_one(tmp_path):
    data = load_data("sprites", size=16, xs=4, ys=4, scales=2, orientations=1)
    other = fit("ring", "beta-vae", out=tmp_path / "other", steps=2, show=False, workers=1, network="linear", latents=2)
    with pytest.raises(BadInput, match="trained on other data"):
        perturb(data, tmp_path / "out", Settings(rounds=2, batch=8), run=other)
    assert not (tmp_path / "out" / "asked.json").exists()


def test_a_folder_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / "perturbed.json").write_text("{}")
    with pytest.raises(BadInput, match="of an earlier version"):
        began(tmp_path, {"eps": 0.1})


def test_several_models_may_stand_on_each_side(tmp_path, monkeypatch):
    small = {"latents": 2, "network": "mlp", "encoder": (8,), "decoder": (8,), "likelihood": "gaussian"}
    data = load_data("sprites", **SPRITES)
    run = fit(data, seeds=range(4), steps=2, out=tmp_path / "run", workers=1, show=False, **small)
    sides = {}

    def stop(x, w, dis, ent, *more):
        sides.update(dis=[side.label for side in dis], ent=[side.label for side in ent])
        raise KeyboardInterrupt

    monkeypatch.setattr("unseam.perturb.perturb_data.manipulate", stop)
    with pytest.raises(KeyboardInterrupt):
        perturb(data, tmp_path / "out", run=run, how="restart", ensemble=2, show=False)
    order, _ = order_members(run, show=False)
    assert sides["dis"] == [f"member {m}" for m in order[:2]]
    assert sides["ent"] == [f"member {m}" for m in order[:1:-1]]
    with pytest.raises(BadInput, match="ensemble=3 needs twice as many restarts, there are 4"):
        perturb(data, tmp_path / "more", run=run, how="restart", ensemble=3, show=False)
