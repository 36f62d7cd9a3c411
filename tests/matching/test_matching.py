"""Directions matched one to one, against brute force, known answers and their chance levels."""

import json
import sqlite3
from itertools import permutations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.matching import match
from unseam.stats import matched


def dictionary(seed, count=60, n=40):
    return np.random.default_rng(seed).normal(size=(count, n))


def half_shared(seed=0, count=60, n=40, noise=0.05):
    """Two dictionaries that have every other direction in common, in another order."""
    rng, one = np.random.default_rng(seed), dictionary(seed, count, n)
    order = rng.permutation(count)
    two = one[order] + noise * rng.normal(size=one.shape)
    two[order % 2 == 1] = dictionary(seed + 1, count, n)[: (order % 2 == 1).sum()]
    return one, two, order


def test_a_small_matching_is_the_best_of_all():
    s = np.random.default_rng(0).uniform(size=(6, 6))
    best = max(sum(s[i, p[i]] for i in range(6)) for p in permutations(range(6)))
    assert matched(s).values.sum() == pytest.approx(best)
    assert match(np.eye(6), s @ np.eye(6)).method == "by assignment (largest sum)"


def test_what_is_shared_is_found_and_what_is_not_lies_at_chance():
    one, two, order = half_shared()
    found = match(one, two)
    shared = np.isin(np.arange(60), order[order % 2 == 0])
    assert (found.stable == shared).all()
    (pair,) = found.pairs
    assert (order[pair.partners[shared]] == np.flatnonzero(shared)).all()
    told = pair.to_json(at=0.9999)
    assert (told["share"], told["above_chance"]) == (0.0, pytest.approx(0.5, abs=0.05))
    unrelated = match(dictionary(5), dictionary(6)).pairs[0]
    assert unrelated.values.mean() == pytest.approx(unrelated.chance, abs=0.02)
    assert (unrelated.values > unrelated.limit).mean() < 0.05
    assert pair.values[~shared].mean() == pytest.approx(pair.chance, abs=0.06)


def test_opposites_are_the_same_unless_signed():
    W = dictionary(0, 10, 30)
    assert match(W, -W).stable.all()
    assert not match(W, -W, signed=True).stable.any()


@pytest.mark.parametrize("latents", [2, 4])
def test_what_random_axes_reach_is_never_stable(latents):
    """Codes in random axes: with few latents chance alone passes 0.7, which must not count as agreement."""
    rng = np.random.default_rng(latents)
    for _ in range(4):
        a = rng.normal(size=(1500, latents))
        found = match(a, a @ np.linalg.qr(rng.normal(size=(latents, latents)))[0], of="codes")
        document = found.to_json()
        (pair,) = document["pairs"]
        assert document["stable"] == pair["share"] <= pair["above_chance"]
        assert document["stable"] <= 0.25  # one in a hundred values by chance, so at most one latent of four here
        assert "so their limit counts instead" in str(found)
    shifted = match(a, -a[:, ::-1] + 5, of="codes")  # the same latents in another order are stable all the same
    assert shifted.stable.all()


def test_stable_means_in_every_other_set():
    W = dictionary(0, 20, 30)
    other = W.copy()
    other[:5] = dictionary(1, 5, 30)
    found = match(W, W[::-1], other)
    assert found.stable.tolist() == [False] * 5 + [True] * 15
    assert [(p.one, p.two) for p in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    assert found.to_json()["stable"] == 0.75


def test_codes_are_matched_by_rank_whatever_their_warp():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(800, 3))
    found = match(z, np.stack([np.exp(z[:, 2]), -z[:, 0], rng.normal(size=800)], axis=1), of="codes")
    assert found.pairs[0].partners[[0, 2]].tolist() == [1, 0]
    assert found.stable.tolist() == [True, False, True]
    assert 0.5 < found.pairs[0].chance < 0.8  # three random axes of the plane's big sister are not far from some axis


def test_a_rotation_of_the_same_codes_is_what_chance_is():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1500, 6))
    values = [match(z, z @ np.linalg.qr(rng.normal(size=(6, 6)))[0], of="codes").pairs[0] for _ in range(8)]
    assert np.mean([p.values.mean() for p in values]) == pytest.approx(np.mean([p.chance for p in values]), abs=0.03)


def test_one_latent_beside_several_has_the_chance_of_random_axes_from_both_sides():
    """Shuffling the one would ask for no information at all, which is not a chance level of axes."""
    z = np.random.default_rng(0).normal(size=(1000, 3))
    many, one = (match(*both, of="codes").pairs[0] for both in ((z, z[:, :1]), (z[:, :1], z)))
    assert many.chance * 3 == pytest.approx(one.chance, abs=0.1)  # two of three have no partner: 0
    assert many.limit > 0.7 < one.limit
    assert match(z[:, :1], z[:, 1:2], of="codes").pairs[0].limit < 0.1


@pytest.mark.parametrize(
    ("things", "why"),
    [((np.eye(3),), "at least 2"), ((np.eye(3), np.eye(4)), "as many columns"),
     ((np.eye(3), np.full((3, 3), np.nan)), "finite"), ((np.eye(3), np.zeros(3)), "must be a matrix")],
)  # fmt: skip
def test_what_cannot_be_matched_is_refused(things, why):
    with pytest.raises(BadInput, match=why):
        match(*things)


