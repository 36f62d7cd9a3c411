"""The tracer against an independent one (marching along signed distances), and the paints against their colours."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from unseam import BadInput
from unseam.data.sets import rooms
from unseam.data.sets.rooms import Rooms, hues, render

Distance = Callable[[np.ndarray, float], np.ndarray]


def box_distance(p: np.ndarray, s: float) -> np.ndarray:
    q = abs(p - [0, 0, 0.62 * s]) - 0.62 * s
    return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)


def cylinder_distance(p: np.ndarray, s: float) -> np.ndarray:
    q = np.stack([np.hypot(p[:, 0], p[:, 1]), abs(p[:, 2] - 0.62 * s)], 1) - 0.62 * s
    return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)


def sphere_distance(p: np.ndarray, s: float) -> np.ndarray:
    return np.linalg.norm(p - [0, 0, 0.7 * s], axis=1) - 0.7 * s


def pill_distance(p: np.ndarray, s: float) -> np.ndarray:
    height = np.clip(p[:, 2], 0.46 * s, (1.6 - 0.46) * s)
    return np.linalg.norm(p - np.stack([0 * height, 0 * height, height], 1), axis=1) - 0.46 * s


DISTANCES = dict(zip(rooms.SOLIDS, (box_distance, cylinder_distance, sphere_distance, pill_distance), strict=True))


def march(distance: Distance, o: np.ndarray, d: np.ndarray, s: float) -> np.ndarray:
    t = np.zeros(len(d))
    for _ in range(300):
        t = t + distance(o + t[:, None] * d, s)
    return t


@pytest.mark.parametrize("s", [0.75, 1.25])
@pytest.mark.parametrize("name", DISTANCES)
def test_solids_are_hit_where_marching_hits_them(name: str, s: float) -> None:
    o, d = rooms.camera(0.4, 40, 1)
    o = np.broadcast_to(o, d.shape)
    t, normal = rooms.SOLIDS[name](o, d, s)
    distance = DISTANCES[name]
    marched = march(distance, o.astype(float), d.astype(float), s)
    hit = marched < 20
    np.testing.assert_array_equal(np.isfinite(t), hit)
    assert 30 < hit.sum() < 800
    np.testing.assert_allclose(t[hit], marched[hit], atol=2e-3)
    p, step = (o + marched[:, None] * d)[hit].astype(float), 1e-5
    gradient = np.stack([(distance(p + step * e, s) - distance(p - step * e, s)) / (2 * step) for e in np.eye(3)], 1)
    agree = (normal[hit] * gradient).sum(1)
    assert np.quantile(agree, 0.05) > 0.99  # the gradient is blurred at the few rays that hit an edge


@pytest.mark.parametrize("s", [0.75, 1.0, 1.25])
@pytest.mark.parametrize("name", DISTANCES)
def test_no_ray_that_hits_is_left_out(name: str, s: float) -> None:
    o, d = rooms.camera(-0.5, 64, 1)
    t, _ = rooms.SOLIDS[name](np.broadcast_to(o, d.shape), d, s)
    assert np.isin(np.flatnonzero(np.isfinite(t)), rooms._may_hit(o, d, s)).all()
    floor = np.random.default_rng(0).uniform(-3, 3, (4000, 3)) * [1, 1, 0]
    lamp = rooms.lamps(4000, 2)
    shadow, _ = rooms.SOLIDS[name](floor, lamp, s)
    assert np.isin(np.flatnonzero(np.isfinite(shadow)), rooms._may_hit(floor, lamp, s)).all()


def test_paints_never_add_up_to_more_than_one() -> None:
    paints = render(24, 2, 3)
    assert paints.astype(int).sum(3).max() <= 257  # bytes, each rounded
    assert paints[:, :, :, rooms.OBJECT].max() > 200


def test_a_hue_paints_only_its_own_part() -> None:
    data = Rooms(size=32, scales=2, orientations=3)
    views = [[s, k, o] for s in range(2) for k in range(4) for o in range(3)]
    rows = torch.tensor([[0, 0, 0, *v] for v in views])
    amounts = torch.from_numpy(render(32, 2, 3)).permute(0, 1, 2, 3, 4, 5).reshape(24, 4, 32, 32).float() / 255
    before = data.observe(rows)
    for part in range(3):
        after = rows.clone()
        after[:, part] = 5
        change = (data.observe(after) - before).abs().amax(1)
        torch.testing.assert_close(change, amounts[:, part], rtol=0, atol=0.01)


def test_the_solid_grows_with_its_scale_and_turns_with_the_camera() -> None:
    paints = render(48, 5, 5)[..., rooms.OBJECT, :, :] > 0
    area = paints.sum((-1, -2))  # (scales, shapes, orientations)
    assert (np.diff(area, axis=0) > 0).all()
    left, right = render(48, 1, 2)[0, :, :, rooms.OBJECT].astype(float).swapaxes(0, 1)
    mirrored = abs(left - right[:, :, ::-1]).max((1, 2))
    assert mirrored[0] > 30  # the lamp is not in the middle, so a cube's faces differ
    assert ((left[2:] > 0) == (right[2:] > 0)).mean() > 0.99  # sphere and pill keep their outline


def test_edges_are_smooth() -> None:
    row = torch.tensor([[0, 0, 5, 0, 2, 0]])
    x = Rooms(size=64, scales=1, orientations=1).observe(row)
    assert len(x[0, 0].unique()) > 60


def test_ten_hues_are_36_degrees_apart() -> None:
    import colorsys

    found = [colorsys.rgb_to_hsv(*rgb) for rgb in hues(10).tolist()]
    np.testing.assert_allclose(found, [[i / 10, 1, 1] for i in range(10)], atol=1e-6)


def test_views_are_kept_and_a_damaged_copy_is_replaced(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unseam.data.sets import rooms

    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path))
    first = Rooms(size=10, scales=1, orientations=2).batch(torch.arange(5))
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    rooms.room_views.cache_clear()
    assert torch.equal(Rooms(size=10, scales=1, orientations=2).batch(torch.arange(5)), first)


def test_an_unwritable_data_folder_costs_only_time(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "file"))
    assert Rooms(size=11, scales=1, orientations=1).batch(torch.arange(5)).shape == (5, 3, 11, 11)


@pytest.mark.parametrize("bad", [{"size": 4}, {"shapes": 5}, {"colours": 0}, {"scales": 0}, {"orientations": 0}])
def test_bad_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(bad))):
        Rooms(**bad)
