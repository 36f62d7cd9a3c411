"""What other rooms got for studies: shared feeds, the published encoder, quick trees."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from unseam.data import load_data
from unseam.errors import BadInput
from unseam.models import Architecture
from unseam.rng import generator
from unseam.study.table import load, places_in_ranking
from unseam.train.batches import Feed, Order


@pytest.mark.parametrize("dress", [{"colour": True}, {"noisy": True}, {"noise": 0.1}, {}])
def test_members_of_one_seed_see_what_they_would_see_alone(dress: dict) -> None:
    """Batches and noise of seeds 0, 1, 0, and what the data itself shows of those rows."""
    data = load_data("sprites", size=16, scales=1, orientations=2, xs=3, ys=3, **dress)
    rows, shapes = torch.arange(len(data)), {"z": (4, 2)}
    together, alone = Feed(data, rows, [0, 1, 0], 4, block=2), [Feed(data, rows, [s], 4, block=2) for s in (0, 1, 0)]
    for step in (0, 1, 5):
        x, noise = together(step, shapes)
        for member, feed in enumerate(alone):
            own, own_noise = feed(step, shapes)
            torch.testing.assert_close(x[member], own[0], rtol=0, atol=0)
            torch.testing.assert_close(noise["z"][member], own_noise["z"][0], rtol=0, atol=0)
    index = Order(1, rows)(5 // 2 * 8 + 4, 4)  # step 5 is the second of its block
    shown = data.batch(index, generator(1, "observe", 5) if data.stochastic else None)
    torch.testing.assert_close(x[1], shown, rtol=0, atol=0)
    assert not torch.equal(x[0], x[1])


def test_the_published_encoder() -> None:
    """Locatello et al. 2019, appendix: 32 k4, 32 k4, 64 k2, 64 k2, all stride 2, then 256."""
    plans = [Architecture(network="conv", small_kernels=small).for_data((1, 64, 64), "bernoulli") for small in (0, 1)]
    ours, published = (plan.build((1, 64, 64), 0) for plan in plans)
    kernels = [p.shape for p in published.encoder.parameters() if p.dim() == 4]
    assert kernels == [(32, 1, 4, 4), (32, 32, 4, 4), (64, 32, 2, 2), (64, 64, 2, 2)]
    assert next(p.shape for p in published.encoder.parameters() if p.dim() == 2) == (64 * 4 * 4, 256)
    assert published.encode(torch.zeros(2, 1, 64, 64)).mean.shape == (2, 10)
    assert [p.shape for p in ours.decoder.parameters()] == [p.shape for p in published.decoder.parameters()]


def test_quick_trees_find_the_same_latents() -> None:
    from unseam.metrics.dci import dci

    v = np.random.default_rng(0).integers(0, 4, (600, 3))
    z = v + 0.2 * np.random.default_rng(1).normal(size=v.shape)
    slow, quick = (dci(z, v, backend=backend, workers=1)["dci-disentanglement"] for backend in ("lightgbm", "quick"))
    assert (slow.matrix.argmax(1) == quick.matrix.argmax(1)).all()
    assert quick.value > 0.9
    assert quick.settings["backend"] == "quick"


def test_a_setting_that_keeps_every_latent_is_not_ranked_first() -> None:
    """DIP-VAE-I kept ten of ten at every strength and took every first place."""
    keeps = [{"method": "a", "free.active": 10, "free.dto": 0.1, "seed": s} for s in (0, 1)]
    prunes = [{"method": "b", "free.active": 4, "free.dto": d, "seed": s} for s, d in enumerate((0.9, 0.8))]
    same = {"data": "x", "strength": 1.0, "status": "finished", "free.dto-chance": 1.0, "latents": 10}
    frame = pd.DataFrame([row | same for row in keeps + prunes])
    assert places_in_ranking(frame).tolist() == [3, 4, 2, 1]
    assert places_in_ranking(frame.assign(latents=11)).tolist() == [1, 2, 4, 3]  # ten of eleven is a choice


@pytest.mark.parametrize("damage", ["{}", "[]", '[{"data": 3}]'])
def test_damaged_rows_are_refused_and_damaged_codes_cost_udr(damage: str, done: Path, tmp_path: Path) -> None:
    """study-folder-2, -10, -21 and -31 of the campaign."""
    shutil.copytree(done, tmp_path / "study")
    piece = sorted((tmp_path / "study" / "pieces").iterdir())[0]
    (piece / "codes.npy").write_bytes(b"x")
    (piece / "seconds.json").write_text("3")
    assert load(tmp_path / "study").table()["free.udr"].isna().any()
    rows = json.loads((piece / "rows.json").read_text())
    swapped = json.dumps([{**rows[0], "seed": 99}, *rows[1:]])
    for content in (damage, swapped):
        (piece / "rows.json").write_text(content)
        with pytest.raises(BadInput, match=r"rows\.json is damaged"):
            load(tmp_path / "study").table()


def test_a_study_without_kept_codes_still_has_its_table(done: Path, tmp_path: Path) -> None:
    """UDR needs codes, the ranking does not."""
    shutil.copytree(done, tmp_path / "study")
    for path in (tmp_path / "study").rglob("codes.npy"):
        path.unlink()
    frame = load(tmp_path / "study").table()
    assert frame["free.udr"].isna().all()
    assert sorted(frame["free.rank"].dropna())[0] == 1
