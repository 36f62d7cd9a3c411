"""The API's numbers against the models, finite differences and closed forms."""

import io
import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
import torch
from explorer_server import served
from PIL import Image
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr

from unseam.errors import BadInput
from unseam.geometry import entanglement_cost, metrics
from unseam.models.likelihood import Gaussian
from unseam.show.explorer import member as subject_module
from unseam.show.explorer.api import axes_change
from unseam.show.explorer.at_point import first_meeting, follow_direction, geometry
from unseam.show.explorer.member import Broken, Subject, check_sound, describe_latents
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.explorer.upload import numbers_in_text, picture
from unseam.train import fit

Z = [0.3, -1.2, 0.5, 0.1]


def floats(content: bytes | str) -> np.ndarray:
    return np.frombuffer(content if isinstance(content, bytes) else b64decode(content), "<f4")


def linear(W: torch.Tensor, s2: float = 0.5) -> Subject:
    return Subject(lambda x: x, lambda z: z @ W.T.to(z), Gaussian(s2), 1.0, np.zeros((1, W.shape[1])), [])


def test_decode_is_the_models_mean(ask, images):
    x = floats(ask("/api/decode", {"model": "0.1", "z": Z}).content)
    with torch.no_grad():
        np.testing.assert_allclose(x, images.model(1).mean(torch.tensor([Z])).flatten(), atol=1e-6)


def test_a_row_encodes_to_its_posterior(ask, images):
    row = json.loads(ask("/api/row?row=77").content)
    truth = images.data.batch(torch.tensor([77]))
    np.testing.assert_array_equal(floats(row["x"]), truth.flatten())
    assert row["factors"] == images.data.factors(torch.tensor([77]))[0].tolist()
    found = json.loads(ask("/api/encode?model=0.0", b64decode(row["x"])).content)
    with torch.no_grad():
        q = images.model(0).encode(truth)
    np.testing.assert_allclose(found["z"], q.mean[0], atol=1e-5)
    np.testing.assert_allclose(found["variance"], q.variance()[0], atol=1e-5)


def test_geometry_agrees_with_finite_differences_and_the_library(ask, images):
    model = images.model(0).double()
    z = torch.tensor([Z], dtype=torch.float64)
    found = json.loads(ask("/api/geometry", {"model": "0.0", "z": Z}).content)
    J = floats(found["columns"]).reshape(4, 256).T
    with torch.no_grad():
        steps = [model.mean(z + e) - model.mean(z - e) for e in 1e-4 * torch.eye(4, dtype=torch.float64)]
        truth = torch.stack([s.flatten() / 2e-4 for s in steps], dim=1).numpy()
        cost = float(entanglement_cost(metrics(model.decode, z, model.likelihood).pullback, 1.0))
    np.testing.assert_allclose(J, truth, atol=2e-3 * np.abs(truth).max())
    np.testing.assert_allclose(found["norms"], np.linalg.norm(truth, axis=0), rtol=2e-3)
    np.testing.assert_allclose(found["singular"], np.linalg.svd(truth, compute_uv=False), rtol=2e-3, atol=1e-4)
    unit = truth / np.linalg.norm(truth, axis=0)
    np.testing.assert_allclose(found["cosines"], unit.T @ unit, atol=5e-3)
    assert found["cost"] == pytest.approx(cost, rel=1e-3)
    pairs = np.array(found["pairs"])
    assert np.triu(pairs, 1).sum() == pytest.approx(cost, rel=1e-3)


def test_singular_axes_are_the_columns_turned(ask):
    point = {"model": "0.0", "z": Z}
    plain = json.loads(ask("/api/geometry", point).content)
    turned = json.loads(ask("/api/geometry", {**point, "axes": "singular"}).content)
    J = floats(plain["columns"]).reshape(4, 256).T
    V = np.array(turned["vectors"])
    np.testing.assert_allclose(floats(turned["columns"]).reshape(4, 256).T, J @ V, atol=1e-4)
    np.testing.assert_allclose(turned["norms"], turned["singular"], atol=1e-4)


