"""Wrappers against what they promise: which pixels, which rows, how dependent the factors become."""

import hashlib
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import torch
from data_makers import write_smallnorb

from unseam import BadInput
from unseam.cli.common import named_data
from unseam.data import DATASETS, config, load_data
from unseam.data.base import CommonOptions, Dataset
from unseam.data.registry import wrapper_options
from unseam.data.wrap import ORDER, WRAPPERS, Correlated, Noise, Shared, Without, whole_data

SEEDED = {  # SHA-256 of batches as they were before the variants became wrappers
    "colour": ({"colour": True}, "c3fa135586845e4e"),
    "noisy": ({"noisy": True}, "9727241c9de56cc2"),
    "noisy colour": ({"noisy": True, "colour": True}, "49f6e4131d7e2ccf"),
    "background": ({"background": "picture.npy"}, "624a875c5e75b4dc"),
    "background colour": ({"background": "picture.npy", "colour": True}, "532e75d89bd35d61"),
}


@pytest.mark.parametrize("name", SEEDED)
def test_the_variants_of_sprites_have_the_bytes_they_always_had(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("picture.npy", np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    asked, digest = SEEDED[name]
    data = load_data("sprites", size=32, **asked)
    index = torch.arange(0, len(data), len(data) // 37)
    batches = [data.batch(index, draw).numpy().tobytes() for draw in (None, torch.Generator().manual_seed(4))]
    content = b"".join([*batches, data.factors(index).numpy().tobytes()])
    assert hashlib.sha256(content).hexdigest()[:16] == digest


def test_what_any_set_can_be_asked_is_what_the_wrappers_take() -> None:
    taken = {
        name: hint for kind in WRAPPERS for name, hint in get_type_hints(kind).items() if name in wrapper_options(kind)
    }
    assert taken == get_type_hints(CommonOptions)
    for kind in DATASETS.values():
        assert not set(taken) & set(kind.__dataclass_fields__)


def test_old_configurations_of_sprites_still_load() -> None:
    old = {"name": "sprites", "size": 16, "binary": None, "colour": False, "noisy": False, "background": None}
    assert load_data(**old) == load_data("sprites", size=16)
    assert load_data(**{**old, "colour": True}).shape == (3, 16, 16)
    assert "colour" not in config(load_data(**old))


def test_flags_of_the_command_line_reach_the_wrappers() -> None:
    asked = {"noise": "0.1", "share": "0.5", "pad": "32", "colour": "true", "without": "x>3", "noise_fixed": "yes"}
    data = named_data("sprites", {"size": "16", **asked})
    stored = config(data)
    assert (stored["noise"], stored["share"], stored["pad"], stored["colour"]) == (0.1, 0.5, 32, True)
    assert data.shape == (3, 32, 32)


def test_noise_is_uniform_and_folded_back() -> None:
    data, plain = load_data("sprites", noise=0.2), load_data("sprites")
    index = torch.arange(0, len(data), 5000)
    x, m = data.batch(index, torch.Generator().manual_seed(0)), plain.batch(index)
    change = (x - m).abs()
    assert change.max() <= 0.2 + 1e-6
    assert x.min() >= 0
    assert x.max() <= 1
    assert abs(change.mean() - 0.1) < 1e-3  # |U(-eps, eps)|
    assert abs(x[m == 0].mean() - 0.1) < 1e-3
    middle = torch.full((1, 1, 64, 64), 0.5)
    moved = data.paint(middle, torch.zeros(1, 1), torch.Generator().manual_seed(0)) - middle
    assert abs(moved.mean()) < 0.01
    assert abs(moved.std() - 0.2 / 3**0.5) < 0.005


def test_fixed_noise_belongs_to_the_image() -> None:
    data = load_data("sprites", size=16, noise=0.2, noise_fixed=True)
    a, b = data.batch(torch.tensor([5, 9])), data.batch(torch.tensor([9, 5]), torch.Generator().manual_seed(1))
    assert torch.equal(a, b.flip(0))
    assert not torch.equal(a[0] - load_data("sprites", size=16).batch(torch.tensor([5]))[0], a[1])
    bare = load_data(np.zeros((4, 8, 8), np.uint8), noise=0.5, noise_fixed=True).batch(torch.arange(4))
    assert len(bare.flatten(1).unique(dim=0)) == 4


def test_padding_keeps_the_picture_in_the_middle() -> None:
    array = np.random.default_rng(0).integers(1, 256, (3, 20, 17, 3), dtype=np.uint8)
    data, plain = load_data(array, pad=16), load_data(array)
    x = data.batch(torch.arange(3))
    assert data.shape == (3, 32, 32)
    assert torch.equal(x[:, :, 6:26, 7:24], plain.batch(torch.arange(3)))
    assert (x > 0).sum() == array.size
    assert load_data(array[:, :16, :16], pad=16).shape == (3, 16, 16)


def test_any_grey_set_can_be_dressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = load_data("digits")
    x, m = load_data("digits", noisy=True).batch(torch.arange(50)), digits.batch(torch.arange(50))
    assert (x >= m - 1e-6).all()
    seen = load_data("digits", background="made").batch(torch.arange(50))
    assert seen.std() > 0.05
    with pytest.raises(BadInput, match=r"grey images \(1, H, W\), but 'rooms' has \(3, 16, 16\)"):
        load_data("rooms", size=16, colour=True)
    with pytest.raises(BadInput, match=r"'made' is 274x350 pixels; it must be at least 300x300"):
        load_data("sprites", size=300, background="made")


def test_conditions_leave_out_exactly_what_they_say() -> None:
    whole = load_data("sprites", size=16)
    factors = whole.factors(torch.arange(len(whole))).numpy()
    shape, scale, _, x, y = factors.T
    cases = {
        "shape=2&scale>3": (shape == 2) & (scale > 3),
        "shape == 2 & scale >= 4 | x<2": ((shape == 2) & (scale >= 4)) | (x < 2),
        "y!=3": y != 3,
        "x<=30": x <= 30,
    }
    for text, gone in cases.items():
        data = load_data("sprites", size=16, without=text)
        np.testing.assert_array_equal(data.row_numbers, np.flatnonzero(~gone))
        np.testing.assert_array_equal(data.left_out, np.flatnonzero(gone))
        index = torch.tensor([0, len(data) - 1, 77])
        assert torch.equal(data.batch(index), whole.batch(data.row_numbers[index]))
        assert torch.equal(data.factors(index), whole.factors(data.row_numbers[index]))


def test_a_share_is_of_combinations_not_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path))
    write_smallnorb(tmp_path / "smallnorb", count=2000)
    data = load_data("smallnorb", size=8, share=0.3)
    whole = data.of.factors(torch.arange(len(data.of)))
    seen = {tuple(row) for row in data.factors(torch.arange(len(data))).tolist()}
    unseen = {tuple(row) for row in whole[data.left_out].tolist()}
    assert not seen & unseen
    assert len(seen) == round(0.3 * len(whole.unique(dim=0)))
    grid = load_data("ring", share=0.3)
    assert len(grid) == round(0.3 * 128)
    assert not torch.equal(grid.row_numbers, load_data("ring", share=0.3, subset_seed=1).row_numbers)


@pytest.mark.parametrize("sigma", [0.1, 0.4])
def test_pairs_of_factors_have_the_probability_asked_for(sigma: float) -> None:
    data = load_data("sprites", size=16, correlate=f"x,y={sigma}")
    *_, x, y = data.factors(torch.arange(len(data))).T.numpy()
    seen = np.histogram2d(x, y, bins=[np.arange(33), np.arange(33)])[0]
    c = np.arange(32) / 31
    p = np.exp(-((c[:, None] - c) ** 2) / (2 * sigma**2))
    expected = p * 720  # shape x scale x orientation: each kept with this probability
    assert (seen[p < 1e-9] == 0).all()
    assert (seen[p == 1] == 720).all()
    some = (p > 0.02) & (p < 0.98)
    z = (seen - expected)[some] / np.sqrt(720 * p * (1 - p))[some]
    assert abs(z).max() < 6
    assert 0.8 < (z**2).mean() < 1.2
    shape = data.factors(torch.arange(len(data)))[:, 0].bincount() / len(data)
    assert (shape - 1 / 3).abs().max() < 0.01  # what is not named stays as it was


def test_one_factor_with_all_and_continuous_factors() -> None:
    data = load_data("manifolds", size=20_000, pairs=2, correlate="w1,*=0.1")
    r = np.corrcoef(data.factors(torch.arange(len(data))).T.numpy())
    assert r[0, 1:].min() > 0.4
    plain = np.corrcoef(load_data("manifolds", size=20_000, pairs=2).factors(torch.arange(20_000)).T.numpy())
    assert abs(plain[0, 1:]).max() < 0.05


def test_factors_whose_ends_were_left_out_are_correlated_over_what_is_left() -> None:
    data = load_data("sprites", size=16, shapes=1, orientations=1, without="x<8|x>23|y<13|y>18", correlate="x,y=0.1")
    *_, x, y = data.factors(torch.arange(len(data))).T.numpy()
    assert (x.min(), x.max(), y.min(), y.max()) == (8, 23, 13, 18)  # not the middle of x, where y happens to lie
    assert np.corrcoef(x, y)[0, 1] > 0.9


def test_every_combination_can_still_be_observed() -> None:
    data = load_data("sprites", size=16, correlate="x,y=0.05", without="shape=0")
    never = torch.tensor([[0, 0, 0, 0, 31]])
    assert torch.equal(data.observe(never), load_data("sprites", size=16).observe(never))


def test_the_rows_that_two_subsets_leave_are_known_in_the_whole() -> None:
    data = load_data("ring", without="circle=0", share=0.5)
    full, kept = whole_data(data)
    assert torch.equal(full.factors(kept), data.factors(torch.arange(len(data))))


BAD = [
    ({"without": "shap=2"}, "did you mean 'shape'"),
    ({"without": "shape"}, "not a condition"),
    ({"without": "shape=e"}, "not a condition"),
    ({"without": ""}, "not a condition"),
    ({"without": "x>=0"}, "^without='x>=0' leaves no row of the"),
    ({"without": "shape=9"}, "without='shape=9' leaves nothing out; .*shape 0..2"),
    ({"share": 0.0}, "share=0.0 must be above 0"),
    ({"share": 1.5}, "share=1.5"),
    ({"correlate": "x=0.1"}, "not a pair"),
    ({"correlate": "x,z=0.1"}, "correlate: factor='z'"),
    ({"correlate": "x,x=0.1"}, "two different"),
    ({"correlate": "x,y=0"}, "at least 0.001"),
    ({"correlate": "x,y"}, "not a pair"),
    ({"noise": 2.0}, "noise=2.0"),
    ({"noise_fixed": True}, "noise=0.0"),
    ({"pad": 0}, "pad=0"),
]


@pytest.mark.parametrize(("asked", "reason"), BAD, ids=[str(asked) for asked, _ in BAD])
def test_what_cannot_be_done_is_refused_in_one_line(asked: dict, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as error:
        load_data("sprites", size=16, **asked)
    assert "\n" not in str(error.value)


def test_vectors_and_data_without_factors_are_refused() -> None:
    for asked in ({"noise": 0.1}, {"pad": 16}, {"colour": True}):
        with pytest.raises(BadInput, match="ring"):
            load_data("ring", **asked)
    for asked in ({"share": 0.5}, {"without": "x=1"}, {"correlate": "x,y=1"}):
        with pytest.raises(BadInput, match="no factors"):
            load_data(np.zeros((4, 8, 8)), **asked)


def test_wrappers_go_round_in_one_order() -> None:
    assert tuple(kind.__name__ for kind in WRAPPERS) == ORDER
    base: Dataset = load_data("sprites", size=16)
    data = Correlated(Without(Noise(base, 0.1), "x=0"), "x,y=0.4")
    assert config(load_data(**config(data))) == config(data)
    with pytest.raises(BadInput, match="Noise cannot go round Without"):
        Noise(Without(base, "x=0"), 0.1)
    with pytest.raises(BadInput, match="subset_seed=1 differs"):
        Correlated(Shared(base, 0.5, 0), "x,y=1", 1)
    with pytest.raises(BadInput, match="Without cannot go round Without"):
        Without(Without(base, "x=0"), "y=0")
