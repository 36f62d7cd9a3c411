"""Traversals to keep: which latents, in which order, from where, and what the files hold."""

import numpy as np
import pytest
import torch
from PIL import Image

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.runs.represent import represent
from unseam.show.film import film, write_film


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    widths = {"encoder": (32,), "decoder": (32,)}
    return unseam.fit("sprites", "beta-vae", beta=1.0, steps=300, network="mlp", latents=3, lr=3e-3, **widths,
                      data_parameters={"size": 16, "shapes": 1, "orientations": 1}, workers=1,
                      out=tmp_path_factory.mktemp("film") / "run")  # fmt: skip


def test_rows_are_latents_by_information_and_frames_their_values(run):
    shown = film(run, every=True, steps=5)
    model = run.model(0)
    seen = represent(model, run.data, run.split("held-out"))
    best = int(seen.posterior.kl_per_latent().mean(0).argmax())
    assert shown.names[0] == f"z{best}"
    assert shown.frames.shape == (3, 5, 1, 16, 16)
    between = (shown.frames[0, 0] - shown.frames[0, -1]).abs().max()
    assert between > 0.1  # its two ends differ


def test_the_way_from_row_to_row_ends_at_their_reconstructions(run):
    shown = film(run, row=3, to=50, steps=4)
    seen = represent(run.model(0), run.data, torch.tensor([3, 50]))
    with torch.no_grad():
        ends = run.model(0).mean(seen.posterior.mean)
    torch.testing.assert_close(shown.frames[0, [0, -1]], ends)


def test_files_hold_the_frames_there_and_back(run, tmp_path):
    shown = film(run, every=True, steps=4)
    files = write_film(shown, tmp_path / "t", gif=True)
    side = 96 + 2
    with Image.open(files["grid"]) as grid, Image.open(files["gif"]) as gif:
        assert grid.size == (4 * side, 3 * side)
        assert gif.n_frames == 6  # 0 1 2 3 2 1
        assert np.asarray(grid)[0, -1] == 255


@pytest.mark.parametrize(("wrong", "told"), [
    ({"row": 10**9}, "is not a row of the data"), ({"to": 3}, "give the row where it starts"),
    ({"row": 0, "to": -1}, "to=-1"), ({"steps": 1}, "steps=1"), ({"member": 7}, "member=7"),
])  # fmt: skip
def test_what_cannot_be_shown_is_said(run, wrong, told):
    with pytest.raises(BadInput, match=told):
        film(run, **wrong)


def test_a_way_has_a_file_of_its_own(run):
    for words in ([], ["--row", "1", "--to", "3"]):
        assert main(["traverse", str(run.folder), "--member", "0", *words]) == 0
    names = {path.name for path in (run.folder / "traversals").iterdir()}
    assert {"member-0.png", "member-0-row-1-to-3.png"} <= names


def test_a_table_gets_curves_of_its_columns(tmp_path, capsys):
    run = unseam.fit("synth-linear", steps=5, network="linear", latents=2, data_parameters={"size": 200},
                     out=tmp_path / "run")  # fmt: skip
    assert main(["traverse", str(run.folder), "--all", "--json"]) == 0
    assert (run.folder / "traversals" / "member-0.png").stat().st_size > 5000
    assert main(["traverse", str(run.folder), "--gif"]) == 2
    assert "not images" in capsys.readouterr().err