def test_align_turns_the_axes_and_keeps_the_picture(ask):
    found = json.loads(ask("/api/align?model=0.0").content)
    assert found["helped"]
    R = np.array(found["there"])
    np.testing.assert_allclose(R.T @ R, np.eye(4), atol=1e-6)
    assert np.abs(R - np.eye(4)).max() > 0.01
    before = floats(ask("/api/decode", {"model": "0.0", "z": Z}).content)
    after = floats(ask("/api/decode", {"model": "0.0", "aligned": True, "z": (np.array(Z) @ R).tolist()}).content)
    np.testing.assert_allclose(after, before, atol=1e-5)


def test_where_turning_did_not_help_the_axes_stay(ask, gallery, monkeypatch):
    worse = replace(gallery.alignment("0.1"), helped=False)
    monkeypatch.setitem(gallery.alignments, "0.1", worse)
    found = json.loads(ask("/api/align?model=0.1").content)
    assert not found["helped"]
    np.testing.assert_array_equal(found["there"], np.eye(4))
    np.testing.assert_array_equal(found["back"], np.eye(4))
    assert gallery.subject("0.1", aligned=True) is gallery.subject("0.1")


def test_codes_are_those_of_the_rows(ask, images):
    found = json.loads(ask("/api/model?model=0.0").content)
    codes = floats(found["codes"]).reshape(-1, 4)
    rows = torch.tensor(found["rows"])
    with torch.no_grad():
        np.testing.assert_allclose(codes, images.model(0).encode(images.data.batch(rows)).mean, atol=1e-4)
    np.testing.assert_array_equal(floats(found["factors"]).reshape(len(rows), -1), images.data.factors(rows))
    order = [(not row["active"], -row["kl"]) for row in found["latents"]]
    assert order == sorted(order)
    assert sorted(row["latent"] for row in found["latents"]) == [0, 1, 2, 3]


def test_each_latent_knows_its_twin_in_the_other_model(ask, gallery):
    """A model's twins in itself are its own latents; in another they are SciPy's one-to-one matching."""
    a, b = gallery.subject("0.0"), gallery.subject("0.1")
    own = json.loads(ask("/api/twins?model=0.0&other=0.0").content)
    assert [(t["latent"], t["agreement"]) for t in own["twins"]] == [(k, pytest.approx(1)) for k in a.active]
    assert all(t["twin"] == t["latent"] for t in own["twins"])
    found = json.loads(ask("/api/twins?model=0.0&other=0.1").content)
    like = np.abs(spearmanr(a.codes[:, a.active], b.codes[:, b.active]).statistic[: len(a.active), len(a.active) :])
    rows, columns = linear_sum_assignment(-like)
    best = {(a.active[i], b.active[j]): pytest.approx(like[i, j], abs=1e-6) for i, j in zip(rows, columns, strict=True)}
    assert {(t["latent"], t["twin"]): t["agreement"] for t in found["twins"]} == best
    assert 0 < found["chance"] < 1
    assert ask("/api/twins?model=0.0").status == 400
    assert ask("/api/twins?model=0.0&other=9.9").status == 400


def test_a_linear_decoder_has_straight_curves_both_ways():
    W = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]) @ torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    z = torch.tensor([0.5, -0.5])
    there, back = (np.array(follow_direction(linear(W), z, 0, sign)["z"]) for sign in (1, -1))
    v = np.array([0.8, 0.6])
    np.testing.assert_allclose(there[-1], z.numpy() + 3 * v, atol=1e-5)
    np.testing.assert_allclose(back[-1], z.numpy() - 3 * v, atol=1e-5)


def test_a_curve_that_leaves_the_region_says_so():
    found = follow_direction(linear(torch.tensor([[2.0, 0.0], [0.0, 1.0]])), torch.tensor([5.0, 0.0]), 0, 1)
    assert found["reason"] == "left the region"
    assert len(found["z"]) < 12