def test_the_verb_reads_npy_and_safetensors_and_writes_a_table(tmp_path, capsys):
    one, two, _ = half_shared()
    np.save(tmp_path / "one.npy", one)
    save_file(
        {"W_dec": torch.tensor(two).bfloat16(), "W_enc": torch.tensor(two.T.copy())}, tmp_path / "two.safetensors"
    )
    files = [str(tmp_path / "one.npy"), str(tmp_path / "two.safetensors")]
    assert main(["match", *files, "--json", "--out", str(tmp_path / "m.csv")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["stable"] == pytest.approx(match(one, two).stable.mean(), abs=0.05)
    assert [s["name"] for s in document["sets"]] == ["one.npy", "two.safetensors"]
    assert len((tmp_path / "m.csv").read_text().splitlines()) == 61
    assert main(["match", *files]) == 0
    assert "by chance: random axes" in capsys.readouterr().out
    assert main(["match", files[0], files[1] + ":W_enc"]) == 2
    assert "give the transpose" in capsys.readouterr().err
    assert main(["match", files[0], files[1] + ":nothing"]) == 2
    assert "it holds" in capsys.readouterr().err
    assert main(["match", files[0]]) == 2


def test_the_members_of_a_run_are_matched_by_their_codes(tmp_path):
    run = unseam.fit("synth-linear", steps=150, network="linear", latents=3, seeds=[0, 1], beta=0.05, lr=0.02,
                     data_parameters={"size": 500}, out=tmp_path / "run", show=False, workers=1)  # fmt: skip
    found = unseam.match(run)
    assert found.of == "codes"
    assert found.names == ("member 0", "member 1")
    assert min(found.sizes) == 2  # of the three latents of one member one is passive
    assert found.pairs[0].values[0] > 0.9  # a linear VAE finds the principal axes at every seed
    with pytest.raises(BadInput, match="runs and arrays"):
        unseam.match(run, np.eye(3))
    with sqlite3.connect(run.folder / "results.sqlite") as rows:
        rows.execute("update runs set status='diverged' where member = 1")
    with pytest.raises(BadInput, match="1 of 2 members finished with a latent in use"):
        unseam.match(run)


def test_random_axes_are_not_stable(tmp_path):
    """Of four latents chance alone passes 0.7: a and a in random axes were said to share 75 % of their directions."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2000, 4))
    shares = []
    for _ in range(20):
        turned = a @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
        found = match(a, turned, of="codes", show=False)
        assert not (found.stable & (found.pairs[0].values <= found.pairs[0].limit)).any()
        shares.append(found.stable.mean())
    assert np.mean(shares) < 0.15
    same = match(a, a[:, ::-1] * 2, of="codes", show=False)
    assert same.stable.all()
    assert "at 0.7 or more and above chance" in str(same)


def test_codes_in_blocks_and_on_disk_are_matched_as_in_memory(tmp_path, monkeypatch):
    """Millions of rows are correlated in blocks; small blocks that do not divide the rows give the same numbers."""
    from unseam.readers import npy
    from unseam.stats import correlation, correlations, rank_correlations

    rng = np.random.default_rng(0)
    a = rng.normal(size=(1003, 4)).astype(np.float32)
    b = np.round(a[:, [2, 0, 3]] + 0.5 * rng.normal(size=(1003, 3)), 1).astype(np.float32)  # with ties
    b[:, 2] = 7  # and a constant
    whole = [f(a.astype(float), b.astype(float)) for f in (correlations, rank_correlations)]
    scaled = correlations(1e200 * a.astype(float), 1e-200 * b.astype(float))
    found = match(a, b, of="codes")
    for name, array in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", array)
    monkeypatch.setattr(correlation, "_ROWS", 97)
    monkeypatch.setattr(correlation, "_RANKS", 16 * 1003 * 2)  # two columns at a time
    monkeypatch.setattr(npy, "READ_WHOLE", 100)  # every file is large
    for f, expected in zip((correlations, rank_correlations), whole, strict=True):
        assert f(a, b) == pytest.approx(expected, abs=1e-12)
    assert correlations(1e200 * a.astype(float), 1e-200 * b.astype(float)) == pytest.approx(scaled, abs=1e-12)
    places = [tmp_path / "a.npy", tmp_path / "b.npy"]
    assert isinstance(unseam.matching.open_set(places[0]), npy.FileRows)
    on_disk = match(*places, of="codes")
    assert on_disk.pairs[0].values == pytest.approx(found.pairs[0].values, abs=1e-12)
    assert on_disk.pairs[0].limit == pytest.approx(found.pairs[0].limit, abs=1e-9)
    assert match(*places, of="codes").pairs[0].partners.tolist() == found.pairs[0].partners.tolist()
    directions = [np.ascontiguousarray(x[:60, :3]) for x in (a, b)]
    for path, array in zip(places, directions, strict=True):
        np.save(path, array)
    assert match(*places).pairs[0].values == pytest.approx(match(*directions).pairs[0].values, abs=1e-6)


def test_codes_without_of_codes_get_a_hint(capsys):
    codes = np.random.default_rng(0).normal(size=(200, 3))
    match(codes, codes)
    assert "if these are codes" in capsys.readouterr().err
    match(codes, codes, of="codes")
    match(codes.T, codes.T)
    match(np.eye(100), np.eye(100))
    assert capsys.readouterr().err == ""
    with pytest.raises(BadInput, match="--of codes"):
        match(codes, codes[:, :2])
