"""The same numbers in any container: the same answer, or one line; never the fill values of a mask, or a traceback."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from unseam.errors import BadInput
from unseam.estimators import PPCA
from unseam.finding import find
from unseam.geometry import diagnose
from unseam.matching import match
from unseam.metrics import score
from unseam.train import fit

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 3, (120, 2))
CODES = np.round(FACTORS + 0.1 * RNG.normal(size=(120, 2)), 2)
HOLES = np.zeros(CODES.shape, bool)
HOLES[::7, 0] = True
LIKE = {  # the same numbers
    "masked, nothing masked": np.ma.array,
    "requires a gradient": lambda x: torch.tensor(x).requires_grad_(),
    "sparse": scipy.sparse.csr_matrix,
    "sparse array": scipy.sparse.coo_array,
    "sparse tensor": lambda x: torch.tensor(x).to_sparse(),
    "list": lambda x: x.tolist(),
    "another byte order": lambda x: x.astype(">f8"),
    "long double": lambda x: x.astype(np.longdouble),
    "nullable": lambda x: pd.DataFrame(x, columns=["a", "b"]).convert_dtypes(),
    "arrow": lambda x: pd.DataFrame(x, columns=["a", "b"]).astype("float64[pyarrow]"),
}
BROKEN = {  # what has no such numbers
    "masked": np.ma.array(np.where(HOLES, -9999.0, CODES), mask=HOLES),
    "masked whole numbers": np.ma.array(np.where(HOLES, -9999, FACTORS), mask=HOLES),
    "nullable with NA": pd.DataFrame(np.where(HOLES, np.nan, CODES), columns=["a", "b"]).convert_dtypes(),
    "no values": torch.empty(120, 2, device="meta"),
    "ragged": [[1.0, 2.0], [1.0]] * 60,
}


def loss_of(x, folder):
    run = fit(x, steps=1, network="linear", latents=1, workers=1, show=False, out=folder, scale="none")
    return float(run.table()["loss"][0])


VERBS = {
    "codes": lambda x, _: score(x, FACTORS, metrics="mig")["mig"].value,
    "factors": lambda x, _: score(CODES, x, metrics="mcc")["mcc"].value,
    "fit": loss_of,
    "match": lambda x, _: float(match(x, CODES @ [[1, 1], [1, -1]], of="codes", show=False).pairs[0].values.mean()),
    "diagnose": lambda x, _: diagnose(lambda z: z * torch.tensor([2.0, 1.0]).to(z), x, np.full((120, 2), 0.1)).dto,
    "PPCA": lambda x, _: float(PPCA(1).fit(x).noise_variance_),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", LIKE)
@pytest.mark.parametrize("verb", VERBS)
def test_the_same_numbers_have_the_same_answer(verb, kind, tmp_path):
    if verb == "PPCA" and "sparse" in kind and "tensor" not in kind:
        pytest.skip("scikit-learn refuses sparse input in words of its own")
    there, here = VERBS[verb](CODES, tmp_path / "plain"), VERBS[verb](LIKE[kind](CODES), tmp_path / "kind")
    assert here == pytest.approx(there, rel=1e-4, abs=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("verb", VERBS)
def test_missing_numbers_are_refused_in_one_line(verb, kind, tmp_path):
    """netCDF4 and astropy give masked arrays; their fill values were scored and trained on as numbers."""
    expected = (BadInput, ValueError) if verb == "PPCA" else BadInput  # scikit-learn speaks of NaN by itself
    with pytest.raises(expected) as error:
        VERBS[verb](BROKEN[kind], tmp_path / "run")
    if isinstance(error.value, BadInput):
        assert "\n" not in str(error.value)


def test_masked_cells_are_missing_cells_of_find():
    x = np.random.default_rng(1).exponential(size=(200, 2)) @ np.array([[1.0, 0.5, 0.2, 0.0], [0.0, 0.3, 0.6, 1.0]])
    holes = np.zeros(x.shape, bool)
    holes[::9, 1] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masked = find(np.ma.array(np.where(holes, -9999.0, x), mask=holes), network=False, show=False)
        nan = find(np.where(holes, np.nan, x), network=False, show=False)
    assert masked.sentence == nan.sentence
    np.testing.assert_allclose(masked.codes, nan.codes, rtol=1e-6)