def test_equal_singular_values_are_reported():
    path = torch.stack([torch.linspace(0, 1, 5), torch.zeros(5)], dim=1)
    assert first_meeting(linear(torch.eye(2)), path) == 0
    assert first_meeting(linear(torch.tensor([[2.0, 0.0], [0.0, 1.0]])), path) is None
    bent = Subject(
        lambda x: x, lambda z: torch.stack([z[:, 0] ** 2, 1.3 * z[:, 1]], 1), Gaussian(), 1.0, np.zeros((1, 2)), []
    )
    line = torch.stack([torch.linspace(0.35, 0.85, 11), torch.zeros(11)], dim=1)  # 2 z meets 1.3 at z = 0.65
    assert first_meeting(bent, line) == 6


def test_the_cost_is_zero_exactly_for_orthogonal_columns():
    assert geometry(linear(torch.tensor([[3.0, 0.0], [0.0, 1.0]])), torch.zeros(2)).cost == 0
    mixed = geometry(linear(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), s2=1.0), torch.zeros(2))
    assert mixed.cost == pytest.approx(0.5 * np.log(2 * 3 / (2 * 3 - 1)))


def test_an_autoencoder_gets_ranges_from_its_codes():
    codes = np.array([[10.0, 0.0, 5.0], [30.0, 0.0, 5.4]])
    rows = describe_latents(codes, np.zeros_like(codes))
    assert [row["latent"] for row in rows] == [0, 2, 1]
    assert (rows[0]["low"], rows[0]["high"], rows[0]["kl"], rows[0]["middle"]) == (10, 30, None, 20)
    assert [row["active"] for row in rows] == [True, True, False]


def test_a_dropped_picture_is_cut_resized_and_laid_on_white():
    image = Image.new("RGBA", (300, 100), (0, 0, 0, 0))
    image.paste((255, 0, 0, 255), (100, 0, 150, 100))
    file = io.BytesIO()
    image.save(file, "PNG")
    x = picture(file.getvalue(), (3, 10, 10))
    np.testing.assert_allclose(x[:, 5, 1], [1, 0, 0], atol=0.02)  # the left half of the middle square is red
    np.testing.assert_allclose(x[:, 5, 8], [1, 1, 1], atol=0.02)  # the right half was clear
    with pytest.raises(BadInput, match="2 channels"):
        picture(file.getvalue(), (2, 10, 10))


@pytest.mark.parametrize("content", [b"1 2", b"1 2 nan", b"1 2 x", b"\xff", b"1 2 inf", b""])
def test_a_dropped_list_must_be_finite_and_complete(content):
    with pytest.raises(BadInput):
        numbers_in_text(content, (3,))


def test_small_vectors_bring_their_cloud(vectors):
    with served(open_gallery([vectors.folder], [0, None])) as ask:
        found = json.loads(ask("/api/model?model=0.0").content)
        assert len(found["rows"]) == len(vectors.data)  # few rows: all are shown
        assert floats(found["cloud"]).reshape(-1, 2).shape[0] == len(vectors.data)
        np.testing.assert_allclose(floats(ask("/api/upload", b"1.5, -2").content), [1.5, -2])


