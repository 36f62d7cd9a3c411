"""What the tiny runs of L1 and L2 cannot show: what counts, and the published strengths."""

import numpy as np
import pytest

from unseam_papers.frame.rows import keyed, overall
from unseam_papers.locatello import impossibility as l1
from unseam_papers.locatello import total_correlation as l2


def test_what_a_metric_keeps():
    table = {kind: {"mig": [value]} for kind, value in (("perfect", 0.9), ("noise", 0.1), ("0.25", 0.3))}
    assert l1.kept(table, "0.25", "mig") == pytest.approx(0.25)
    u = l1.sample(3, 500, 0)
    assert np.sort(l1.codes_of(u, 0.25, 0), axis=0) == pytest.approx(np.sort(u, axis=0), abs=0.15)
    assert set(l1.NAMES) == {"beta-vae", "factor-vae", "mig", "modularity", "dci-disentanglement", "sap"}


def theorem(distance=0.01, auc=0.5, rows=3000):
    kinds = {"perfect": 1.0, "permuted": 1.0, "noise": 0.0, "0.25": 0.2}
    scores = {kind: {name: [value] for name in l1.NAMES} for kind, value in kinds.items()}
    tested = {"rows": rows, "distance": [distance], "auc": [auc] * 3, "plain": [0.7] * 3}
    exact = {"least": 1e-3, "log_det": 1e-10, "turn": 1e-16}
    return {"a": [0.25], "d": [4], "scores": scores, "distribution": tested, "derivatives": exact}


def test_a_proved_theorem_counts_nothing():
    rows = keyed(l1.judge(theorem()))
    assert not any(row.counted for row in rows.values())
    assert overall(rows.values()) == "not comparable"
    assert {rows[key].kind for key in ("density", "derivatives")} == {"by construction"}
    assert {rows[name].kind for name in l1.NAMES} == {"beyond the paper"}


def test_the_same_distribution_is_shown_or_left_open():
    verdicts = {
        case: {key: row.verdict for key, row in keyed(l1.judge(theorem(**numbers))).items()}
        for case, numbers in {
            "same": {},
            "few rows": {"rows": 100},
            "other": {"distance": 0.2, "auc": 0.6},
        }.items()
    }
    assert [verdicts[case]["marginals"] for case in verdicts] == ["holds", "shown", "fails"]
    assert [verdicts[case]["joint"] for case in verdicts] == ["holds", "shown", "fails"]


def test_the_published_strengths():
    ends = {method: (grid[0], grid[-1]) for method in l2.METHODS for _, grid in [l2.strengths(method, 4)]}
    assert ends == {
        "beta-vae": (1, 16),
        "factor-vae": (10, 100),
        "beta-tcvae": (1, 10),
        "dip-vae-i": (1, 50),
        "dip-vae-ii": (1, 50),
        "annealed-vae": (5, 100),
    }


def test_only_the_two_printed_trends_count():
    strength = [1.0, 1.0, 4.0, 4.0, 16.0, 16.0]
    found = {"strength": strength, "sampled": [6, 5, 4, 3, 2, 1], "mean": [6, 5, 4, 3, 2, 1], "active": [5.0] * 6}
    rows = keyed(l2.judge({"beta-vae": found, "annealed-vae": found}))
    assert {key for key, row in rows.items() if row.counted} == {"beta-vae sampled", "beta-vae mean"}
    assert rows["beta-vae sampled"].verdict == "agrees"
    assert rows["beta-vae mean"].verdict == "differs"
    assert rows["above"].kind == "beyond the paper"
    assert not any("minor exceptions" in row.published for row in rows.values())
