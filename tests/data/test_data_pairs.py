"""Pairs of observations, for every data set with a factor space."""

import math

import numpy as np
import pytest
import torch

from unseam.axes import Factor
from unseam.data import DATASETS, load_data
from unseam.data.base import GridDataset, factor_rows
from unseam.data.pairs import Pairing, following, partners, varying
from unseam.errors import BadInput
from unseam.train import fit

SMALL = {
    "sprites": {"size": 16, "orientations": 4, "xs": 8, "ys": 4},
    "rooms": {"size": 16},
    "manifolds": {"size": 500},
    "synth-linear": {"size": 500},
    "synth-nonlinear": {"size": 500},
    "ring": {},
}
HOWS = [Pairing("k", change=1), Pairing("k", change=2), Pairing("k"), Pairing("laplace"), Pairing("share")]


def made(name, pairing, seed=0, among=None, count=300):
    data = load_data(name, **SMALL[name])
    among = torch.arange(len(data)) if among is None else among
    rows = among[torch.randint(len(among), (count,), generator=torch.Generator().manual_seed(1))]
    return data, rows, partners(data, rows, pairing, torch.Generator().manual_seed(seed), among)


def test_every_procedural_set_with_factors_is_walked():
    here = {n for n, kind in DATASETS.items() if getattr(kind, "space", None) is not None and n in SMALL}
    assert here == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("pairing", HOWS, ids=str)
def test_the_second_of_a_pair_is_an_observation_of_the_set(name, pairing):
    data, rows, found = made(name, pairing)
    assert found.factors is not None
    factor_rows(found.factors, data.space)  # inside the space
    assert torch.equal(found.changed, found.factors != data.factors(rows))
    if isinstance(data, GridDataset):
        assert torch.equal(data.factors(found.rows), found.factors)
    else:
        assert found.rows is None
    assert data.observe(found.factors[:2], torch.Generator()).shape[1:] == data.shape


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("pairing", HOWS, ids=str)
def test_the_same_generator_makes_the_same_pairs(name, pairing):
    _, _, one = made(name, pairing, seed=3)
    _, _, same = made(name, pairing, seed=3)
    _, _, other = made(name, pairing, seed=4)
    assert torch.equal(one.factors, same.factors)
    assert not torch.equal(one.factors, other.factors)


@pytest.mark.parametrize("name", SMALL)
def test_k_factors_change_and_share_keeps_one(name):
    F = len(varying(made(name, Pairing("k", change=1))[0].space))
    assert set(made(name, Pairing("k", change=1))[2].changed.sum(1).tolist()) == {1}
    assert set(made(name, Pairing("k"))[2].changed.sum(1).tolist()) == set(range(1, max(F, 2)))
    assert set(made(name, Pairing("share"))[2].changed.sum(1).tolist()) == {F - 1}


def test_every_factor_gets_its_turn_and_every_value():
    data, _, found = made("sprites", Pairing("k", change=1), count=4000)
    turns = found.changed.float().mean(0)[varying(data.space)]
    assert (turns - 1 / len(varying(data.space))).abs().max() < 0.03  # 4 standard deviations of 4,000 draws
    rows = torch.zeros(4000, dtype=torch.long)
    second = partners(data, rows, Pairing("k", change=1), torch.Generator().manual_seed(0), torch.arange(len(data)))
    assert set(second.factors[second.changed[:, 3], 3].tolist()) == set(range(1, 8))


def test_laplace_steps_have_the_stated_law_and_categories_stay():
    data, rows, found = made("sprites", Pairing("laplace", rate=2.0), count=20_000)
    assert not found.changed[:, 0].any()  # shape
    assert found.changed.any(1).all()
    first = data.factors(rows)
    start = first[:, 3] == 3  # x has 8 values
    counts = torch.bincount(found.factors[start, 3], minlength=8).double()
    law = torch.exp(-2.0 * (torch.arange(8) - 3).abs().double() / math.log(8))
    stay = counts[3] / counts.sum()  # rows where nothing moved were drawn again, which makes standing still rarer
    moved = counts.clone()
    moved[3], law[3] = 0, 0
    assert (moved / moved.sum() - law / law.sum()).abs().max() < 0.04
    assert 0.1 < stay < 0.6


