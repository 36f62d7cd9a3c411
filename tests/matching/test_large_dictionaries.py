"""Blocks, lists and the auction against dense tables and SciPy's assignment; chance, coverage and groups."""

import json

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from unseam.cli import main
from unseam.matching import candidates, directions, match
from unseam.matching.candidates import nearest, similarities
from unseam.matching.coverage import coverage
from unseam.stats import auction


def two_dictionaries(a, b, n, share, seed=0):
    """The second has `share` of the first's directions, with noise, among others at random; and who belongs to whom."""
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(a, n)), rng.normal(size=(b, n))
    common = int(share * min(a, b))
    place = rng.permutation(b)[:common]
    two[place] = one[:common] + 0.3 * rng.normal(size=(common, n))
    return one.astype(np.float32), two.astype(np.float32), place


@pytest.fixture
def small_blocks(monkeypatch):
    """Everything counts as large, and blocks do not divide the sizes."""
    monkeypatch.setattr(directions, "EXACT", 20)
    monkeypatch.setattr(candidates, "_ROWS", 37)
    monkeypatch.setattr(candidates, "_COLUMNS", 23)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("count", [1, 5, 30, 500])
def test_lists_from_blocks_are_those_of_the_whole_table(small_blocks, monkeypatch, signed, count):
    monkeypatch.setattr(candidates, "_COPY", 0 if count == 5 else 1 << 30)
    one, two, _ = two_dictionaries(101, 150, 12, 0.5)
    table = similarities(one, two, signed)
    found = nearest(one, two, count, signed)
    assert found.columns.shape == (101, min(count, 150))
    assert np.allclose(np.sort(found.values, axis=1), np.sort(table, axis=1)[:, -count:], atol=1e-6)
    assert np.allclose(found.values, np.take_along_axis(table, found.columns, axis=1), atol=1e-6)
    assert all(len(set(row)) == len(row) for row in found.columns.tolist())
    barred = nearest(one, two, count, signed, without=table.argmax(axis=1))
    assert not (barred.columns == table.argmax(axis=1)[:, None]).any()
    assert np.allclose(barred.values.max(axis=1), np.sort(table, axis=1)[:, -2], atol=1e-6)


@pytest.mark.parametrize("shape", [(120, 120), (60, 150), (150, 60)])
@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_the_auction_is_one_to_one_and_its_loss_is_proven(small_blocks, shape, share):
    one, two, place = two_dictionaries(*shape, 40, share)
    pair = match(one, two).pairs[0]
    table = similarities(one, two, signed=False)
    best = table[linear_sum_assignment(table, maximize=True)].sum() / min(shape)
    taken = pair.partners[pair.partners >= 0]
    assert len(set(taken.tolist())) == len(taken) == min(shape)
    rows = np.flatnonzero(pair.partners >= 0)
    assert np.allclose(pair.values[rows], table[rows, pair.partners[rows]], atol=1e-6)
    ours = pair.values.sum() / min(shape)
    assert ours <= best + 1e-6 <= ours + pair.loss + 2e-6  # the proof holds, whatever the lists left out
    assert best - ours < 0.002
    assert (pair.partners[: len(place)] != place).sum() <= 0.03 * len(place)
    assert pair.loss < 0.02


def test_lists_that_leave_out_the_best_columns_have_a_bound_above_the_optimum():
    table = np.random.default_rng(0).uniform(size=(60, 60))
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    for k in (1, 2, 4, 60):
        columns = np.argsort(-table, axis=1)[:, :k]
        found = auction(np.take_along_axis(table, columns, axis=1), columns, 60)
        assert found.bound >= best - 1e-9
        got = found.columns >= 0
        assert len(set(found.columns[got].tolist())) == got.sum()
    assert found.bound - 60 * 3e-4 <= best  # whole lists: the auction is within a step for each row
    assert table[np.arange(60), found.columns].sum() >= best - 60 * 3e-4 - 1e-9


