"""Grids: the published numbering, pieces, and what is refused."""

from pathlib import Path

import pytest

from unseam.errors import BadInput
from unseam.study.grid import PRESETS, Grid, from_json, load_grid

BODY = """
seeds = "0..2"
together = 2
[data.ring]
name = "ring"
[methods.beta-vae]
beta = [1, 4]
[settings]
steps = 10
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    return path


def test_published_model_numbers() -> None:
    """model_num = 1800 data + 50 setting + seed; settings of 0-5 beta-VAE ... 30-35 AnnealedVAE (Locatello 2019)."""
    grid = load_grid("locatello")
    assert len(grid.models) == 12_600
    for number, data, method, strength, seed in (
        (0, "dsprites", "beta-vae", 1, 0),
        (1800 * 1 + 50 * 5 + 49, "dsprites-colour", "beta-vae", 16, 49),
        (1800 * 2 + 50 * 11 + 7, "dsprites-noisy", "factor-vae", 100, 7),
        (1800 * 4 + 50 * 12 + 1, "smallnorb", "dip-vae-i", 1, 1),
        (1800 * 5 + 50 * 20 + 3, "cars3d", "dip-vae-ii", 5, 3),
        (1800 * 6 + 50 * 29 + 0, "shapes3d", "beta-tcvae", 10, 0),
        (12_599, "shapes3d", "annealed-vae", 100, 49),
    ):
        model = grid.models[number]
        assert (model.number, model.data, model.method.name, model.strength, model.seed) == (
            number, data, method, strength, seed,
        )  # fmt: skip


def test_a_selection_keeps_its_numbers_and_trains_alone() -> None:
    grid = load_grid("locatello", (3, 1800))
    assert [m.number for m in grid.models] == [3, 1800]
    assert [len(p.models) for p in grid.pieces] == [1, 1]
    with pytest.raises(BadInput, match=r"12600 is not in locatello; its models are 0\.\.12599"):
        _ = load_grid("locatello", (12_600,)).models


def test_the_hour_preset_has_six_methods_of_six_strengths_on_three_sets() -> None:
    grid = load_grid("hour")
    assert len(grid.data) == 3
    assert [len(m.strengths) for m in grid.methods] == [6] * 6
    assert 900 <= len(grid.models) <= 1100


def test_the_evening_preset_has_600_models_of_six_methods_on_sprites_and_rooms() -> None:
    grid = load_grid("evening")
    assert [data["name"] for data in grid.data.values()] == ["sprites", "rooms"]
    assert [len(m.strengths) for m in grid.methods] == [5] * 6
    assert len(grid.models) == 600
    assert not {100, 101} & set(grid.seeds)  # the seeds that chose its strengths


def test_strengths_are_stacked_and_seeds_come_in_blocks(tmp_path: Path) -> None:
    grid = load_grid(written(tmp_path, BODY))
    assert [[(m.strength, m.seed) for m in p.models] for p in grid.pieces] == [
        [(1, 0), (1, 1), (4, 0), (4, 1)],
        [(1, 2), (4, 2)],
    ]


@pytest.mark.parametrize("change", ["steps = 11", "steps = 10\nlr = 1e-3", "steps = 10\n[evaluation]\npoints = 20"])
def test_a_piece_is_named_by_all_it_depends_on(tmp_path: Path, change: str) -> None:
    one = load_grid(written(tmp_path, BODY)).pieces
    two = load_grid(written(tmp_path, BODY.replace("steps = 10", change))).pieces
    assert not {p.name for p in one} & {p.name for p in two}


def test_a_piece_keeps_its_name_when_others_are_added(tmp_path: Path) -> None:
    more = BODY.replace("[settings]", "[methods.vae]\nobjective = 'beta-vae'\nbeta = [1]\n[settings]")
    one, two = load_grid(written(tmp_path, BODY)), load_grid(written(tmp_path, more))
    assert {p.name for p in one.pieces} < {p.name for p in two.pieces}


@pytest.mark.parametrize("name", PRESETS)
def test_a_grid_survives_json(name: str) -> None:
    import json

    grid = load_grid(name)
    again = from_json(json.loads(json.dumps(grid.to_json())))
    assert [p.name for p in again.pieces[:50]] == [p.name for p in grid.pieces[:50]]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("beta = [1, 4]", "beta = 1", "has 0 lists"),
        ("beta = [1, 4]", "beta = []", "numbers that differ"),
        ("beta = [1, 4]", "beta = [1, 1]", "numbers that differ"),
        ("beta = [1, 4]", 'beta = ["a"]', "numbers that differ"),
        ('seeds = "0..2"', 'seeds = "2..0"', "seeds="),
        ('seeds = "0..2"', "seeds = [0, 0]", "that differ"),
        ("together = 2", "together = true", "together=True"),
        ('name = "ring"', "circles = 4", "must say which data it is"),
        ("[data.ring]", '[data."../ring"]', "cannot be a folder's"),
        ("steps = 10", "steps = 10\nworkers = 2", "settings.workers is given by the study"),
        ("steps = 10", "steps = 10\nbeta = 2", "settings.beta is given by the study"),
        ("[settings]", "[evaluation]\nrows = 'many'\n[settings]", "must be a whole number"),
        ("[settings]", "[evaluation]\nlabels = 10\n[settings]", "must be a list"),
        ("[settings]", "[evaluation]\ntrees = 'slow'\n[settings]", "evaluation.trees='slow' is unknown"),
        ('seeds = "0..2"', 'name = "locatello"', "is the name of a preset"),
        ("[methods.beta-vae]", "[methods.beta-vea]", "did you mean 'beta-vae'"),
        ('seeds = "0..2"', 'seeds = "a"', "seeds="),
        ("together = 2", "together = -1", "together=-1"),
        ("together = 2", "togther = 2", "did you mean 'together'"),
        ("[settings]", "[evaluation]\nrow = 1\n[settings]", "did you mean 'rows'"),
        ("[settings]", "[evaluation]\nrows = 100\n[settings]", "10000 labels are requested, but rows=100"),
        ("[data.ring]", "[dta.ring]", "'dta'"),
        ("[data.ring]", "[data]\nring = 3\n[data.x]", "must be an object"),
        ("beta = [1, 4]", "beta = [1, 1.0]", "numbers that differ"),
        ('seeds = "0..2"', 'seeds = "0..99999999999"', "at most 100,000"),
        ("= ", "", "is not valid TOML"),
    ],
)
def test_bad_grids_are_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        load_grid(written(tmp_path, BODY.replace(old, new)))


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(BadInput, match=r"neither a preset \(evening, hour, locatello, minute\) nor a TOML file"):
        load_grid("our")
    assert isinstance(load_grid("minute"), Grid)
