"""N2: verdicts on made-up scores, that can fail, and the rows that are trained on."""

import numpy as np

from unseam_papers.frame.rows import keyed
from unseam_papers.newer.correlated_factors import PAIR, SCORED, SIGMAS, conclude, correlation_parameters, judge


def numbers(values, active=(4, 3)):
    spread = np.linspace(-0.01, 0.01, 5)
    scores = {s: {m: (v + spread).tolist() for m in SCORED} for s, v in zip(SIGMAS, values, strict=True)}
    left = {"none": None, "fewer": None}
    return {"beta-vae": {s: {"all": scores[s], "left out": left.get(s, scores[s]), "active": active} for s in SIGMAS}}


def test_a_fall_holds_and_a_rise_fails():
    found = numbers((0.5, 0.4, 0.2, 0.5))
    rows = keyed(judge(found))
    assert {rows[f"beta-vae {m}"].verdict for m in (*SCORED, "fewer")} == {"holds"}
    assert rows["beta-vae left out"].ours.startswith("0.4: 0.40")
    assert "falls from independent to sigma 0.1 for β-VAE." in conclude(found, rows)
    assert "hardly told apart" not in conclude(found, rows)
    assert "nothing is said of it" not in conclude(found, rows)
    found = numbers((0.1, 0.1, 0.1, 0.1), active=(0, 1))
    rows = keyed(judge(found))
    assert {rows[f"beta-vae {m}"].verdict for m in (*SCORED, "fewer")} == {"fails"}
    assert f"{PAIR}, independent" in conclude(found, rows)
    assert "hardly told apart." in conclude(found, rows)
    assert "β-VAE: fewer than two latents in use" in conclude(found, rows)
    assert rows["beta-vae active"].ours.startswith("none: 0.5")
    assert "for none, not significantly for β-VAE." in conclude(found, rows)


def test_hfs_is_compared_where_factors_go_together():
    """Not where they are independent: there it is behind."""
    other, hfs = numbers((0.9, 0.4, 0.2, 0.5)), numbers((0.5, 0.4, 0.4, 0.5))
    found = other | {"hfs": hfs["beta-vae"]}
    rows = keyed(judge(found))
    assert (rows["hfs above beta-vae"].verdict, rows["hfs above beta-vae"].ours) == ("holds", "0.40 against 0.20")
    assert "At sigma 0.1 HFS is above β-VAE." in conclude(found, rows)
    found = hfs | {"hfs": other["beta-vae"]}
    rows = keyed(judge(found))
    assert rows["hfs above beta-vae"].verdict == "fails"
    assert "At sigma 0.1 HFS is above none of the others." in conclude(found, rows)


def test_the_control_has_as_many_rows_as_the_strongest_correlation_leaves():
    from unseam.data import load_data

    thin, fewer = (load_data("sprites", **correlation_parameters(s)) for s in ("0.1", "fewer"))
    assert abs(len(thin) - len(fewer)) <= 1
    assert len(thin) < len(thin.of) / 2
