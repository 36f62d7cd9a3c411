"""`unseam score`: files in, a table or one JSON document out, bad input in one line with exit code 2."""

import json

import numpy as np
import pandas
import pytest
from _known import known

from unseam.cli import main
from unseam.metrics import score

Z, V = known("noisy-0.1", 300, (2, 3, 4), 4)
NAMES = ["shape", "scale", "x"]


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "codes.npy", Z)
    np.save(tmp_path / "factors.npy", V)
    np.savez(tmp_path / "both.npz", codes=Z, factors=V)
    np.savez(tmp_path / "other.npz", a=Z, b=V)
    pandas.DataFrame(V, columns=NAMES).to_csv(tmp_path / "factors.csv", index=False)
    pandas.DataFrame(Z).to_csv(tmp_path / "codes.csv", index=False, header=False)
    pandas.DataFrame(V, columns=NAMES).to_parquet(tmp_path / "factors.parquet")
    pandas.DataFrame(Z, columns=[f"z{j}" for j in range(4)]).to_parquet(tmp_path / "codes.parquet")
    return tmp_path


def run_json(capsys, *args):
    assert main(["score", *map(str, args), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("codes", "factors"),
    [
        ("codes.npy", "factors.npy"),
        ("both.npz", "both.npz"),
        ("other.npz:a", "other.npz:b"),
        ("codes.csv", "factors.csv"),
        ("codes.parquet", "factors.parquet"),
    ],
)
def test_every_file_kind_scores_the_same(folder, capsys, codes, factors):
    document = run_json(capsys, folder / codes, folder / factors, "--metrics", "mig,sap-r2")
    expected = run_json(capsys, folder / "codes.npy", folder / "factors.npy", "--metrics", "mig,sap-r2")
    for name in ("mig", "sap-r2"):
        assert document["scores"][name]["value"] == pytest.approx(expected["scores"][name]["value"], abs=1e-6)


def test_the_document_has_what_the_design_promises(folder, capsys):
    document = run_json(
        capsys, folder / "codes.npy", folder / "factors.csv", "--metrics", "mig,explicitness", "--chance"
    )
    mig = document["scores"]["mig"]
    assert mig["value"] > 0.5
    assert len(mig["per_factor"]) == 3
    assert mig["settings"]["bins"] == 20
    assert mig["chance"] < 0.2
    assert [f["name"] for f in document["factors"]] == NAMES


def test_held_out_files_are_used(folder, capsys):
    held = ("--test-codes", folder / "codes.npy", "--test-factors", folder / "factors.npy")
    document = run_json(capsys, folder / "codes.npy", folder / "factors.npy", *held, "--metrics", "sap")
    assert document["scores"]["sap"]["settings"]["test"] == 300
    assert document["rows"] == {"train": 300, "test": 300}


def test_a_short_table_explains_its_metrics_and_a_long_one_does_not(folder, capsys):
    files = [str(folder / "codes.npy"), str(folder / "factors.csv")]
    assert main(["score", *files, "--metrics", "mig"]) == 0
    assert "mig: Is each factor held by exactly one latent? Perfect: 1; less for" in capsys.readouterr().err
    assert main(["score", *files, "--metrics", "mig,mig-sup,rmig,jemmig,dcimig,sap-r2,modularity,mcc,infom"]) == 0
    assert "Is each factor held by exactly one latent?" not in capsys.readouterr().err


def test_all_metrics_print_a_table(folder, capsys):
    assert main(["score", str(folder / "codes.npy"), str(folder / "factors.csv"), "--metrics", "all"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].split() == ["metric", "value", *NAMES]
    assert any(line.startswith("mig ") for line in lines)
    assert "left out downstream-trees-10000" in printed.err


def test_the_table_shows_the_numbers_of_the_document(folder, capsys):
    args = [
        "score",
        str(folder / "codes.npy"),
        str(folder / "factors.csv"),
        "--metrics",
        "mig,sap-r2",
        "--chance",
        "--ci",
    ]
    document = run_json(capsys, *args[1:])["scores"]
    assert main(args) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["metric", "value", "95", "%", "CI", "chance", *NAMES]
    for line in lines:
        name, value, low, _, high, chance, *factors = line.split()
        s = document[name]
        assert [value, low, high, chance] == [f"{x:.3f}" for x in (s["value"], *s["ci"], s["chance"])]
        assert factors == [f"{x:.3f}" for x in s["per_factor"]]


def test_latex_with_names_and_intervals(folder, capsys):
    args = ["score", str(folder / "codes.npy"), str(folder / "factors.npy"), "--metrics", "mig", "--format", "latex"]
    assert main([*args, "--names", "a_b,c,d", "--kinds", "ordinal", "--ci"]) == 0
    text = capsys.readouterr().out
    assert r"a\_b" in text
    assert r"95 \% CI" in text
    assert text.count("&") == 2 * 5


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("nowhere.npy", "factors.npy"), "does not exist"),
        (("codes.txt", "factors.npy"), "'.txt'"),
        (("other.npz", "factors.npy"), "holds a, b; pick one with"),
        (("other.npz:c", "factors.npy"), "is unknown"),
        (("broken.npy", "factors.npy"), "corrupt or not a .npy file"),
        (("codes.npy", "factors.npy", "--metrics", "migg"), "did you mean 'mig'"),
        (("codes.npy", "codes.npy", "--kinds", "categorical"), "distinct values"),
        (("codes.npy", "codes.npy", "--metrics", "irs"), "cannot use continuous"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, args, reason):
    (folder / "codes.txt").write_text("1 2")
    (folder / "broken.npy").write_bytes(b"not an array")
    paths = [str(folder / a) if "." in a else a for a in args]
    assert main(["score", *paths]) == 2
    error = capsys.readouterr().err.strip()
    assert reason in error
    assert "\n" not in error


def test_a_matrix_of_numbers_without_a_header_keeps_its_first_row(folder, capsys):
    pandas.DataFrame(V).to_csv(folder / "plain.csv", index=False, header=False)
    document = run_json(capsys, folder / "codes.csv", folder / "plain.csv", "--metrics", "mig")
    assert document["rows"]["train"] == 300


def test_a_factor_called_value_does_not_hide_the_value():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 2))
    scores = score(z, pandas.DataFrame({"value": z[:, 0] > 0, "chance": rng.integers(0, 3, 300)}), metrics="mig")
    assert scores.table().loc["mig", "value"] == scores["mig"].value
    assert scores.table().loc["mig", "factor value"] == scores["mig"].per_factor[0]
