"""Every number that a verb prints of a run belongs to the member, the latent and the column beside which it stands.

Four members that differ in seed and beta; what the verbs say of each is computed again from its own weights.
"""

from __future__ import annotations

import json
import math
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import unseam
from unseam.cli import main
from unseam.metrics.udr import udr_of_pair
from unseam.run import Run
from unseam.runs import history as history_room
from unseam.runs.diagnose import diagnose, ranking
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.export import export
from unseam.runs.rank_members import median_udr
from unseam.runs.represent import represent, sample_rows, without_constants
from unseam.show.film import curves, film
from unseam.show.pages.perturb import stress_figure
from unseam.train import fit

MEMBERS = range(4)
stress_room = import_module("unseam.perturb.stress")  # the package has a function of this name


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    done = fit("synth-linear", beta=[0.02, 0.3], seeds=[3, 8], steps=250, lr=1e-2, network="linear", latents=3,
               workers=1, show=False, data_parameters={"size": 1200},
               out=tmp_path_factory.mktemp("belongs") / "run")  # fmt: skip
    assert len({(m.seed, m.hyper["beta"]) for m in done.members}) == len(MEMBERS)
    return done


def test_every_row_of_evaluate_is_its_members_own(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """On the screen and on file: values and intervals against the metric on this member's codes."""
    assert main(["evaluate", str(run.folder), "--metrics", "mcc,mig", "--ci"]) == 0
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    shown = {cells[0]: cells[2:] for cells in lines if len(cells) == 4}
    taken, found = rows_for(run, "mcc,mig"), evaluate(run, "mcc,mig", ci=True, show=False)
    on_file = run.rows.read("scores").set_index(["member", "name"])["value"]
    values = []
    for m in MEMBERS:
        seen = without_constants(represent(run.model(m), run.data, taken.rows))
        truth = unseam.score(seen.codes, seen.factors, metrics="mcc,mig", active=seen.active, space=seen.space)
        for place, name in enumerate(("mcc", "mig")):
            score = found[m][name]
            assert score.value == pytest.approx(truth[name].value, abs=1e-6)
            assert on_file[m, name] == score.value
            assert score.ci is not None
            assert shown[str(m)][place] == f"{score.value:.3f} [{score.ci[0]:.3f}, {score.ci[1]:.3f}]"
        values.append(found[m]["mcc"].value)
    assert len(set(values)) == len(MEMBERS), "members must differ"


def test_an_order_of_some_members_names_members(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first member did not finish, the second is not member 0."""
    monkeypatch.setattr(Run, "finished_members", lambda _: [1, 2, 3])
    found = diagnose(run, [1, 2, 3], show=False)
    order = ranking(run, found, show=False)
    alone = ranking(run, {m: found[m] for m in (2, 3)}, show=False)
    assert sorted(order["order"]) == [1, 2, 3]
    assert order["chosen"] == order["order"][0]
    assert sorted(alone["order"]) == [2, 3]
    assert alone["chosen"] is None
    assert set(order["seeds"]) == {1, 2, 3}


def test_the_regime_that_diagnose_prints_is_the_members_own(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = np.arange(100, 500, 100)
    deltas = {m: np.where(np.arange(4) < m, 1e6, 0.0) for m in MEMBERS}  # member m is polarized after m steps
    monkeypatch.setattr(history_room, "regime", lambda _, member: (steps, deltas[member]))
    assert main(["diagnose", str(run.folder), "--no-figures", "--points", "20", "--json"]) == 0
    since = {row["member"]: row["polarized_since"] for row in json.loads(capsys.readouterr().out)["members"]}
    assert since == {m: 100 * (m + 1) for m in MEMBERS}


def test_udr_of_two_members_is_that_of_one_with_the_other() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(400, 3))
    b = a @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rho = np.array([[abs(spearmanr(x, y).statistic) for y in b.T] for x in a.T])
    found = median_udr({4: a, 9: b}, 0)
    assert found[4][0] == pytest.approx(udr_of_pair(rho))
    assert found[9][0] == pytest.approx(udr_of_pair(rho.T))
    assert found[4][0] < 0.9


def test_stress_is_of_the_member_its_latents_in_use_and_its_data(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    use = {m: (True, m != 1, True) for m in MEMBERS}
    said = {m: SimpleNamespace(latents=[SimpleNamespace(active=a) for a in used]) for m, used in use.items()}
    monkeypatch.setattr(stress_room, "diagnose", lambda *_, **__: said)
    found = stress_room.stress_run(run, points=200)
    for m in MEMBERS:
        model = run.model(m)
        seen = stress_room.see(run, model, 200, 0)
        x = seen.x.flatten(1).numpy()
        spread = math.sqrt(float(x.var(0, ddof=1).mean()))
        assert found[m].spread == pytest.approx(spread, rel=1e-5)
        assert {b.pair for b in found[m].breaks} == ({(0, 2)} if m == 1 else {(0, 1), (0, 2), (1, 2)})
        noise = seen.posterior.variance().mean(0).sqrt()
        latents = tuple(k for k, used in enumerate(use[m]) if used)
        own = stress_room.stress(
            model.decode, seen.posterior.mean, model.likelihood, latents=latents, data=seen.x, noise=noise
        )
        assert [b.radius for b in found[m].breaks] == pytest.approx([b.radius for b in own.breaks])
    assert len({found[m].radius for m in MEMBERS}) == len(MEMBERS)


def test_pictures_of_changes_stand_over_their_own_radius() -> None:
    pairs = [((0, 1), 0.25, 1), ((0, 2), 0.5, 2), ((1, 2), 4.0, 3)]
    breaks = tuple(
        stress_room.Break(pair, radius, (1.0, 0.0), np.where(np.arange(6) < places, 1.0, -1.0))
        for pair, radius, places in pairs
    )
    figure = stress_figure(stress_room.Stress(breaks, 1.0, 15.0), (6,))
    for ax, one in zip(figure.axes, breaks, strict=True):
        assert ax.get_title() == f"latents {one.pair[0]}, {one.pair[1]}\n{one.radius:.3g} turns 15°"
        assert [bar.get_height() for bar in ax.patches] == one.image.tolist()


def test_an_export_is_of_its_member_by_seed_and_beta(run: Run, tmp_path: Path) -> None:
    for m in MEMBERS:
        files = export(run, m, "safetensors", tmp_path / str(m))["files"]
        card = json.loads(files["card"].read_text())
        assert (card["seed"], card["hyperparameters"]) == (run.members[m].seed, dict(run.members[m].hyper))


@pytest.mark.parametrize("member", [0, 3])
def test_frames_are_the_members_own_at_the_values_beside_them(run: Run, member: int) -> None:
    """Of every latent, in the order of the film: its frames are decoded at its own values."""
    shown, model = film(run, member, row=5, steps=4, every=True), run.model(member)
    with torch.no_grad():
        z = model.encode(run.data.batch(torch.tensor([5]))).mean[0]
        for name, frames, values in zip(shown.names, shown.frames, shown.values, strict=True):
            points = z.repeat(4, 1)
            points[:, int(name[1:])] = values
            torch.testing.assert_close(frames, model.mean(points), rtol=1e-4, atol=1e-4)


def test_curves_of_a_table_have_the_names_of_their_columns(run: Run) -> None:
    shown = film(run, 0, steps=4, every=True)
    columns = tuple(f"column-{i}" for i in range(shown.frames.shape[-1]))
    for k, ax in enumerate(curves(shown, columns).axes):
        assert ax.get_title() == shown.names[k]
        for line in ax.lines:
            column = int(re.findall(r"\d+", str(line.get_label()))[0])
            np.testing.assert_allclose(line.get_ydata(), shown.frames[k][:, column])
            np.testing.assert_allclose(line.get_xdata(), shown.values[k])


def test_films_along_codes_reach_where_each_latents_codes_do(tmp_path: Path) -> None:
    """An autoencoder has no prior: a latent goes from the 1 % to the 99 % quantile of its own codes."""
    x = np.random.default_rng(0).normal(size=(400, 3)) * [1.0, 5.0, 25.0]
    done = fit(x, "ae", steps=300, network="linear", latents=3, lr=0.02, scale="none", workers=1, show=False,
               out=tmp_path / "run")  # fmt: skip
    shown = film(done, steps=3)
    codes = represent(done.model(0), done.data, sample_rows(done, count=2000, use="film").rows).codes
    for name, values in zip(shown.names, shown.values, strict=True):
        low, high = np.quantile(codes[:, int(name[1:])], [0.01, 0.99])
        assert values.tolist() == pytest.approx([low, (low + high) / 2, high], rel=1e-4, abs=1e-4)
    assert [int(name[1:]) for name in shown.names] == np.argsort(-codes.std(0)).tolist()


def test_a_matchings_table_has_each_sets_own_partners() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(5, 30))
    orders: list[Any] = [rng.permutation(5), rng.permutation(5)]
    noisy = first[orders[1]].copy()
    noisy[int(np.argmax(orders[1] == 2))] = rng.normal(size=30)  # the last set lacks direction 2
    found = unseam.match(first, first[orders[0]], noisy, names=["a", "b", "c"])
    table = found.table()
    assert table["b"].tolist() == np.argsort(orders[0]).tolist()
    assert [c for i, c in enumerate(table["c"]) if i != 2] == [p for i, p in enumerate(np.argsort(orders[1])) if i != 2]
    assert table["stable"].tolist() == [True, True, False, True, True]
    unit = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in (first, first[orders[0]], noisy)]
    for name, other in (("b", unit[1]), ("c", unit[2])):
        cosines = np.abs((unit[0] * other[table[name]]).sum(1))
        np.testing.assert_allclose(table[f"{name} value"], cosines, rtol=1e-5)
