"""Clusters of scores on a frame whose clusters are known."""

import numpy as np
import pandas as pd
import pytest
from _which_scores import as_markdown, clusters, correlations, main, which_scores

from unseam.errors import BadInput


def study(models=60, seed=0):
    """Two qualities a model may have; two scores of the one, three of the other (one upside down), one of its own."""
    rng = np.random.default_rng(seed)
    one, two, own = rng.normal(size=(3, 2 * models))
    data = np.repeat(["easy", "hard"], models)
    ease = np.where(data == "easy", 100.0, 0.0)  # all scores know which data set is easy
    blur = lambda x, by: x + by * rng.normal(size=len(x)) + ease  # noqa: E731
    scores = {
        "mean.mig": blur(one, 0.0), "mean.dci": blur(one, 0.3), "mean.sap": np.exp(one) + ease,
        "mean.beta-vae": blur(two, 0.1), "downstream.logistic.100": -blur(two, 0.1), "mean.irs": blur(own, 0.0),
        "mean.constant": np.ones(2 * models), "unsup.elbo": blur(one, 0.0),
    }  # fmt: skip
    return pd.DataFrame({"data": data, "status": "finished", **scores})


def test_the_clusters_are_the_qualities():
    rho, found = which_scores(study())
    assert {frozenset(c.scores) for c in found} == {
        frozenset({"mean.mig", "mean.dci", "mean.sap"}),
        frozenset({"mean.beta-vae", "downstream.logistic.100"}),
        frozenset({"mean.irs"}),
    }
    first, second, third = found
    assert first.representative in ("mean.mig", "mean.sap")  # the same order: both without noise
    assert first.outside < 0.4
    assert min(second.rho) < -0.9  # upside down is told
    assert (third.within, third.scores) == (1.0, ["mean.irs"])
    assert abs(rho.loc["mean.mig", "mean.irs"]) < 0.4  # across data sets together it would be near 1


def test_models_that_diverged_and_missing_cells_do_not_count():
    frame = study()
    frame.loc[::7, "mean.mig"] = np.nan
    broken = frame.iloc[:20].assign(status="diverged", **{"mean.dci": -999.0})
    _, found = which_scores(pd.concat([frame, broken]))
    assert {len(c.scores) for c in found} == {1, 2, 3}
    few = correlations(frame.iloc[:3], ["mean.mig", "mean.dci"])
    assert np.isnan(few.iloc[0, 1])
    assert len(clusters(few)) == 2


def test_the_table_and_its_three_lines(tmp_path, capsys):
    study().to_parquet(tmp_path / "study.parquet")
    main([str(tmp_path / "study.parquet"), "--at", "0.8"])
    text = capsys.readouterr().out
    assert "| mean.irs | itself alone | 1.00 |" in text
    assert "Of 6 scores on 120 models 3 orders remain" in text
    assert text.strip().splitlines()[-1] == "Ask mean.irs for what it alone measures."
    assert as_markdown(which_scores(study(), 0.999)[1], 60, 0.999).count("itself alone") >= 3
    with pytest.raises(BadInput, match="nothing to compare"):
        which_scores(study()[["data", "mean.mig"]])
    with pytest.raises(BadInput, match="no column 'data'"):
        which_scores(study().drop(columns="data"))