def test_many_identical_and_empty_directions_are_matched_all_the_same(small_blocks):
    one, two, place = two_dictionaries(80, 80, 20, 0.5)
    one[50:70], two[np.setdiff1d(np.arange(80), place)[:25]] = one[50], one[50]
    one[75:] = 0
    pair = match(one, two).pairs[0]
    assert (pair.partners[:40] == place).all()
    assert (pair.values[50:70] > 0.999).all()
    assert (pair.partners[75:] == -1).all()
    assert (pair.values[75:] == 0).all()


def test_large_and_small_sets_have_the_same_chance_levels(monkeypatch):
    one, two, _ = two_dictionaries(300, 300, 30, 0.5)
    dense = match(one, two).pairs[0]
    monkeypatch.setattr(directions, "EXACT", 20)
    lists = match(one, two).pairs[0]
    for name in ("chance", "limit", "hard_chance", "hard_limit"):
        assert getattr(lists, name) == pytest.approx(getattr(dense, name), abs=0.02), name


def test_hard_negatives_see_what_all_directions_of_the_data_share():
    """A common component makes unrelated directions alike; random rotations do not know it."""
    rng = np.random.default_rng(0)
    mean = 8 * rng.normal(size=50) / np.sqrt(50)
    a, b = (rng.normal(size=(200, 50)) + mean for _ in range(2))
    plain = match(*(rng.normal(size=(200, 50)) for _ in range(2))).pairs[0]
    pair = match(a, b).pairs[0]
    assert plain.hard_chance == pytest.approx(plain.chance, abs=0.05)
    assert pair.hard_chance > pair.chance + 0.1
    document = pair.to_json(0.7)
    assert document["above_chance"] > 0.5 > document["above_hard_negatives"]
    alone = match(np.eye(3)[:1], np.eye(3)[:1])
    assert alone.to_json()["pairs"][0]["above_hard_negatives"] is None
    assert "other directions" not in str(alone)


def test_coverage_is_the_mean_of_the_best():
    values = np.random.default_rng(0).uniform(size=3000)
    found = coverage(values, values[:500] / 2)
    best = np.sort(values)[::-1]
    assert found["top"] == pytest.approx({"100": best[:100].mean(), "2000": best[:2000].mean(), "all": best.mean()})
    assert found["mean"] == pytest.approx([best[:m].mean() for m in found["count"]], abs=1e-6)
    assert found["lowest"] == pytest.approx(best[np.array(found["count"]) - 1], abs=1e-6)
    assert found["negatives"][-1] == pytest.approx(values[:500].mean() / 2, abs=1e-6)
    assert {100, 2000, 3000} <= set(found["count"])


def test_splits_merges_and_sums_are_groups():
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    one = np.vstack([W[0], W[1], W[1] + 0.2 * W[30], W[2], W[3], W[4:20]])
    two = np.vstack([W[0] + 0.2 * W[31], W[0] - 0.2 * W[32], W[1], W[2] + W[3], W[4:20]])
    groups = {group.kind: (group.one, group.two) for group in match(one, two, at=0.8).pairs[0].groups}
    assert groups == {"split": ((0,), (0, 1)), "merged": ((1, 2), (2,)), "sum": ((3, 4), (3,))}
    turned = {group.kind: (group.one, group.two) for group in match(two, one, at=0.8).pairs[0].groups}
    assert turned == {"merged": ((0, 1), (0,)), "split": ((2,), (1, 2)), "sum": ((3,), (3, 4))}
    assert not match(W[:20], W[:20]).pairs[0].groups


def test_the_verb_draws_the_curve_and_says_groups(tmp_path, capsys):
    one, two, _ = two_dictionaries(150, 120, 30, 0.6)
    two[100:] = two[:20]
    for name, w in (("a", one), ("b", two)):
        np.save(tmp_path / f"{name}.npy", w)
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    assert main(["match", *files, "--figure", str(tmp_path / "c.svg")]) == 0
    out = capsys.readouterr().out
    assert "split" in out
    assert "of the best 100" in out
    assert "number of matches" in (tmp_path / "c.svg").read_text()
    assert main(["match", *files, "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert set(pair["coverage"]["top"]) == {"100", "2000", "all"}
    assert {group["kind"] for group in pair["groups"]} >= {"split"}
