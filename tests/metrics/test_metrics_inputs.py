"""The door: arrays of every kind come in, bad ones are refused in one line, nothing turns into a silent NaN."""

import warnings

import numpy as np
import pandas
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unseam.axes import Factor, FactorSpace
from unseam.errors import BadInput
from unseam.metrics import METRICS, mig, score
from unseam.metrics.inputs import prepare_inputs
from unseam.metrics.inputs.base import MANY_CLASSES

RNG = np.random.default_rng(0)
V = RNG.integers(0, 4, (200, 2))
Z = V + 0.1 * RNG.normal(size=V.shape)


@pytest.mark.parametrize(
    "codes",
    [
        Z,
        Z.astype(np.float32),
        torch.tensor(Z),
        torch.tensor(Z, requires_grad=True),
        pandas.DataFrame(Z),
        Z.tolist(),
        np.asfortranarray(Z),
        Z.astype(object),
    ],
    ids=["float64", "float32", "torch", "grad", "pandas", "list", "fortran", "object"],
)
def test_codes_of_every_kind(codes):
    assert mig(codes, V).value == pytest.approx(mig(Z, V).value, abs=1e-3)


@pytest.mark.parametrize(
    "factors",
    [V, V.astype(np.uint8), torch.tensor(V), pandas.DataFrame(V, columns=["a", "b"]), V.tolist(), V.astype(float)],
    ids=["int64", "uint8", "torch", "pandas", "list", "whole floats"],
)
def test_factors_of_every_kind(factors):
    assert mig(Z, factors).value == mig(Z, V).value


def test_half_precision_tensors():
    for dtype in (torch.float16, torch.bfloat16):
        assert np.isfinite(mig(torch.tensor(Z, dtype=dtype), V).value)


def test_one_latent_and_one_factor_may_be_vectors():
    assert mig(Z[:, 0], V[:, 0]).matrix.shape == (1, 1)


def test_names_come_from_a_data_frame():
    table = prepare_inputs(Z, pandas.DataFrame({"shape": ["a", "b"] * 100, "x": V[:, 1], "t": RNG.normal(size=200)}))
    assert table.space.names == ("shape", "x", "t")
    assert table.space.kinds == ("categorical", "ordinal", "continuous")


def test_strings_are_encoded_and_it_is_said():
    words = np.array(["disk", "ball", "cube"])[V[:, 0] % 3]
    with pytest.warns(UserWarning, match="ball=0, cube=1, disk=2"):
        named = score(Z, words, metrics="mig")
    assert named["mig"].value == pytest.approx(mig(Z, V[:, 0] % 3).value)


def test_whole_floats_are_classes_and_it_is_said():
    assert "whole numbers" in prepare_inputs(Z, V.astype(float)).notes[0]


def test_a_stated_space_is_kept_and_checked():
    space = FactorSpace((Factor("a", 6), Factor("b", 4, "cyclic")))
    assert prepare_inputs(Z, V, space).space is space
    with pytest.raises(BadInput, match=r"values 0..3 but its space has 0..2"):
        prepare_inputs(Z, V, FactorSpace((Factor("a", 3), Factor("b", 4))))


def test_labels_are_shared_by_both_halves():
    table = prepare_inputs(Z[:3], np.array([5, 7, 7]), test_codes=Z[:2], test_factors=np.array([9, 5]))
    assert table.rows.labels[:, 0].tolist() == [0, 1, 1]
    assert table.held_out.labels[:, 0].tolist() == [2, 0]
    assert table.classes == (3,)


def test_binning_continuous_factors_is_a_choice_and_is_said():
    v = RNG.uniform(size=(200, 1))
    table = prepare_inputs(Z, v, bin_continuous=5)
    assert table.classes == (5,)
    assert "was binned into 5 equal widths" in table.notes[0]


NAN = Z.copy()
NAN[3, 1] = np.nan
INF = Z.copy()
INF[0, 0] = np.inf
BAD = [
    ((NAN, V), r"codes\[3, 1\] is nan \(1 such values\)"),
    ((INF, V), r"codes\[0, 0\] is inf"),
    ((1e18 * Z, V), "beyond 1e"),
    ((Z[:1], V[:1]), r"1 row\(s\)"),
    ((Z, V[:50]), "factors have 50 rows but the codes have 200"),
    ((Z[:, :0], V), "no columns"),
    ((Z, V[:, :0]), "no columns"),
    ((Z[None], V), r"shape \(1, 200, 2\)"),
    ((Z, V[None]), r"shape \(1, 200, 2\)"),
    ((Z.astype(str) + "x", V), "not numbers"),
    ((Z, np.ones((200, 1), int)), r"'factor0' is constant \(1\)"),
    ((Z, np.full((200, 1), 0.5)), r"constant \(0.5\)"),
    ((Z, np.where(V == 1, np.nan, V)), "NaN or infinite"),
    (([[1.0, 2.0], [3.0]], [0, 1]), "different lengths"),
    ((Z, V.astype(complex)), "complex"),
]


