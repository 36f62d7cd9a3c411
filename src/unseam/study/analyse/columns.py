"""The tidy frame: what its columns are called, what "better" means in each, and the rows that count."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseam.errors import BadInput

METRIC_TITLES = {
    "beta-vae": "BetaVAE",
    "factor-vae": "FactorVAE",
    "mig": "MIG",
    "dci-disentanglement": "DCI",
    "modularity": "Modularity",
    "sap": "SAP",
}
METHOD_TITLES = {
    "beta-vae": "β-VAE",
    "factor-vae": "FactorVAE",
    "beta-tcvae": "β-TCVAE",
    "dip-vae-i": "DIP-VAE-I",
    "dip-vae-ii": "DIP-VAE-II",
    "annealed-vae": "AnnealedVAE",
}
# what a choice without labels prefers: 1 the largest, -1 the smallest; a column that is not here chooses nothing
DIRECTIONS = {
    "unsup.reconstruction": -1,
    "unsup.elbo": 1,
    "unsup.kl": -1,
    "unsup.regulariser": -1,
    "unsup.tc-mean": -1,
    "unsup.tc-sampled": -1,
    "unsup.wasserstein": -1,
    "unsup.mi-pairs": -1,
    "free.dto": -1,
    "free.dto-over-chance": -1,
    "free.entanglement-cost": -1,
    "free.cost-over-beta": -1,
    "free.ima-contrast": -1,
    "free.udr": 1,
    "free.model-centrality": 1,
    "free.rank": -1,
}
_CELL = ["data", "method", "strength", "seed"]
_TEXT = {"data", "method", "strength_name", "piece", "status"}


def finished_models(frame: pd.DataFrame) -> pd.DataFrame:
    """The finished models, one row each; what is not a finite number is missing.

    >>> row = {"data": "a", "method": "b", "strength": 1, "seed": 0, "status": "finished", "mean.mig": 0.5}
    >>> len(finished_models(pd.DataFrame([row, row | {"seed": 1, "status": "diverged"}])))
    1
    """
    missing = [name for name in _CELL if name not in frame]
    if missing:
        raise BadInput(f"the table has no column {', '.join(missing)}; a study's has one row per model with {_CELL}")
    found = frame[frame["status"] == "finished"] if "status" in frame else frame
    numbers = {
        str(name): pd.to_numeric(found[name], errors="coerce").astype(float) for name in found if name not in _TEXT
    }
    out = found.assign(**numbers).replace([np.inf, -np.inf], np.nan)
    if (gaps := out[["data", "method", "seed"]].isna().any()).any():
        raise BadInput(f"the table has models without a {gaps.idxmax()}; every model needs data, method and seed")
    out = out.astype({"data": str, "method": str})
    return out.assign(strength=out["strength"].fillna(0.0)).drop_duplicates(_CELL, keep="last").reset_index(drop=True)


def metric_columns(frame: pd.DataFrame, code: str = "mean") -> list[str]:
    """The columns of the paper's six metrics that hold something, in the paper's order.

    >>> metric_columns(pd.DataFrame({"mean.sap": [1.0], "mean.mig": [0.5], "sampled.mig": [0.1], "mean.dci": [0.0]}))
    ['mean.mig', 'mean.sap']
    """
    return [
        name for name in (f"{code}.{metric}" for metric in METRIC_TITLES) if name in frame and frame[name].notna().any()
    ]


def selectors(frame: pd.DataFrame) -> list[str]:
    """The columns that can choose a model without labels, ours last."""
    return [name for name in DIRECTIONS if name in frame and frame[name].notna().any()]


def label(column: str) -> str:
    """A column as a reader calls it.

    >>> label("mean.dci-disentanglement"), label("free.dto-over-chance"), label("downstream.trees.100")
    ('DCI', 'DtO / chance', 'trees, 100 labels')
    """
    kind, _, name = str(column).partition(".")
    if kind == "downstream":
        return f"{name.partition('.')[0]}, {int(name.partition('.')[2]):,} labels"
    return METRIC_TITLES.get(name, _SPOKEN.get(name, name.replace("-", " ")))


_SPOKEN = {
    "dto": "DtO",
    "dto-over-chance": "DtO / chance",
    "udr": "UDR",
    "elbo": "ELBO",
    "kl": "KL",
    "tc-mean": "TC, mean code",
    "tc-sampled": "TC, sampled code",
    "wasserstein": "Wasserstein",
    "mi-pairs": "MI of pairs of codes",
    "cost-over-beta": "entanglement cost / β",
    "ima-contrast": "IMA contrast",
    "rank": "our ranking",
    "model-centrality": "ModelCentrality",
}
