"""Contact sheets: the right images in the right rows, a readable PNG, and nothing half-written."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
import torch
from PIL import Image

from unseam import BadInput
from unseam.data import load_data
from unseam.show import contact_sheet
from unseam.show.pictures import strip


def test_a_sweep_changes_one_factor_only() -> None:
    data = load_data("sprites", size=16)
    row = contact_sheet.factor_sweep(data, data.space, 3, columns=5)
    still = contact_sheet.still(data.space)
    for x, image in zip([0, 8, 16, 23, 31], row.images, strict=True):
        factors = still.clone()
        factors[3] = x
        assert torch.equal(image, data.observe(factors[None])[0])


def test_given_rows_are_picked_by_value() -> None:
    table = np.array([[2, 0.5], [0, 0.1], [1, 0.9], [2, 0.7], [0, 0.3]])
    images = np.linspace(0, 1, 5)[:, None, None] * np.ones((5, 8, 8))
    data = load_data(images, factors=table)
    shades = contact_sheet.factor_sweep(data, data.space, 0).images[:, 0, 0, 0]
    np.testing.assert_allclose(shades, [0.25, 0.5, 0.0])
    shades = contact_sheet.factor_sweep(data, data.space, 1, columns=3).images[:, 0, 0, 0]
    np.testing.assert_allclose(shades, [0.25, 0.0, 0.5])


def test_strips_put_images_side_by_side() -> None:
    line = strip(torch.zeros(2, 3, 4, 4), columns=3, gap=2)
    assert line.shape == (4, 3 * (4 + 2), 3)
    assert line[:, :4].max() == 0
    assert line[:, 4:6].min() == 255
    assert line[:, 12:].min() == 255


def test_a_plane_keeps_the_two_largest_variances() -> None:
    x = torch.randn(500, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 9, 1, 5, 1, 1.0])
    points, _ = contact_sheet.plane_points(x)
    np.testing.assert_allclose(points.std(0), [9, 5], rtol=0.1)
    assert contact_sheet.plane_points(torch.zeros(3, 1))[0].shape == (3, 2)
    assert contact_sheet.plane_points(torch.zeros(1, 5))[0].shape == (1, 2)


@pytest.mark.parametrize("name", ["sprites", "digits", "ring", "manifolds", "unlabelled images", "unlabelled vectors"])
def test_sheets_are_readable_pictures(tmp_path: Path, name: str) -> None:
    arrays = {"unlabelled images": np.eye(8)[None].repeat(3, 0), "unlabelled vectors": np.eye(9)}
    data = load_data(arrays[name]) if name in arrays else load_data(name)
    path = contact_sheet.write_contact_sheet(data, tmp_path / "sheet.png")
    with Image.open(path) as picture:
        assert min(picture.size) > 150
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10
    assert [p.name for p in tmp_path.iterdir()] == ["sheet.png"]


@pytest.mark.parametrize("name", ["sheet.jpg", "sheet", "missing/sheet.png"])
def test_bad_places_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="out="):
        contact_sheet.write_contact_sheet(load_data("ring"), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_sheet_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    (tmp_path / "sheet.png").write_bytes(b"old")

    def broken(self: Figure, file: BinaryIO, **_: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(KeyboardInterrupt):
        contact_sheet.write_contact_sheet(load_data("ring"), tmp_path / "sheet.png")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]