@pytest.mark.parametrize(("arrays", "reason"), BAD)
def test_bad_arrays_are_refused_in_one_line(arrays, reason):
    with pytest.raises(BadInput, match=reason) as error:
        score(*arrays, metrics="mig")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kinds": ["categorical", "ordinal"]}, "'factor0' is given as categorical but holds 200 distinct values"),
        ({"kinds": ["round", "ordinal"]}, "='round' is unknown"),
        ({"kinds": ["ordinal"] * 3}, "3 kinds for 2 factor columns"),
        ({"names": ["a"]}, "1 factor names for 2"),
        ({"names": ["a", "a"]}, "must differ"),
        ({"test_codes": Z}, "give both or neither"),
        ({"test_codes": Z[:, :1], "test_factors": V}, "test_codes have 1 columns, codes 2"),
        ({"test_codes": Z, "test_factors": V[:, :1]}, "test_factors have 1 columns, factors 2"),
        ({"variances": -np.ones(Z.shape)}, "variances have shape"),
        ({"metrics": "mgi"}, "did you mean 'mig'"),
    ],
)
def test_bad_options_are_refused(options, reason):
    v = np.stack([RNG.normal(size=200), V[:, 1]], axis=1) if "kinds" in options else V
    with pytest.raises(BadInput, match=reason):
        score(Z, v, **{"metrics": "mig", **options})


def test_very_many_classes_warn_or_are_refused():
    v = np.arange(2000)
    with pytest.warns(UserWarning, match="2000 classes in 2000 rows"):
        assert np.isfinite(score(RNG.normal(size=(2000, 2)), v, metrics="mig")["mig"].value)
    with pytest.raises(BadInput, match=f"at most {MANY_CLASSES} classes"):
        score(RNG.normal(size=(2000, 2)), v, metrics="sap")


def test_a_class_that_only_the_held_out_rows_have():
    """A label that training never saw is a wrong answer, not an error."""
    v, vt = np.repeat([[0], [1]], 60, axis=0), np.repeat([[0], [1], [2]], 20, axis=0)
    names = ["sap", "explicitness", "dci-informativeness", "ds", "downstream-trees-10"]
    found = score(v.astype(float), v, metrics=names, test_codes=vt.astype(float), test_factors=vt)
    assert all(np.isfinite(s.value) for s in found.values())
    assert found["dci-informativeness"].value == pytest.approx(2 / 3)


def test_fewer_rows_than_classes():
    z = RNG.normal(size=(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = score(z, np.arange(12))
    assert all(np.isfinite(s.value) for s in found.values())


finite = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    n=st.integers(2, 40),
    k=st.integers(1, 4),
    f=st.integers(1, 3),
    dtype=st.sampled_from([np.float32, np.float64, np.int32, np.bool_]),
)
def test_any_array_gives_finite_numbers_or_one_line(data, n, k, f, dtype):
    """Shapes, types and degenerate columns: a number in range, or BadInput; never NaN, never another error."""
    element = finite if np.issubdtype(dtype, np.floating) else None
    z = data.draw(hnp.arrays(dtype, (n, k), elements=element))
    columns = [data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 4))) for _ in range(f)]
    if data.draw(st.booleans()):
        columns[0] = data.draw(hnp.arrays(np.float64, n, elements=st.floats(-10, 10)))
    cheap = [m for m in METRICS if METRICS[m].cheap]
    frame = pandas.DataFrame({f"f{i}": c for i, c in enumerate(columns)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name in data.draw(st.permutations(cheap))[:4]:
            try:
                result = score(z, frame, metrics=name)[name]
            except BadInput as reason:
                assert "\n" not in str(reason)  # noqa: PT017
                continue
            low, high = METRICS[name].range
            assert low - 1e-6 <= result.value <= high + 1e-6, name


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), n=st.integers(4, 30))
def test_trees_survive_degenerate_tables(data, n):
    z = data.draw(hnp.arrays(np.float32, (n, 2), elements=st.sampled_from([0.0, 1.0, 1e-30, 1e6])))
    v = data.draw(hnp.arrays(np.int64, (n, 1), elements=st.integers(0, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = score(z, v, metrics=[m for m in METRICS if m.startswith("dci")])
        except BadInput:
            return
    assert all(np.isfinite(s.value) for s in found.values())
