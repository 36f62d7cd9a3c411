"""The atlas against a direct drawing of every pixel, and the variants against what they promise."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unseam import BadInput
from unseam.data import load_data
from unseam.data.sets.sprites import SHAPES, Sprites


def brute_force(data: Sprites, factors: list[int], fine: int, binary: bool) -> np.ndarray:
    """One image from the definition: is each of fine x fine points of each pixel inside the sprite?"""
    shape, scale, orientation, x, y = factors
    s = np.linspace(0.5, 1, 6)[scale]
    angle = np.linspace(0, 2 * math.pi, 40)[orientation]
    points = (np.arange(data.size * fine) + 0.5) * 64 / (data.size * fine)
    dx, dy = (points - np.linspace(16.5, 47.5, 32)[x])[None, :], (points - np.linspace(16.5, 47.5, 32)[y])[:, None]
    u = (math.cos(angle) * dx + math.sin(angle) * dy) / s
    v = (math.cos(angle) * dy - math.sin(angle) * dx) / s
    inside = list(SHAPES.values())[shape](u, v)
    grey = inside.reshape(data.size, fine, data.size, fine).mean((1, 3))
    return (grey > 0.5).astype(float) if binary else np.round(255 * grey) / 255


@pytest.mark.parametrize(("size", "fine"), [(64, 4), (32, 8), (16, 16), (128, 4)])
def test_images_are_what_the_definition_draws(size: int, fine: int) -> None:
    data = Sprites(size=size)
    index = torch.randint(len(data), (25,), generator=torch.Generator().manual_seed(size))
    factors = data.factors(index)
    for f, image in zip(factors.tolist(), data.batch(index)[:, 0].numpy(), strict=True):
        truth = brute_force(data, f, fine, binary=size >= 64)
        # float32 against float64 can put a point on the edge to the other side: allow two points of one pixel
        assert np.mean(abs(image - truth) > 2.1 / fine**2) <= 1 / size**2
        assert abs(image - truth).mean() < 2e-3


def test_every_corner_of_the_grid_keeps_the_whole_sprite() -> None:
    data = Sprites(orientations=8)
    corners = [[s, 5, o, x, y] for s in range(3) for o in range(8) for x in (0, 31) for y in (0, 31)]
    middle = [[s, 5, o, 15, 15] for s, _, o, _, _ in corners]
    area = data.observe(torch.tensor(corners)).sum((1, 2, 3))
    assert torch.equal(area, data.observe(torch.tensor(middle)).sum((1, 2, 3)))


@pytest.mark.parametrize("size", [16, 32, 64])
def test_neighbours_differ_in_scale_x_and_y(size: int) -> None:
    data = Sprites(size=size, orientations=1)
    for axis in (1, 3, 4):
        for middle in ([0, 0, 0, 9, 20], [1, 2, 0, 9, 20], [2, 5, 0, 9, 20]):
            line = torch.tensor(middle).repeat(data.space.sizes[axis], 1)
            line[:, axis] = torch.arange(len(line))
            images = data.observe(line)
            assert (images[1:] - images[:-1]).abs().sum((1, 2, 3)).min() > 0


def test_moving_by_one_step_moves_by_one_pixel_at_64() -> None:
    data = Sprites()
    a, right, down = data.observe(torch.tensor([[2, 4, 7, 10, 20], [2, 4, 7, 11, 20], [2, 4, 7, 10, 21]]))[:, 0]
    assert torch.equal(a.roll(1, 1), right)
    assert torch.equal(a.roll(1, 0), down)


def test_turning_a_quarter_turns_the_picture() -> None:
    data = Sprites(orientations=41, xs=1, ys=1, binary=False)
    ellipse = data.observe(torch.tensor([[1, 5, 0, 0, 0], [1, 5, 10, 0, 0], [1, 5, 40, 0, 0]]))[:, 0]
    torch.testing.assert_close(ellipse[0].rot90(), ellipse[1], rtol=0, atol=0.13)
    torch.testing.assert_close(ellipse[0], ellipse[2], rtol=0, atol=0.13)


def test_colours_are_in_the_upper_half_and_one_per_image() -> None:
    data = load_data("sprites", colour=True)
    index = torch.arange(0, len(data), 30_000)
    x, m = data.batch(index, torch.Generator().manual_seed(0)), Sprites().batch(index)
    assert (x * (1 - m)).max() == 0
    inside = x.where(m == 1, torch.nan).flatten(2)
    low, high = inside.nan_to_num(2).amin(2), inside.nan_to_num(-1).amax(2)
    assert torch.equal(low, high)
    assert low.min() >= 0.5
    assert low.std() > 0.1


def test_noise_fills_the_background_only() -> None:
    data = load_data("sprites", noisy=True)
    index = torch.arange(0, len(data), 30_000)
    x, m = data.batch(index, torch.Generator().manual_seed(0)), Sprites().batch(index).expand(-1, 3, -1, -1)
    assert (x[m == 1] == 1).all()
    noise = x[m == 0]
    assert abs(noise.mean() - 0.5) < 0.01
    assert abs(noise.std() - 12**-0.5) < 0.01


@pytest.mark.parametrize("ending", ["png", "npy"])
def test_background_crops_are_seen_around_the_sprite_and_negated_in_it(tmp_path: Path, ending: str) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    path = tmp_path / f"scream.{ending}"
    Image.fromarray(picture).save(path) if ending == "png" else np.save(path, picture)
    data = load_data("sprites", size=32, binary=True, background=str(path))
    factors = torch.tensor([[0, 0, 0, 5, 5], [0, 5, 3, 20, 9]])
    x, m = data.observe(factors, torch.Generator().manual_seed(1)), data.of.observe(factors)
    behind = m * (1 - x) + (1 - m) * x
    crops = torch.from_numpy(picture).permute(2, 0, 1).float().div(255).unfold(1, 32, 1).unfold(2, 32, 1)
    crops = crops.flatten(1, 2).movedim(0, 1)  # (places, 3, 32, 32)
    for one in behind:
        tints = 2 * one - crops  # constant per channel exactly where the crop is right
        assert (tints.flatten(2).std(2).amax(1) < 1e-5).sum() == 1


def test_bad_backgrounds_are_refused(tmp_path: Path) -> None:
    Image.new("RGB", (20, 70)).save(tmp_path / "small.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    for name, reason in {
        "small.png": "70x20",
        "broken.png": "not a readable image",
        "none.png": "no such file",
    }.items():
        with pytest.raises(BadInput, match=f"{name}.*{reason}"):
            load_data("sprites", background=str(tmp_path / name))


@pytest.mark.parametrize(
    "bad", [{"size": 4}, {"shapes": 4}, {"shapes": 0}, {"scales": 0}, {"xs": 0}, {"noisy": True, "background": "x.png"}]
)
def test_bad_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(bad))):
        load_data("sprites", **bad)


@pytest.mark.parametrize(("size", "xs", "ys"), [(8, 1, 2), (9, 32, 5), (17, 3, 64), (48, 7, 1), (100, 33, 2)])
def test_any_size_and_grid_keeps_the_area_and_the_place(size: int, xs: int, ys: int) -> None:
    data = Sprites(size=size, xs=xs, ys=ys, scales=2, orientations=3, binary=False)
    index = torch.arange(len(data))
    images, factors = data.batch(index)[:, 0], data.factors(index)
    area = torch.tensor([18.4**2, 98 * math.pi, 100 * math.pi / 1.2])[factors[:, 0]] * (0.5 + 0.5 * factors[:, 1]) ** 2
    torch.testing.assert_close(images.sum((1, 2)) * (64 / size) ** 2, area, rtol=0.06, atol=0)
    columns = (torch.arange(size) + 0.5) * 64 / size
    centres = torch.linspace(16.5, 47.5, xs) if xs > 1 else torch.tensor([32.0])
    found = (images.sum(1) * columns).sum(1) / images.sum((1, 2))
    assert (found - centres[factors[:, 3]]).abs().max() < 0.25 * 64 / size  # a quarter pixel