@pytest.mark.parametrize("objective", ["ae", "beta-vae-sigma"])
def test_other_posteriors_can_be_explored(objective, tmp_path):
    run = fit("synth-nonlinear", objective, network="mlp", latents=3, steps=20, out=tmp_path / "run", show=False)
    gallery = open_gallery([run.folder], [0, None])
    gallery.alignments["0.0"] = replace(gallery.alignment("0.0"), helped=True)
    plain, turned = gallery.subject("0.0"), gallery.subject("0.0", aligned=True)
    z, _ = plain.place(gallery.row(3)[0])
    way = {name: torch.tensor(part).float() for name, part in axes_change(gallery.alignment("0.0")).items()}
    new = (z - way["shift"]) @ way["there"]  # codes of an autoencoder are also shifted and scaled
    torch.testing.assert_close(turned.picture(new), plain.picture(z), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(way["shift"] + new @ way["back"], z, atol=1e-4, rtol=1e-4)
    assert geometry(turned, new).cost >= 0


def test_a_film_shows_what_each_active_latent_does(ask, gallery):
    subject = gallery.subject("0.0")
    K = len(subject.active)
    with Image.open(io.BytesIO(ask("/api/film", {"model": "0.0", "z": Z, "kind": "grid"}).content)) as grid:
        cells = np.asarray(grid.convert("L"))
    side = cells.shape[0] // K
    assert cells.shape == (K * side, 11 * side)
    k = subject.active[1]
    z = torch.tensor(Z)
    z[k] = 2.5  # the last frame of the second row
    last = cells[side : 2 * side, 10 * side :][: side - 2, : side - 2]
    truth = 255 * subject.picture(z)[0].numpy()
    np.testing.assert_allclose(last[:: (side - 2) // 16, :: (side - 2) // 16], truth, atol=1.01)


def test_a_way_ends_where_it_should_and_moves(ask, gallery):
    end = [1.0, 1.0, -1.0, 0.0]
    reply = ask("/api/film", {"model": "0.0", "z": Z, "to": end, "kind": "gif"})
    assert reply.getheader("content-type") == "image/gif"
    with Image.open(io.BytesIO(reply.content)) as gif:
        assert gif.n_frames == 48
        assert max(gif.size) >= 256
        gif.seek(24)
        drawn = np.asarray(gif.convert("L"))
    truth = 255 * gallery.subject("0.0").picture(torch.tensor(end))[0].numpy()
    times = drawn.shape[0] // 98  # 16 pixels six times, and a gap of two
    np.testing.assert_allclose(drawn[: 96 * times : 6 * times, : 96 * times : 6 * times], truth, atol=2)


def test_a_table_is_filmed_as_curves_and_has_no_gif(vectors):
    with served(open_gallery([vectors.folder], [0, None])) as ask:
        point = {"model": "0.0", "z": [0.0, 0.0]}
        assert ask("/api/film", {**point, "kind": "grid"}).content.startswith(b"\x89PNG")
        assert b"not pictures" in ask("/api/film", {**point, "kind": "gif"}).content


def test_the_range_of_the_codes_and_their_spacing_are_told(ask, gallery):
    found = json.loads(ask("/api/model?model=0.0").content)
    codes = floats(found["codes"]).reshape(-1, 4)
    for row in found["latents"]:
        inside = (codes[:, row["latent"]] >= row["within"][0]) & (codes[:, row["latent"]] <= row["within"][1])
        assert inside.mean() == pytest.approx(0.99, abs=0.005)
    active = [row["latent"] for row in found["latents"] if row["active"]]
    z = codes[:, active] / codes[:, active].std(0)
    apart = np.linalg.norm(z[:, None] - z[None], axis=2) + np.diag(np.full(len(z), np.inf))
    assert found["near"] == pytest.approx(np.quantile(apart.min(1), 0.99), rel=1e-3)


def test_an_exploded_member_is_explained(images, monkeypatch):
    gallery = open_gallery([images.folder], [1, None])
    monkeypatch.setattr(subject_module, "FARTHEST", 0.5)
    with served(gallery) as ask:
        found = json.loads(ask("/api/model?model=0.0").content)
        assert re.search(r"exploded in training: its codes reach \d.*smaller --lr", found["broken"])
        assert found["latents"] == []
        assert ask("/api/decode", {"model": "0.0", "z": Z}).status == 400


@pytest.mark.parametrize(
    ("codes", "decoded", "words"),
    [(np.nan, 0.0, "not finite"), (6e3, 0.0, "reach 6,000"), (0.0, np.inf, "decoder draws")],
)
def test_what_is_broken_is_said(codes, decoded, words):
    with pytest.raises(Broken, match=words):
        check_sound(np.full((3, 2), codes), np.ones((3, 2)), lambda z: z + decoded)
    check_sound(np.zeros((3, 2)), np.ones((3, 2)), lambda z: z)


def test_own_data_is_called_by_its_file(tmp_path):
    np.save(tmp_path / "wine.npy", np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32))
    run = fit(tmp_path / "wine.npy", network="mlp", latents=2, steps=2, out=tmp_path / "run", show=False)
    assert open_gallery([run.folder], [0, None]).describe()["data"]["name"] == "wine.npy"
