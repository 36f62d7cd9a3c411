"""`unseam perturb DATA --out DIR`: a data set that breaks variational autoencoders."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from unseam.cli.common import AsJson, DataName, Options, emit, named_data, parse_numbers

_SMALL = 32  # pixels
KNOWN = {"shapes": "1", "orientations": "1", "without": "x<8|x>23|y<13|y>18"}


@dataclass
class Command:
    """Change every observation a little, so that a VAE finds other axes; the factors stay what they are.

    Trains restarts of a beta-VAE (or takes a run), picks the most disentangled, plays it against a layout that mixes
    two latents, and learns the change that makes the mixed one cheaper (Zietlow 2022, chapter 4). DIR is a data set:
    `unseam train DIR`. Stopped, it continues where it was. Sprites of up to 32 pixels with no other --data option are
    those on which it works at 16 pixels: one square, 6 scales, x over half the width, y over a sixth, less contrast.

    Example: unseam perturb sprites --data.size 16 --out broken
    """

    data: DataName
    """A data set's name, or a path to your own; values in [0, 1]."""
    out: Path
    """The folder of the new data set. The same command continues where it stopped."""
    eps: float = 0.1
    """The largest change of any value."""
    run_folder: Annotated[Path | None, tyro.conf.arg(name="run", aliases=("--run-folder",), metavar="PATH")] = None
    """Take the models of this run instead of training some (it must be on the same data)."""
    teacher: Literal["turned", "restart"] = "turned"
    """The entangled layout: the same model turned by 45 degrees, or the worst restart (as published)."""
    gap: Literal["elbo", "reconstruction"] = "elbo"
    """What the two layouts are compared by; reconstruction as published, which did not turn axes here."""
    rounds: int = 800
    """Rounds of the game: three steps of the decoders, one of the change."""
    seeds: str = "0..5"
    """Seeds of the restarts."""
    steps: int = 3000
    """Steps of each restart."""
    seed: int = 0
    """Seed of the change."""
    json: AsJson = False
    options: Options = field(default_factory=dict)

    def chosen(self) -> dict[str, str]:
        """The options of the data; small sprites without other options get those for which it works."""
        size = self.options.get("size", "")
        if self.data != "sprites" or set(self.options) != {"size"} or not size.isdecimal() or int(size) > _SMALL:
            return self.options
        added = {**KNOWN, "grey": f"{self.eps:g}"}
        print("data: sprites", *(f"--data.{name} {value!r}" for name, value in added.items()), file=sys.stderr)
        return {**self.options, **added}

    def run(self) -> None:
        from unseam.data.base import unit_range
        from unseam.perturb import Settings, perturb
        from unseam.perturb.perturb_data import manipulation_summary
        from unseam.run import load_run
        from unseam.show.pages.perturb import write_perturb_page

        settings = Settings(eps=self.eps, rounds=self.rounds, gap=self.gap, seed=self.seed)
        data = named_data(self.data, self.chosen())
        unit_range(data)
        run = load_run(self.run_folder) if self.run_folder is not None else None
        seeds = parse_numbers(self.seeds, "--seeds", int)
        result = perturb(data, self.out, settings, run, self.teacher, seeds, steps=self.steps)
        report = manipulation_summary(result, settings, self.teacher)
        page = write_perturb_page(result, report)
        document = {
            "data": str(self.out),
            "eps": self.eps,
            "largest_change": report["largest_change"],
            "rms_change": report["rms_change"],
            "contrast": report["contrast"],
            "gap_before": report["gap_before"],
            "gap_after": report["gap_after"],
            "turn_before": report["turn_before"],
            "turn_after": report["turn_after"],
            "pair": report["pair"],
            "scalar": report["scalar"],
            "page": str(page),
        }
        if self.json:
            emit(document)
            return
        print(
            f"largest change {report['largest_change']:.3g}, root mean square {report['rms_change']:.3g}\n"
            f"the mixed layout cost {report['gap_before']:.3g} nats more, now {report['gap_after']:.3g} "
            f"(dimming alone: {report['contrast'] ** 2 * report['gap_before']:.3g})\n"
            f"preferred axes of latents {report['pair'][0]} and {report['pair'][1]}: "
            f"{report['turn_before']:.0f} degrees from them, now {report['turn_after']:.0f}\n"
            f"page: {page}\ntrain on it: unseam train {self.out}"
        )
