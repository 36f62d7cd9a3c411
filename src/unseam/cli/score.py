"""`unseam score CODES FACTORS`: disentanglement metrics on plain arrays."""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro

from unseam.cli.common import AsJson, MaybeInt, MaybeText, ModelData, emit, parse_numbers
from unseam.cli.model_file import load_model, model_file, read_observations, refuse_model_flags
from unseam.metrics.inputs.read import read_array
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import TABLE_FORMATS, score
from unseam.progress import log

_EXPLAINED = 8  # metrics whose question is printed below the table, where there are no more


@dataclass
class Command:
    """Score codes against known factors. Needs two arrays or tables, no model.

    Example: unseam score codes.npy factors.npy --metrics mig,dci-disentanglement --ci --format latex
    """

    codes: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="CODES")]
    """Codes (N, K): .npy, .npz, .h5, .csv, .tsv or .parquet; file.npz:NAME picks an array, file.csv:a,b columns.
    Or FILE.py:NAME, a model of your own, with --data: its codes."""
    factors: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FACTORS")]
    """True factors (N, F), one row for each row of the codes."""
    test_codes: MaybeText = None
    """Held-out codes; without them a third of the rows is held out where a metric needs it."""
    test_factors: MaybeText = None
    """Held-out factors."""
    names: MaybeText = None
    """Names of the factors: shape,scale,x,y."""
    kinds: MaybeText = None
    """Kinds of the factors: categorical, ordinal, cyclic or continuous; one for all, or a list like the names."""
    metrics: str = "mig,mig-sup,mcc,dci"
    """Metrics by name or family, as a list: mig,sap,dci; or all. The default asks four different
    questions: docs/metrics/index.md."""
    ci: bool = False
    """Add 95 % intervals, by half-samples of the rows."""
    chance: bool = False
    """Add the chance level: the metric after the rows of the codes are shuffled."""
    bin_continuous: MaybeInt = None
    """Bin continuous factors into this many equal widths, so that metrics on classes accept them."""
    groups: MaybeText = None
    """Latents that are vectors, as columns counted from 0: 0-3,4-7. Each becomes its first principal component."""
    components: int = 1
    """Numbers that a group becomes; with more than one, only metrics of vectors answer (dci, downstream, ...)."""
    active: MaybeText = None
    """Latents that count, by number: 0,2,5; all when not given. docs/metrics/inputs.md says why some should not."""
    format: Literal["text", "latex"] = "text"
    """How to print the table."""
    data: ModelData = None
    seed: int = 0
    """Seed of splits, samples and models."""
    workers: Annotated[int | None, tyro.conf.arg(name="threads", metavar="INT")] = None
    """Threads; all cores when not given."""
    json: AsJson = False

    def run(self) -> None:
        places = {name: getattr(self, name) for name in ("codes", "factors", "test_codes", "test_factors")}
        of_model = model_file(self.codes) is not None
        if not of_model:
            refuse_model_flags(self.codes, self.data)
        read = {
            name: read_array(place, name)
            for name, place in places.items()
            if place is not None and not (of_model and name == "codes")
        }
        arrays = {name: file.content for name, file in read.items()}
        if of_model:
            arrays["codes"] = self.codes_of_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes are printed below
            scores = score(
                arrays["codes"],
                arrays["factors"],
                metrics=self.metrics,
                ci=self.ci,
                chance=self.chance,
                seed=self.seed,
                test_codes=arrays.get("test_codes"),
                test_factors=arrays.get("test_factors"),
                workers=self.workers,
                names=_words(self.names),
                kinds=_words(self.kinds),
                bin_continuous=self.bin_continuous,
                groups=self.groups,
                components=self.components,
                active=None if self.active is None else parse_numbers(self.active, "--active", int),
            )
        for file in read.values():
            log.info(f"read {file.reading_note}")
        for note in scores.notes:
            log.info(f"note: {note}")
        if self.json:
            emit({**scores.to_json(), "read": {name: file.reading_note for name, file in read.items()}})
            return
        print(TABLE_FORMATS[self.format](scores))
        for name, reason in scores.refused.items():
            log.info(f"left out {name}: {reason}")
        if len(scores) <= _EXPLAINED:
            for name in scores:
                log.info(f"{name}: {METRICS[name].question} Perfect: {METRICS[name].ceiling}.")

    def codes_of_model(self) -> Any:
        """The codes of --data by the model FILE.py:NAME."""
        from unseam.models.adapters import codes_of  # not above: arrays need no torch

        x, _ = read_observations(self.data, self.codes)
        return codes_of(load_model(self.codes), x)


def _words(text: str | None) -> list[str] | None:
    return [word.strip() for word in text.split(",")] if text else None
