"""Rules of choice that need the models themselves, and fusing seeds instead of choosing one.

Twenty cohorts of five seeds: two data sets, ten settings (method and strength). `choose.py` judges the rules that a
study's table holds; here the decoders are still there, so these are judged as well, in the same way:

    ModelCentrality        of the models of a pool (`unseam.metrics.centrality`)
    recurrence             mean |rank correlation| of the active latents with their partners in other seeds
    self-MIG               mean over active latents i of 1 - max_j I(q_i; q_j) / H(q_i), of binned codes
    entropic scores        redundancy R, and the share of latents that the spectrum amounts to

A fused representation averages the latents that recur: each is matched with the latents of every other seed, and where
more than half of them have a partner (|rank correlation| of 0.7 or more) the standardised partners are averaged. It is
compared with the seeds that it was made of, by metrics against labels and by the variance of the observations that a
linear decoder, and one on 300 random features (distilled from nothing but codes and observations), explain.

    unseam bench choose-models --out FOLDER        # trains 100 small models; the same command continues
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from choose import by_labels, taken, text, wins

import unseam
from unseam.atomic import write_atomic
from unseam.geometry import entropic_scores
from unseam.metrics.centrality import Generative, model_centrality
from unseam.run import Run
from unseam.runs.diagnose import diagnose
from unseam.runs.rank_members import RankInput, generative, median_udr, rank, relative_dto
from unseam.runs.represent import EncodedRows, represent, sample_rows
from unseam.stats import matched, rank_correlations, standardise
from unseam.study.analyse.intervals import of_mean

LONG = True
DATA = {
    "sprites": {"size": 12, "scales": 3, "orientations": 4, "xs": 6, "ys": 6},
    "rooms": {"size": 8, "colours": 4, "scales": 3, "orientations": 3},
}
METHODS = {
    "beta-vae": {"beta": (0.5, 1, 2, 4)},
    "beta-tcvae": {"beta": (2, 4, 8)},
    "dip-vae-ii": {"lambda_od": (2, 10, 50)},
}
SEEDS = range(5)
STEPS, LATENTS = 1500, 8
JUDGES = ("beta-vae", "factor-vae", "mig", "dci-disentanglement", "modularity", "sap")
INFOMEC = ("infom", "infoe", "infoc")
COMPARED = ("mig", "dci-disentanglement", *INFOMEC)
ROWS, BINS, FEATURES = 1000, 20, 300
AT = 0.7  # |rank correlation| from which on two latents are the same


class Cohort(NamedTuple):
    """The seeds of one setting, which are members of a run of all strengths of a method."""

    data: str
    method: str
    place: int  # of the strength

    @property
    def strength(self) -> float:
        return float(next(iter(METHODS[self.method].values()))[self.place])

    @property
    def name(self) -> str:
        """
        >>> Cohort("sprites", "beta-vae", 3).name
        'sprites-beta-vae-4'
        """
        return f"{self.data}-{self.method}-{self.strength:g}"

    @property
    def members(self) -> list[int]:
        return [self.place * len(SEEDS) + s for s in SEEDS]


def cohorts(data: str | None = None) -> list[Cohort]:
    """
    >>> len(cohorts()), len(cohorts("rooms"))
    (20, 10)
    """
    sets = DATA if data is None else (data,)
    return [Cohort(d, m, i) for d in sets for m, s in METHODS.items() for i in range(len(next(iter(s.values()))))]


def trained(folder: Path, data: str, method: str) -> Run:
    """All strengths of a method, continued where it stopped."""
    place = folder / f"{data}-{method}"
    if (place / "config.json").exists():
        return unseam.resume(place, show=False)
    sweep: dict[str, Any] = {name: list(values) for name, values in METHODS[method].items()}
    return unseam.fit(
        data, method, seeds=SEEDS, steps=STEPS, network="mlp", encoder=(48,), decoder=(48,), latents=LATENTS,
        lr=3e-3, workers=1, data_parameters=DATA[data], out=place, show=False, **sweep,
    )  # fmt: skip


def encoded(run: Run, members: list[int]) -> dict[int, EncodedRows]:
    """The codes of these members, of the same rows."""
    rows = sample_rows(run, None, ROWS, 0, "choose-models").rows
    return {m: represent(run.model(m), run.data, rows) for m in members}


def in_use(seen: dict[int, EncodedRows], member: int) -> np.ndarray:
    return seen[member].codes[:, seen[member].in_use]


def recurrence(codes: list[np.ndarray]) -> list[float]:
    """How well the latents of each model are found again in the others: the mean over its latents and the others."""
    out = []
    for i, own in enumerate(codes):
        others = [matched(np.abs(rank_correlations(own, other))).values for j, other in enumerate(codes)
                  if j != i and other.shape[1]]  # fmt: skip
        out.append(float(np.mean(others)) if others and own.shape[1] else float("nan"))
    return out


def binned(codes: np.ndarray) -> np.ndarray:
    """Codes in bins of equal numbers of rows."""
    order = codes.argsort(0, kind="stable").argsort(0, kind="stable")
    return order * BINS // len(codes)


def self_mig(codes: np.ndarray) -> float:
    """Mean over latents of 1 - max_j I(q_i; q_j) / H(q_i); NaN of fewer than two.

    >>> t = np.arange(400.0)
    >>> round(self_mig(np.stack([t, t], 1)), 3), self_mig(np.stack([t, t % 20], 1)) > 0.9
    (0.0, True)
    """
    K = codes.shape[1]
    if K < 2:
        return float("nan")
    q, most = binned(codes), np.zeros(K)
    for i in range(K):
        for j in range(i):
            table = np.bincount(q[:, i] * BINS + q[:, j], minlength=BINS**2).reshape(BINS, BINS) / len(q)
            apart = np.outer(table.sum(1), table.sum(0))
            shared = float((table[table > 0] * np.log(table[table > 0] / apart[table > 0])).sum())
            most[i], most[j] = max(most[i], shared), max(most[j], shared)
    return float(np.mean(1 - most / np.log(BINS)))


def rules_of(run: Run, seen: dict[int, EncodedRows]) -> list[dict[str, float]]:
    """Every rule of every seed of a cohort, the larger the better."""
    found = diagnose(run, list(seen), points=100, show=False)
    table = run.table().set_index("member")
    order = rank([found[m] for m in seen]).rank
    again = recurrence([in_use(seen, m) for m in seen])
    able = [m for m in seen if in_use(seen, m).shape[1]]
    alike = median_udr({m: in_use(seen, m) for m in able}, 0) if len(able) > 1 else {}
    rows = []
    for place, m in enumerate(seen):
        d = found[m]
        scores = entropic_scores(run.model(m).mean, torch.as_tensor(seen[m].codes[:100]).float())
        active = max(int(seen[m].in_use.sum()), 1)
        rows.append({
            "DtO over chance": -relative_dto(RankInput.of(d)),
            "entanglement cost over beta": -d.entanglement_cost / d.beta,
            "ELBO": -float(table.loc[m, "reconstruction"]) - float(table.loc[m, "kl"]),
            "UDR": alike[m][0] if m in alike else float("nan"),
            "recurrence of latents": again[place],
            "self-MIG": self_mig(in_use(seen, m)),
            "entropic redundancy": -scores.redundancy,
            "entropic spectrum, share of active latents": scores.effective / active,
            "our ranking among seeds": -float(order[place]),
            "active": int(seen[m].in_use.sum()),
        })  # fmt: skip
    return rows


def as_generative(run: Run, member: int, seen: EncodedRows) -> Generative:
    return generative(run, member, seen.codes, seen.in_use)


# Fusion


def fuse(codes: list[np.ndarray]) -> np.ndarray:  # S x (N, A) -> (N, groups)
    """Latents that recur in more than half of the other seeds, averaged; two passes, the second from the averages.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(500, 2))
    >>> found = fuse([z + 0.1 * rng.normal(size=z.shape), -z[:, ::-1], z, rng.normal(size=z.shape)])
    >>> found.shape, bool(np.abs(rank_correlations(found, z)).max(0).min() > 0.9)
    ((500, 2), True)
    """
    codes = [standardise(c)[0] for c in codes if c.shape[1]]
    first = codes[int(np.nanargmax(recurrence(codes)))]
    for _ in range(2):
        sums, counts = np.zeros_like(first), np.zeros(first.shape[1])
        for own in codes:
            rho = rank_correlations(first, own)
            partners = matched(np.abs(rho))
            for i in np.flatnonzero((partners.values >= AT) & (partners.columns >= 0)):
                sums[:, i] += np.sign(rho[i, partners.columns[i]]) * own[:, partners.columns[i]]
                counts[i] += 1
        often = counts - 1 > (len(codes) - 1) / 2
        if not often.any():
            return first[:, :0]
        first = sums[:, often] / counts[often]
    return first


def explained(codes: np.ndarray, x: np.ndarray, features: int = 0) -> float:
    """The share of held-out variance that ridge regression on codes (or random features of them) explains."""
    if not codes.shape[1]:
        return 0.0
    z = standardise(codes)[0]
    if features:
        rng = np.random.default_rng(0)
        z = np.hstack([z, np.tanh(z @ rng.normal(size=(z.shape[1], features)) + rng.normal(size=features))])
    z = np.hstack([z, np.ones((len(z), 1))])
    half = len(z) // 2
    gram = z[:half].T @ z[:half] + 1e-3 * half * np.eye(z.shape[1])
    residual = x[half:] - z[half:] @ np.linalg.solve(gram, z[:half].T @ x[:half])
    return float(1 - np.square(residual).sum() / np.square(x[half:] - x[:half].mean(0)).sum())


def quality(codes: np.ndarray, factors: np.ndarray, space: Any, x: np.ndarray) -> dict[str, float]:
    """A representation against the factors and the observations; 0 where it has no latents."""
    out = dict.fromkeys((*JUDGES, *INFOMEC), 0.0)
    if codes.shape[1]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = unseam.score(codes, factors, space, metrics=tuple(out))
        out |= {name: found[name].value for name in found}
    return {**out, "linear": explained(codes, x), "random features": explained(codes, x, FEATURES),
            "latents": float(codes.shape[1])}  # fmt: skip


def numbers_of(folder: Path, cohort: Cohort) -> dict[str, Any]:
    """The numbers of one cohort, from its file where they were computed before."""
    file = folder / f"{cohort.name}.json"
    if file.exists():
        document: dict[str, Any] = json.loads(file.read_text())
        return document
    run = trained(folder, cohort.data, cohort.method)
    seen = encoded(run, cohort.members)
    rules = rules_of(run, seen)
    first = seen[cohort.members[0]]
    rows = sample_rows(run, None, ROWS, 0, "choose-models").rows
    x = run.data.batch(rows).flatten(1).double().numpy()
    able = [m for m in seen if seen[m].in_use.any()]
    central = dict.fromkeys(seen, float("nan"))
    if len(able) > 1:
        models = [as_generative(run, m, seen[m]) for m in able]
        central |= {m: s.value for m, s in zip(able, model_centrality(models), strict=True)}
    document = {
        "data": cohort.data, "method": cohort.method, "strength": cohort.strength,
        "seeds": [
            {**rules[s], "ModelCentrality among seeds": central[m],
             "quality": quality(in_use(seen, m), first.factors, first.space, x)}
            for s, m in enumerate(seen)
        ],
        "fused": quality(fuse([in_use(seen, m) for m in seen]), first.factors, first.space, x),
    }  # fmt: skip
    write_atomic(file, json.dumps(document))
    return document


def centrality_among_settings(folder: Path, data: str) -> dict[int, list[float]]:
    """ModelCentrality of each setting of a data set, seed by seed."""
    file = folder / f"{data}-centrality.json"
    if file.exists():
        return {int(seed): values for seed, values in json.loads(file.read_text()).items()}
    runs = {method: trained(folder, data, method) for method in METHODS}
    out = {}
    for seed in SEEDS:
        models = []
        for cohort in cohorts(data):
            run, member = runs[cohort.method], cohort.members[seed]
            models.append(as_generative(run, member, encoded(run, [member])[member]))
        out[seed] = [s.value for s in model_centrality(models)]
    write_atomic(file, json.dumps(out))
    return out


def pools(documents: list[dict[str, Any]], central: dict[str, dict[int, list[float]]]) -> dict[str, list[list[dict]]]:
    """Models among which a rule takes one: the settings of a data set and seed, or the seeds of a setting."""
    seeds = [[{**one, "ModelCentrality": one["ModelCentrality among seeds"],
               "our ranking": one["our ranking among seeds"]} for one in d["seeds"]] for d in documents]  # fmt: skip
    settings = []
    for data in DATA:
        of = [d for d in documents if d["data"] == data]
        for s in SEEDS:
            pool = [dict(d["seeds"][s]) for d in of]
            for one, value in zip(pool, central[data][s], strict=True):
                one["ModelCentrality"] = value
            settings.append(pool)
    return {"settings": settings, "seeds": seeds}


RULES = (
    "ModelCentrality", "recurrence of latents", "self-MIG", "entropic redundancy",
    "entropic spectrum, share of active latents", "UDR", "DtO over chance", "entanglement cost over beta", "ELBO",
    "our ranking",
)  # fmt: skip


def rates(pool_list: list[list[dict]]) -> list[dict[str, Any]]:
    """The success of every rule over pools, with its interval, best first."""
    results: dict[str, list[float]] = {}
    for pool in pool_list:
        values = np.array([[one["quality"][name] for name in JUDGES] for one in pool])
        won = wins(values)
        for rule in RULES:
            if all(rule in one for one in pool):
                score = np.array([np.nan if one[rule] is None else one[rule] for one in pool], dtype=float)
                results.setdefault(rule, []).append(taken(score, won.mean(axis=1)))
        for rule, value in by_labels(values, won).items():
            results.setdefault(rule, []).append(value)
    rows = []
    for rule, values in results.items():
        known = np.array(values)[np.isfinite(values)]
        low, high = np.clip(of_mean(known), 0, 1)
        rows.append({"rule": rule, "rate": float(known.mean()), "low": float(low), "high": float(high),
                     "pools": len(known)})  # fmt: skip
    return sorted(rows, key=lambda row: -row["rate"])


def compared(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fused representation beside the seeds that a rule takes, the mean seed and the best."""
    by: dict[str, Callable[[dict[str, Any]], Any]] = {
        "the seed of our ranking": lambda d: argmax(d, "our ranking among seeds"),
        "the seed whose latents recur most": lambda d: argmax(d, "recurrence of latents"),
    }
    rows = []
    for name in (*COMPARED, "linear", "random features", "latents"):
        members = np.array([[m[name] for m in [one["quality"] for one in d["seeds"]]] for d in documents])
        fused = np.array([d["fused"][name] for d in documents])
        row: dict[str, Any] = {"what": name, "fused": fused.mean(), "mean seed": members.mean(),
                               "best seed": members.max(1).mean()}  # fmt: skip
        for rule, pick in by.items():
            chosen = np.array([row_[pick(d)] for row_, d in zip(members, documents, strict=True)])
            row[rule] = chosen.mean()
            row[f"fused less {rule}"] = tuple(map(float, of_mean(fused - chosen)))
        row["fused less mean seed"] = tuple(map(float, of_mean(fused - members.mean(1))))
        row["cohorts where fused beats the mean seed"] = int((fused > members.mean(1)).sum())
        row["cohorts where fused beats the best seed"] = int((fused > members.max(1)).sum())
        rows.append(row)
    return rows


def argmax(document: dict[str, Any], rule: str) -> int:
    values = [-np.inf if one[rule] is None or not np.isfinite(one[rule]) else one[rule] for one in document["seeds"]]
    return int(np.argmax(values))


def run(out: Path | None = None, **_: Any) -> dict[str, Any]:
    """Train what is missing, then all tables; the numbers of each cohort stay in `out`."""
    folder = Path(out or "choose-models")
    folder.mkdir(parents=True, exist_ok=True)
    documents = [numbers_of(folder, cohort) for cohort in cohorts()]
    central = {data: centrality_among_settings(folder, data) for data in DATA}
    found = {f"among the {kind}": rates(each) for kind, each in pools(documents, central).items()}
    fusion = compared(documents)
    shown = "\n".join(f"{r['what']}: " + ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
                      for k, v in r.items() if k != "what") for r in fusion)  # fmt: skip
    return {
        "ratios": {},
        "how": f"{len(documents)} cohorts of {len(SEEDS)} seeds; chance 50 %",
        "text": "\n".join(text(title, rows) for title, rows in found.items()) + "\n" + shown,
        "fusion": fusion,
        **found,
    }
