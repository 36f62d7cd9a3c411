"""`unseam diagnose RUN`: why each member disentangles, or does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseam.cli.common import AsJson, Device, ModelData, ModelLikelihood, OneMember, RunOrModel, emit, stdout
from unseam.cli.model_file import load_model, model_file, read_observations, refuse_run_flags, run_of_file
from unseam.errors import BadInput
from unseam.run import Run, load_run
from unseam.run.results import shared_connections
from unseam.runs.choices import DIAGNOSIS_POINTS

if TYPE_CHECKING:
    from unseam.geometry import Diagnosis


@dataclass
class Command:
    """Explain why a run separates the factors, or does not: a verdict in plain words, a table of latents, figures.

    Figures are written to RUN/diagnosis/. docs/geometry.md explains how to read them.

    Example: unseam diagnose runs/sprites-beta-vae --member 0
    """

    run_folder: RunOrModel
    member: OneMember = None
    points: int = DIAGNOSIS_POINTS
    """Number of rows at which the decoder is differentiated; held-out rows, if the run has any."""
    seed: int = 0
    """Seed of the choice of rows."""
    figures: bool = True
    """Draw the figures."""
    theorems: bool = False
    """Also say which identifiability theorem applies and which premise fails."""
    device: Device = "auto"
    data: ModelData = None
    likelihood: ModelLikelihood = None
    json: AsJson = False

    def run(self) -> None:
        if self.points < 2:
            raise BadInput(f"points={self.points} must be at least 2, and more than the run has latents")
        with shared_connections():
            self._report()

    def _report(self) -> None:
        from unseam.geometry.diagnosis import three_digits  # not above: --help needs no torch
        from unseam.runs.any_model import theorems
        from unseam.runs.diagnose import diagnose, heading, ranking, rows_of

        if model_file(self.run_folder) is not None:
            self.diagnose_model()
            return
        opened = run_of_file(self.run_folder, self.data, likelihood=self.likelihood) or load_run(self.run_folder)
        run = opened.on(self.device, double=True)
        row_sample = rows_of(run, self.points, self.seed)
        found = diagnose(run, None if self.member is None else [self.member], self.points, self.seed)
        paths = {m: draw(run, m, d) for m, d in found.items()} if self.figures else {}
        tables = {m: theorems(run, member=m, seed=self.seed) for m in found} if self.theorems else {}
        order = ranking(run, found)
        if self.json:
            agreed = order["seeds"]
            rows = [
                {
                    "member": m,
                    **d.to_json(),
                    **polarized(run, m),
                    **agreed.get(m, {}),
                    "figure": paths.get(m),
                    **({"theorems": tables[m].to_json()} if m in tables else {}),
                }
                for m, d in found.items()
            ]
            choice = {"chosen": order["chosen"], "order": order["order"]}
            emit({"run": run.folder, "members": rows, **choice, "ranking": order, "rows": row_sample.to_json()})
            return
        for m, d in found.items():
            stdout.print(heading(run, m), style="bold", soft_wrap=True)
            stdout.print(str(d), soft_wrap=True)
            stdout.print(polarized_text(polarized(run, m)))
            if m in order["seeds"]:
                stdout.print(agreement_in_words(order["seeds"][m]), soft_wrap=True)
            if m in tables:
                stdout.print(f"\n{tables[m]}", soft_wrap=True, markup=False)
            stdout.print(f"figure: {paths[m]}\n" if m in paths else "", soft_wrap=True)
        stdout.print(f"at {row_sample}")
        if len(found) > 1:
            by = rule(found, order["chosen"])
            stdout.print(f"chosen without labels: member {order['chosen']}, {by}", soft_wrap=True)
            stdout.print(f"without labels, best first: {', '.join(map(str, order['order']))}")
            for score, rho in order["agreement"].get("rank", {}).items():
                others = "".join(
                    f"; of {c} {three_digits(order['agreement'][c][score])}" for c in ("udr", "centrality")
                )
                stdout.print(f"  rank correlation with {score}: {three_digits(rho)}{others}")

    def diagnose_model(self) -> None:
        """Of a model of the user's own: `unseam.diagnose`."""
        from unseam.runs.any_model import diagnose, theorems

        refuse_run_flags(self.run_folder, self.device)
        x, _ = read_observations(self.data, self.run_folder)
        model = load_model(self.run_folder)
        found = diagnose(model, x, member=self.member, likelihood=self.likelihood, points=self.points, seed=self.seed)
        table = theorems(model, x, likelihood=self.likelihood, seed=self.seed) if self.theorems else None
        if self.json:
            row = {"member": 0, **found.to_json(), **({} if table is None else {"theorems": table.to_json()})}
            emit(
                {
                    "model": self.run_folder,
                    "members": [row],
                    "rows": {"which": "all", "count": min(self.points, len(x))},
                }
            )
            return
        stdout.print(str(found), soft_wrap=True)
        if table is not None:
            stdout.print(f"\n{table}", soft_wrap=True, markup=False)
        stdout.print(f"at {min(self.points, len(x))} of the {len(x)} rows read of {self.data}", soft_wrap=True)


def rule(found: Mapping[int, Diagnosis], chosen: int | None) -> str:
    """By what the choice was made: members with one latent in use have no axes whose distance could decide."""
    from unseam.runs.rank_members import RULE, RULE_WITHOUT_AXES

    return RULE if chosen is None or found[chosen].active > 1 else RULE_WITHOUT_AXES


def polarized(run: Run, member: int) -> dict[str, Any]:
    """Since which step, and for which share of training, the member was in the polarized regime."""
    from unseam.geometry import polarized_share, polarized_since
    from unseam.runs.history import regime

    steps, deltas = regime(run, member)
    since = polarized_since(deltas)
    return {
        "polarized_since": None if since is None else int(steps[since]),
        "polarized_share": polarized_share(deltas) if len(deltas) else None,
    }


def polarized_text(values: dict[str, Any]) -> str:
    if values["polarized_since"] is None:
        return "polarized regime: not reached" if values["polarized_share"] is not None else ""
    since, share = values["polarized_since"], values["polarized_share"]
    return f"polarized regime: since step {since} (the last {share:.0%} of the logged steps)"


def agreement_in_words(values: dict[str, Any]) -> str:
    """
    >>> agreement_in_words({"udr": 0.9, "udr_chance": 0.42, "centrality": None, "centrality_chance": None})
    'agreement with other seeds: UDR 0.90 (random axes 0.42)'
    """
    if values["udr"] is None:
        return "agreement with other seeds: none to compare"
    text = f"agreement with other seeds: UDR {values['udr']:.2f} (random axes {values['udr_chance']:.2f})"
    if values["centrality"] is None:
        return text
    return f"{text}, ModelCentrality {values['centrality']:.2f} (random axes {values['centrality_chance']:.2f})"


def draw(run: Run, member: int, diagnosis: Diagnosis) -> Path:
    """The member's figure, in RUN/diagnosis/."""
    from unseam.runs.diagnose import kl_weight_of
    from unseam.runs.history import history
    from unseam.show.diagnosis_figure import diagnosis_figure
    from unseam.show.style import save

    title = f"{run.config.objective} on {run.data_name}, member {member}, beta {kl_weight_of(run, member):g}"
    figure = diagnosis_figure(diagnosis, history(run, member), title)
    return save(figure, run.folder / "diagnosis" / f"member-{member}.png", dpi=120)
