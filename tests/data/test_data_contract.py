"""Every data set keeps the same contract: walk the registry."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from data_makers import write_all

from unseam import BadInput
from unseam.data import DATASETS, config, load_data
from unseam.data.base import Dataset

SMALL = {
    "rooms": {"size": 16, "orientations": 3},
    "manifolds": {"size": 500, "pairs": 2},
    "synth-linear": {"size": 500},
    "synth-nonlinear": {"size": 500},
    "celeba": {"size": 16, "split": "all"},
}
VARIANTS = {
    "torus": ("manifolds", {"kind": "torus", "size": 100, "shear": 0.3}),
    "sprites-16": ("sprites", {"size": 16, "orientations": 5, "xs": 7, "ys": 3}),
    "sprites-grey": ("sprites", {"binary": False, "shapes": 1, "scales": 2}),
    "sprites-colour": ("sprites", {"size": 32, "colour": True}),
    "sprites-noisy": ("sprites", {"size": 32, "noisy": True}),
    "sprites-made": ("sprites", {"size": 32, "background": "made"}),
    "digits-16": ("digits", {"size": 16}),
    "dsprites-coloured": ("dsprites", {"colour": True}),
    "noise": ("sprites", {"size": 16, "noise": 0.1}),
    "grey": ("sprites", {"size": 16, "orientations": 1, "grey": 0.2}),
    "noise-fixed": ("rooms", {"size": 16, "orientations": 1, "noise": 0.3, "noise_fixed": True}),
    "pad": ("mnist", {"pad": 16}),
    "without": ("sprites", {"size": 16, "without": "shape=2&scale>3|x<4"}),
    "share": ("rooms", {"size": 16, "orientations": 1, "share": 0.1}),
    "share-table": ("smallnorb", {"size": 8, "share": 0.5, "subset_seed": 3}),
    "correlate": ("sprites", {"size": 16, "correlate": "x,y=0.2;shape,scale=0.4"}),
    "correlate-continuous": ("manifolds", {"size": 500, "correlate": "w1,*=0.2"}),
    "everything": (
        "sprites",
        {"size": 18, "colour": True, "noise": 0.1, "pad": 16, "without": "x>20", "share": 0.5, "correlate": "x,y=0.1"},
    ),
}
DRAWS = (lambda: None, lambda: torch.Generator().manual_seed(9))
CASES = {**{name: (name, SMALL.get(name, {})) for name in DATASETS}, **VARIANTS}
STOCHASTIC = {"sprites-colour", "sprites-noisy", "sprites-made", "dsprites-coloured", "noise", "everything"}
PARTIAL = {
    "celeba",
    "digits",
    "digits-16",
    "faces",
    "fashion-mnist",
    "mnist",
    "pad",
    "smallnorb",
    "share-table",
    "manifolds",
    "torus",
    "synth-linear",
    "synth-nonlinear",
    "without",
    "share",
    "correlate",
    "correlate-continuous",
    "everything",
}  # fmt: skip  not the full grid of their factors
deterministic = pytest.mark.parametrize("label", [name for name in CASES if name not in STOCHASTIC], indirect=True)
full_grids = pytest.mark.parametrize("label", [name for name in CASES if name not in PARTIAL], indirect=True)


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Small files of the official formats, in a data folder of this module's own."""
    folder = tmp_path_factory.getbasetemp() / "contract"
    monkeypatch.setenv("UNSEAM_DATA", str(folder))
    if not folder.exists():
        write_all(folder)


