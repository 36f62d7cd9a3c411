"""One row per model: what the published study measures, and what geometry says without labels.

Rows of the data are drawn once a piece: `rows` to fit and count on, `test` others to test predictors on, all of them
through the encoder once. Binning, mutual information and trees are shared between the metrics (`metrics.inputs`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from unseam.axes import Array, FactorSpace
from unseam.errors import BadInput
from unseam.geometry import diagnose
from unseam.metrics.base import Score
from unseam.metrics.beta_vae import beta_vae
from unseam.metrics.dci import completeness, correct, disentanglement, fit_factor, importances
from unseam.metrics.downstream import downstream, labelled
from unseam.metrics.factor_vae import factor_vae
from unseam.metrics.inputs import Inputs, prepare_inputs
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import COLLAPSED
from unseam.models import Autoencoder, Posterior
from unseam.rng import numpy_generator
from unseam.run import Run
from unseam.runs.rank_members import compare_members
from unseam.runs.represent import EncodedRows, join_posteriors, observation_chunks, sample_rows, without_constants
from unseam.study.grid import Piece

TOGETHER = 12_000_000  # values of observations that are encoded at once: 15,000 of 64 x 64 take 4 GB of activations
_COUNTED = ("mig", "modularity", "sap")
CENTRAL = 1000  # rows whose codes decoders are given for ModelCentrality
UNSUPERVISED = {"wasserstein": "wasserstein-dependency", "mi-pairs": "code-mutual-information"}


class Evaluator:
    """A trained piece and the rows that its models are scored on."""

    def __init__(self, run: Run, piece: Piece) -> None:
        self.run, self.piece, self.settings = run, piece, piece.evaluation
        self.table = run.table()
        self.for_factors: dict[Hashable, Any] = {}  # what metrics compute of the factors alone, for all models

    @cached_property
    def rows(self) -> torch.Tensor:  # (N,)
        wanted = self.settings.rows + self.settings.test
        return sample_rows(self.run, "all", wanted, use="study").rows

    @cached_property
    def x(self) -> torch.Tensor:  # (N, *shape), rendered once for all models of the piece
        return torch.cat(list(observation_chunks(self.run.data, self.rows)))

    @cached_property
    def factors(self) -> tuple[Array, FactorSpace] | None:
        if self.run.data.space is None:
            return None
        nothing: Any = None
        whole = EncodedRows(
            self.run.data, self.rows, nothing, self.run.data.factors(self.rows).numpy(), self.run.data.space
        )
        encoded = without_constants(whole)
        return None if encoded.factors is None or encoded.space is None else (encoded.factors, encoded.space)

    @torch.no_grad()
    def posterior(self, model: Autoencoder) -> Posterior:
        rows = max(1, TOGETHER // self.x[0].numel())
        return join_posteriors([model.encode(part) for part in self.x.split(rows)])

    def model(self, member: int) -> Autoencoder:
        """A member's model, if its checkpoint is that of the step at which its results were taken."""
        before, model, after = self.run.step(member), self.run.model(member), self.run.step(member)
        step, last_step = min(before, after), int(self.table.iloc[member]["step"])
        if step != last_step:
            raise BadInput(
                f"{self.run.folder}: its checkpoint is at step {step}, its results at step {last_step}; nothing is "
                "scored before the training is at its end: run the study again"
            )
        return model

    def codes(self, member: int) -> Array:  # (kept, K)
        """Codes of the first rows; NaN for a model that diverged."""
        with torch.no_grad():
            return self.model(member).encode(self.x[: self.settings.kept]).mean.numpy().astype(np.float32)

    def row(self, member: int) -> dict[str, Any]:
        """All numbers of one model; a diverged one has its name and its status."""
        about, trained = self.piece.models[member], self.table.iloc[member]
        row = {
            "data": about.data, "method": about.method.name, "strength": about.strength,
            "strength_name": about.method.swept, "seed": about.seed, "number": about.number,
            "piece": self.piece.name, "member": member, "status": str(trained["status"]), "steps": int(trained["step"]),
        }  # fmt: skip
        if row["status"] != "finished":
            return row | {"note": str(trained["note"])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self.model(member)
            numbers = self.scores(self.posterior(model)) | self.losses(member, model) | self.free(member, model)
        return row | {name: float(value) if math.isfinite(value) else None for name, value in numbers.items()}

    def scores(self, posterior: Posterior) -> dict[str, float]:
        """Metrics of mean and sampled codes, downstream accuracy of mean codes, and scores of the codes alone."""
        mean = posterior.mean.numpy()
        noise = numpy_generator(0, "study", "posterior").normal(size=mean.shape)
        sampled = (mean + np.sqrt(posterior.variance().numpy()) * noise).astype(np.float32)
        out = codes_alone(mean, sampled)
        if self.factors is not None:
            one, two = self.inputs(mean), self.inputs(sampled)
            out |= {f"mean.{k}": v for k, v in self.six(one).items()}
            out |= {f"sampled.{k}": v for k, v in self.six(two).items()}
            out |= self.downstream(one)
        return out

    def inputs(self, codes: Array) -> Inputs:
        assert self.factors is not None
        (factors, space), cut = self.factors, len(codes) - min(self.settings.test, len(codes) // 3)
        inputs = prepare_inputs(codes[:cut], factors[:cut], space, test_codes=codes[cut:], test_factors=factors[cut:],
                                prune=COLLAPSED, workers=1)  # fmt: skip
        return replace(inputs, for_factors=self.for_factors)

    def six(self, inputs: Inputs) -> dict[str, float]:
        """The six metrics of the study, and the two other sides of DCI."""
        trees = self.settings.trees
        points = {"train": self.settings.rows, "test": self.settings.test}
        to_compute: dict[str, Callable[[], float]] = {
            **{name: partial(_value, METRICS[name].compute, inputs) for name in _COUNTED},
            "dci-disentanglement": partial(_value, disentanglement.of, inputs, trees),
            "dci-completeness": partial(_value, completeness.of, inputs, trees),
            "dci-informativeness": lambda: float(importances(inputs, trees).test.mean()),
            "beta-vae": partial(_value, beta_vae.of, inputs, **points),
            "factor-vae": partial(_value, factor_vae.of, inputs, **points),
        }
        return {name: value_of(compute) for name, compute in to_compute.items()}

    def downstream(self, inputs: Inputs) -> dict[str, float]:
        """Test accuracy, the mean over the factors, by number of labels."""
        most = len(inputs)
        out = {
            f"downstream.logistic.{n}": value_of(partial(_value, downstream.of, inputs, "logistic", n))
            for n in self.settings.labels
            if n <= most
        }
        return out | {f"downstream.trees.{n}": self.by_trees(inputs, n) for n in self.settings.tree_labels if n <= most}

    def by_trees(self, inputs: Inputs, labels: int) -> float:
        if labels == len(inputs):
            return float(importances(inputs, self.settings.trees).test.mean())
        rows, (_, test) = labelled(inputs, labels), inputs.halves()
        models = [fit_factor(inputs, rows, f, self.settings.trees) for f in range(len(inputs.classes))]
        return float(np.mean([correct(inputs, f, model, test) for f, model in enumerate(models)]))

    def losses(self, member: int, model: Autoencoder) -> dict[str, float]:
        """Nats per image. The regulariser is what the loss has beside the negative ELBO."""
        trained = self.table.iloc[member]
        elbo = -float(trained["reconstruction"]) - float(trained["kl"])
        return {
            "unsup.reconstruction": float(trained["reconstruction"]),
            "unsup.kl": float(trained["kl"]),
            "unsup.elbo": elbo,
            "unsup.regulariser": float(trained["loss"]) + elbo,
        }

    def free(self, member: int, model: Autoencoder) -> dict[str, float]:
        """What geometry says without labels."""
        x = self.x[: max(self.settings.points, 2000)]
        with torch.no_grad():
            posterior = model.encode(x)
        found = diagnose(model, posterior.mean, posterior, beta=self.run.beta(member), points=self.settings.points)
        nan = float("nan")
        dto, chance = (nan if value is None else value for value in (found.dto, found.dto_haar))
        return {
            "free.dto": dto,
            "free.dto-chance": chance,
            "free.dto-over-chance": dto / chance if chance else nan,
            "free.entanglement-cost": found.entanglement_cost,
            "free.cost-over-beta": found.entanglement_cost / found.beta,
            "free.ima-contrast": nan if found.ima_contrast is None else found.ima_contrast,
            "free.active": found.active,
            "free.model-centrality": self.centrality.get(member, nan),
        }

    @cached_property
    def centrality(self) -> dict[int, float]:
        """ModelCentrality of each model among the finished ones of its setting in this piece, where there are two."""
        alike: dict[float, list[int]] = {}
        for member, about in enumerate(self.piece.models):
            if self.table["status"].iloc[member] == "finished":
                alike.setdefault(about.strength, []).append(member)
        found = [compare_members(self.run, group, self.rows[:CENTRAL], 0) for group in alike.values() if len(group) > 1]
        return {m: a.centrality for group in found for m, a in group.items() if a.centrality is not None}


def _value(metric: Callable[..., Score], *arguments: Any, **settings: Any) -> float:
    return metric(*arguments, **settings).value


def value_of(compute: Callable[[], float]) -> float:
    """A score, or NaN where it is not defined for these factors."""
    try:
        return compute()
    except BadInput:
        return float("nan")


def codes_alone(mean: Array, sampled: Array) -> dict[str, float]:
    """Scores of the codes alone; lower is more independent."""
    one, two = prepare_inputs(mean, workers=1), prepare_inputs(sampled, workers=1)
    out = {f"unsup.{name}": METRICS[metric].compute(one).value for name, metric in UNSUPERVISED.items()}
    tc = METRICS["gaussian-tc"].compute
    return out | {"unsup.tc-mean": tc(one).value, "unsup.tc-sampled": tc(two).value}
