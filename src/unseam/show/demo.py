"""A story in a minute: the factors of a real table, and a cohort of VAEs of which one is chosen without labels.

The table is the breast cancer data that comes with scikit-learn. The cohort learns squares of 6 sizes at 16 x 16
places: with a small beta the axes of every member are mixed, with a larger one some turn to the factors. The
page OUT/index.html shows both; nothing here knows which member wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from time import monotonic
from typing import Any

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.finding import Findings
from unseam.finding import find as find_factors
from unseam.run import Run, load_run
from unseam.run.config import Engine
from unseam.runs.evaluate import rows_for
from unseam.show.pages.demo import write_demo_page
from unseam.show.pages.find import write_find_page
from unseam.show.report.cohort import table_rows
from unseam.show.report.collect import collect_report
from unseam.show.report.sentences import why
from unseam.show.report.write import write_report
from unseam.train import fit, resume


@dataclass(frozen=True)
class Plan:
    """What the demo trains. Found by measurement: docs/how-it-was-measured.md says how."""

    data: str = "sprites"
    data_parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"size": 16, "shapes": 1, "orientations": 1, "xs": 16, "ys": 16}
    )
    betas: tuple[float, ...] = (0.5, 1.5)
    seeds: int = 4
    steps: int = 10_000
    batch: int = 32
    lr: float = 1e-3
    snapshots: int = 8
    latents: int = 5
    encoder: tuple[int, ...] = (128, 128)
    decoder: tuple[int, ...] = (128, 128)
    decoder_activation: str = "tanh"
    workers: int = 2  # fixed, because which members are stacked together decides the last bits of their arithmetic
    engine: Engine = "written-out"  # and so does the engine: the table is the same with and without JAX

    def settings(self, seed: int) -> dict[str, Any]:
        """The arguments of `fit`."""
        apart = ("data", "betas", "seeds")
        same = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        return {"network": "mlp", "beta": list(self.betas), "seeds": [seed + i for i in range(self.seeds)], **same}


@dataclass(frozen=True)
class DemoResult:
    """What the demo found."""

    run: Run
    rows: list[dict[str, Any]]  # one per member, as `cohort.table_rows`
    chosen: int
    compared: int | None  # the least orthogonal of the members with as many active latents
    active: int  # the stable number of active latents
    why: tuple[str, ...]  # of the compared member and of the chosen one
    found: Findings  # of the tumours
    tells: tuple[float, ...]  # by factor: how often a malignant tumour stands beyond a benign one, 0.5 to 1
    page: Path  # both examples, for a newcomer
    report: Path  # of the cohort
    seconds: float  # of this call; training that was already done is not in it


def demo(out: str | Path = "demo", seed: int = 0, show: bool | None = None, plan: Plan | None = None) -> DemoResult:
    """Find the factors of a real table, train a small cohort, choose a member without labels, and show both on a page.

    Call it again to continue a demo that was stopped.

    Parameters
    ----------
    out : str or Path, default="demo"
        The folder to write.
    seed : int, default=0
        The first of the seeds.
    show : bool, optional
        Whether to show progress bars; by default if stderr is a terminal.
    plan : Plan, optional
        Another cohort: strengths, seeds, steps and networks.

    Returns
    -------
    DemoResult
        The findings, the run, its rows, the chosen member and why, and the paths of the pages.

    Examples
    --------
    >>> import tempfile
    >>> small = Plan(betas=(1.0, 2.0), seeds=1, steps=4, encoder=(8,), decoder=(8,), latents=2, workers=1)
    >>> result = demo(tempfile.mkdtemp() + "/demo", show=False, plan=small)
    >>> len(result.rows), result.page.name
    (2, 'index.html')
    """
    began = monotonic()
    run = _train(Path(out), seed, plan or Plan(), show)
    found = collect_report(run, show=show)
    for view in found.views:
        if view.mig is not None:
            settings = {**view.mig.settings, "rows": rows_for(run).to_json()}
            run.rows.write_scores(view.member, {"mig": (view.mig.value, settings)})
    path = write_report(found, run.folder / "report.html", None, show=show)
    tumours, tells = tumours_find(run.folder / "found", seed)
    reasons = () if found.other is None else why(found.chosen, found.other)
    return DemoResult(
        run=run,
        rows=table_rows(run, found.views),
        chosen=found.chosen.member,
        compared=None if found.other is None else found.other.member,
        active=found.stable,
        why=reasons,
        found=tumours,
        tells=tells,
        page=write_demo_page(found, reasons, tumours, tells, run.folder / "index.html"),
        report=path,
        seconds=monotonic() - began,
    )


def tumours_find(out: Path, seed: int) -> tuple[Findings, tuple[float, ...]]:
    """`unseam find --no-network` on a real table that comes with scikit-learn, Wisconsin's breast cancer data: 30
    measurements of the cell nuclei of 569 tumours, and the diagnosis, which is left out. Then, with the diagnosis, how
    well each factor tells malignant from benign."""
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer(as_frame=True)
    found = find_factors(table.frame, out=out, seed=seed, network=False, show=False)
    malignant = table.target.to_numpy() == 0
    tells = tuple(pairs_told_apart(codes[malignant], codes[~malignant]) for codes in found.codes.to_numpy().T)
    return with_page(found, "569 tumours", out), tells


def pairs_told_apart(some: Array, others: Array) -> float:
    """The area under the ROC curve in whichever direction is better: how often one of `some` stands beyond one of
    `others`.

    >>> import numpy as np
    >>> pairs_told_apart(np.array([3.0, 4.0]), np.array([1.0, 3.0]))
    0.875
    """
    above = (some[:, None] > others).mean() + 0.5 * (some[:, None] == others).mean()
    return float(max(above, 1 - above))


def with_page(found: Findings, name: str, out: Path) -> Findings:
    page = write_find_page(found, name, out / "findings.html")
    return replace(found, paths={**found.paths, "report": str(page)})


def _train(out: Path, seed: int, plan: Plan, show: bool | None) -> Run:
    """Train the plan, or resume it."""
    if not (out / "config.json").exists():
        return fit(plan.data, "beta-vae", out=out, show=show, **plan.settings(seed))
    run = load_run(out)
    if not same(run, seed, plan):
        raise BadInput(
            f"out={str(out)!r} holds another run than this demo's; choose another --out or delete the folder"
        )
    return resume(out, show=show)


def same(run: Run, seed: int, plan: Plan) -> bool:
    """Whether a run folder holds this plan: members, data and training."""
    wanted = plan.settings(seed)
    members = [(s, b) for b in plan.betas for s in wanted["seeds"]]
    config = run.config
    return (
        [(m.seed, m.hyper.get("beta")) for m in run.members] == members
        and config.data["name"] == plan.data
        and all(config.data.get(name) == value for name, value in plan.data_parameters.items())
        and (config.training.steps, config.training.batch) == (plan.steps, plan.batch)
        and (config.optimiser.lr, config.architecture.latents) == (plan.lr, plan.latents)
        and (config.architecture.encoder, config.architecture.decoder) == (plan.encoder, plan.decoder)
        and config.architecture.decoder_activation == plan.decoder_activation
    )