@pytest.fixture(params=CASES, ids=str)
def label(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def case(label: str) -> tuple[str, dict]:
    return CASES[label]


@pytest.fixture
def data(case: tuple[str, dict]) -> Dataset:
    name, options = case
    return load_data(name, **options)


@pytest.fixture
def index(data: Dataset) -> torch.Tensor:
    some = torch.randint(len(data), (30,), generator=torch.Generator().manual_seed(3))
    return torch.cat([torch.tensor([0, len(data) - 1]), some])


def test_frozen_dataclass_with_the_registered_name(data: Dataset, case: tuple[str, dict]) -> None:
    assert data.name == case[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


def test_a_fixed_attribute_cannot_become_a_parameter():
    """An annotation makes a field of a dataclass: `load_data("mine", likelihood=...)` would silently be accepted."""
    with pytest.raises(TypeError, match=r"Mine.likelihood has an annotation, which would make it a parameter"):

        class Mine(Dataset):
            likelihood: str = "gaussian"


@pytest.mark.parametrize("name", DATASETS)
def test_what_the_contract_fixes_is_not_a_parameter(name: str) -> None:
    """`likelihood: LikelihoodName = "gaussian"` would be a field, so `--data.likelihood`; write `likelihood = ...`."""
    fixed = {"name", "shape", "space", "likelihood", "stochastic"}
    assert {field.name for field in dataclasses.fields(DATASETS[name])} & fixed == set()


def test_batches_have_the_promised_shape_type_and_range(data: Dataset, index: torch.Tensor) -> None:
    x = data.batch(index)
    assert x.shape == (len(index), *data.shape)
    assert x.dtype is torch.float32
    assert x.isfinite().all()
    if len(data.shape) == 3:
        assert x.min() >= 0
        assert x.max() <= 1
        assert x.std() > 0.01
    assert data.likelihood == ("bernoulli" if len(data.shape) == 3 else "gaussian")
    assert data.batch(index[:0]).shape == (0, *data.shape)


def test_same_configuration_same_bytes(data: Dataset, index: torch.Tensor) -> None:
    stored = json.loads(json.dumps(config(data)))
    again = load_data(**stored)
    assert config(again) == config(data)
    seeds = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert torch.equal(data.batch(index, seeds[0]), again.batch(index, seeds[1]))
    assert torch.equal(data.batch(index), again.batch(index))
    assert torch.equal(data.factors(index), again.factors(index))


def is_full_grid(data: Dataset) -> bool:
    return data.space is not None and data.space.discrete and len(data) == data.space.count


def test_the_lists_above_are_right(data: Dataset, label: str) -> None:
    assert data.stochastic == (label in STOCHASTIC)
    assert is_full_grid(data) == (label not in PARTIAL)


def test_generator_matters_exactly_when_stochastic(data: Dataset, index: torch.Tensor) -> None:
    one, two = (data.batch(index, torch.Generator().manual_seed(s)) for s in (1, 2))
    assert torch.equal(one, two) != data.stochastic


def test_a_batch_is_what_its_factors_look_like(data: Dataset, index: torch.Tensor) -> None:
    """Exactly, where the factors say everything; among the rows that share them, where they do not."""
    everything = data.factors(torch.arange(min(len(data), 5000)))
    seen = [data.batch(index, draw()) for draw in DRAWS], [data.observe(data.factors(index), draw()) for draw in DRAWS]
    if len(everything.unique(dim=0)) == len(everything):
        for batch, observed in zip(*seen, strict=True):
            torch.testing.assert_close(batch, observed, rtol=0, atol=1e-6)
        return
    assert not data.stochastic  # rows that share their factors could not be told apart
    rows = data.batch(torch.arange(len(data))).flatten(1)
    for x, factors in zip(seen[1][1].flatten(1), data.factors(index), strict=True):
        alike = (rows == x).all(1).nonzero().flatten()
        assert (data.factors(alike) == factors).all(1).any()


@deterministic
def test_one_row_alone_is_the_same_row(data: Dataset, index: torch.Tensor) -> None:
    torch.testing.assert_close(data.batch(index)[7], data.batch(index[7:8])[0], rtol=0, atol=0)


def test_factors_are_in_their_space(data: Dataset, index: torch.Tensor) -> None:
    space = data.space
    assert space is not None
    factors = data.factors(index)
    assert factors.shape == (len(index), len(space))
    assert factors.dtype is (torch.int64 if space.discrete else torch.float32)
    for column, factor in zip(factors.T, space, strict=True):
        if factor.size is not None:
            assert 0 <= column.min() <= column.max() < factor.size


@full_grids
def test_index_round_trip_on_full_grids(data: Dataset, index: torch.Tensor) -> None:
    back = data.space.index_of(data.factors(index).numpy())
    np.testing.assert_array_equal(back, index.numpy())


@pytest.mark.parametrize("bad", [[-1], [10**9], [0.5], [[0]], [True]], ids=str)
def test_a_bad_index_is_refused(data: Dataset, bad: list) -> None:
    for ask in (data.batch, data.factors):
        with pytest.raises(BadInput, match="index"):
            ask(torch.tensor(bad))


def test_bad_factors_are_refused(data: Dataset) -> None:
    factors = data.factors(torch.tensor([0])).double()
    for broken in (factors[0], factors[:, 1:], factors + torch.nan):
        with pytest.raises(BadInput, match="factor"):
            data.observe(broken)
    if data.space is not None and data.space.discrete:
        for broken in (factors - 1, factors + 10**6, factors + 0.5):
            with pytest.raises(BadInput, match="factor"):
                data.observe(broken)


def test_an_unknown_parameter_is_refused(case: tuple[str, dict]) -> None:
    with pytest.raises(BadInput, match="nonsense"):
        load_data(case[0], nonsense=1)


def test_an_unknown_name_says_what_was_meant() -> None:
    with pytest.raises(BadInput, match="did you mean 'sprites'"):
        load_data("sprite")
