"""The report of a run that trains no decoder (PCL): its scores, what each latent knows, the data along each latent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from unseam.atomic import write_atomic
from unseam.errors import BadInput
from unseam.objectives import OBJECTIVES
from unseam.run import Run
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.rank_members import NOTHING, MemberAgreement, member_agreement
from unseam.runs.represent import RowSample, represent
from unseam.show.contact_sheet import GAP, evenly
from unseam.show.pictures import strip
from unseam.show.report import provenance
from unseam.show.report.collect import records, scored
from unseam.show.report.figures import heatmap
from unseam.show.style import save, styled, svg, template

_METRICS = ("mig", "dci-disentanglement")
_COLUMNS = 12  # observations along a latent


def write_codes(
    run: Run, path: Path, member: int | None, figures: Path | None, formats: Any, show: bool | None = None
) -> int:
    """Write the page; returns the member it shows, the first unless another is named."""
    members, row_sample = run.finished_members(), rows_for(run)
    rows = [row for row in records(run) if row["member"] in members]
    if not members or member not in (None, *members):
        raise BadInput(f"member={member} is not a finished member of this run; choose one of {members}")
    shown = members[0] if member is None else member
    scores: Mapping[int, Any] = {} if run.data.space is None else evaluate(run, _METRICS, members, show=show)
    agreed = member_agreement(run, members, show=show) if len(members) > 1 else {}
    drawn = {"along": along(run, shown, row_sample)} if len(run.data.shape) == 3 else {}
    found = scored(run, shown, row_sample)
    if "share" in found:
        names = [str(k) for k in range(found["share"].shape[1])]
        drawn["information"] = heatmap(found["share"], found["factors"], names)
    page = template("codes.html").render(
        run=run,
        name=run.data_name,
        cannot=OBJECTIVES[run.config.objective].cannot,
        row_sample=row_sample,
        metrics=_METRICS if scores else (),
        rows=[_line(row, scores, agreed) for row in rows],
        shown=shown,
        drawn={name: svg(figure, name) for name, figure in drawn.items()},
        command=provenance.command(run),
        facts=provenance.facts(run, rows),
    )
    write_atomic(path, page)
    for name, figure in drawn.items() if figures is not None else ():
        for suffix in formats:
            save(figure, Path(str(figures)) / f"{name}.{suffix}")
    return shown


def _line(row: Mapping[str, Any], scores: Mapping[int, Any], agreed: Mapping[int, MemberAgreement]) -> dict[str, Any]:
    """One member: seed, loss, its scores, and how far other seeds agree."""
    member = int(row["member"])
    found = {name: score.value for name, score in scores.get(member, {}).items()}
    return {"member": member, "seed": row["seed"], "loss": row["loss"], **found, "udr": agreed.get(member, NOTHING).udr}


@styled
def along(run: Run, member: int, row_sample: RowSample) -> Figure:
    """A row per latent: observations from its lowest to its highest value, evenly by rank."""
    codes = represent(run.model(member), run.data, row_sample.rows).codes
    figure = Figure(figsize=(_COLUMNS * 0.62 + 1.2, codes.shape[1] * 0.66 + 0.1), layout="constrained")
    for k, axes in enumerate(figure.subplots(codes.shape[1], 1, squeeze=False)[:, 0]):
        order = torch.as_tensor(np.argsort(codes[:, k], kind="stable"))
        images = run.data.batch(row_sample.rows[order[evenly(len(order), _COLUMNS)]])
        axes.imshow(strip(images, _COLUMNS, GAP), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set_ylabel(f"latent {k}", rotation=0, ha="right", va="center")
        axes.set(xticks=[], yticks=[], frame_on=False)
    return figure