def test_partners_on_a_grid_stay_on_their_side_of_the_split():
    data = load_data("sprites", **SMALL["sprites"])
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
    for among in (order[: len(data) // 10], order[len(data) // 10 :]):
        _, _, found = made("sprites", Pairing("k"), among=among)
        assert torch.isin(found.rows, among).all()
        assert found.changed.any(1).float().mean() > 0.95


@pytest.mark.parametrize("options", [{"without": "y<1|x>5"}, {"noise": 0.1}, {"noise": 0.1, "without": "y<1"}], ids=str)
def test_partners_in_wrapped_data_are_rows_of_it(options):
    """A row that was left out is nobody's partner, and the row found is the one with the factors that were drawn."""
    data = load_data("sprites", **SMALL["sprites"], **options)
    among = torch.arange(0, len(data), 2)
    found = partners(data, among[:200], Pairing("k"), torch.Generator().manual_seed(0), among)
    assert torch.isin(found.rows, among).all()
    assert torch.equal(data.factors(found.rows), found.factors)
    assert found.changed.any(1).float().mean() > 0.95


def test_continuous_factors_move_by_their_own_range():
    data = load_data("synth-linear", size=500)
    rows = torch.arange(500)
    first = data.factors(rows)
    found = partners(data, rows, Pairing("laplace"), torch.Generator().manual_seed(0), rows)
    step = (found.factors - first).abs() / (first.amax(0) - first.amin(0))
    assert (found.factors <= first.amax(0)).all()
    assert (found.factors >= first.amin(0)).all()
    assert (step.mean(0) - 0.1).abs().max() < 0.02  # the mean of a Laplace of scale 0.1


def test_time_follows_the_rows_that_are_there():
    among = torch.tensor([7, 1, 4, 2])
    assert following(torch.tensor([1, 2, 4, 7]), among).tolist() == [2, 4, 7, 4]


def test_time_knows_what_changed_where_factors_are_known(tmp_path):
    data = load_data("ring", circles=2, points=3)
    rows = torch.arange(6)
    found = partners(data, rows, Pairing("time"), torch.Generator(), rows)
    assert found.rows.tolist() == [1, 2, 3, 4, 5, 4]
    assert found.changed.tolist() == [[0, 1], [0, 1], [1, 1], [0, 1], [0, 1], [0, 1]]
    few = {"network": "linear", "latents": 2, "steps": 3, "batch": 4, "holdout": 0.0, "workers": 1, "show": False}
    assert fit(data, "ada-gvae", pairs="time", out=tmp_path, **few).table()["status"].tolist() == ["finished"]


def test_bad_pairings_are_refused_by_name():
    for bad, word in (({"how": "kk"}, "pairs"), ({"change": 0}, "change"), ({"rate": 0.0}, "rate")):
        with pytest.raises(BadInput, match=word):
            Pairing(**bad)
    with pytest.raises(BadInput, match="change=9"):
        made("ring", Pairing("k", change=9))
    assert Factor("x", 3).size == 3


def test_a_table_of_pairs(tmp_path):
    """Partners come from the table, in either order, and only from the rows that are allowed."""
    data = load_data("sprites", size=16, shapes=1, scales=1, orientations=1, xs=4, ys=4)
    np.savetxt(tmp_path / "pairs.csv", [[0, 5], [0, 6], [7, 1]], fmt="%d", delimiter=",")
    rows = torch.tensor([0] * 50 + [1, 2, 5])
    draw = torch.Generator().manual_seed(0)
    found = partners(data, rows, Pairing(str(tmp_path / "pairs.csv")), draw, torch.arange(16))
    assert set(found.rows[:50].tolist()) == {5, 6}
    assert found.rows[50:].tolist() == [7, 2, 0]  # a row that is in no pair is its own partner
    assert torch.equal(found.changed, data.factors(found.rows) != data.factors(rows))
    among = torch.tensor([0, 1, 2, 5])
    held = partners(data, rows, Pairing(str(tmp_path / "pairs.csv")), draw, among)
    assert held.rows.tolist() == [5] * 50 + [1, 2, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [("0,99\n", "between 0 and 15"), ("0,1,2\n", "two columns"), ("a,b\n", "0 rows"), ("a,b\n0,x\n", "words")],
)
def test_a_bad_table_of_pairs_is_named(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    data = load_data("sprites", size=16, shapes=1, scales=1, orientations=1, xs=4, ys=4)
    rows = torch.arange(4)
    with pytest.raises(BadInput, match=message):
        partners(data, rows, Pairing(str(path)), torch.Generator(), rows)
