"""`unseam objectives [NAME ...]`: what a model can be trained to do; `--page DATA` shows them all on the same data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from unseam.cli.common import AsJson, MaybeText, Options, emit, named_data
from unseam.errors import lookup

if TYPE_CHECKING:
    from unseam.objectives import Objective


@dataclass
class Command:
    """List the objectives: formula, paper, hyperparameters with their defaults and the grids of Locatello 2019.

    Example: unseam objectives beta-tcvae
    Example: unseam objectives --page sprites --data.size 32 --steps 2000 --out objectives.html
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which objectives; all when none is named."""
    page: MaybeText = None
    """Train each of them on this data set and write a page: terms over time and traversals side by side."""
    steps: int = 2000
    """Steps of each model on the page."""
    network: Literal["auto", "mlp", "conv"] = "mlp"
    """Network of each model on the page (conv is better and some ten times slower)."""
    latents: int = 6
    """Latents of each model on the page."""
    out: Path = Path("objectives.html")
    """The page: .html, or .png for the figure alone. The runs are kept in a folder of the same name."""
    json: AsJson = False
    options: Options = field(default_factory=dict)

    def run(self) -> None:
        from unseam.objectives import OBJECTIVES  # not above: --help needs no torch

        names = self.names or tuple(OBJECTIVES)
        listed: dict[str, Any] = {name: _describe(lookup(OBJECTIVES, name, "objective")) for name in names}
        if self.page is not None:
            from unseam.show.pages.objectives import objectives_page

            settings = {"network": self.network, "latents": self.latents}
            page = objectives_page(named_data(self.page, self.options), self.out, names, self.steps, **settings)
            emit({"page": page, "objectives": listed}) if self.json else print(f"page: {page}")
        elif self.json:
            emit({"objectives": listed})
        else:
            print("\n".join(_text(name, about) for name, about in listed.items()))


def _text(name: str, about: dict[str, Any]) -> str:
    """One objective as people read it."""
    lines = [f"{name}: {about['about']}", f"  {about['formula']}", f"  {about['paper']}"]
    for hyper, value in about["hyperparameters"].items():
        grid = value["locatello_2019"]
        swept = f"  (Locatello 2019 sweeps {', '.join(f'{g:g}' for g in grid)})" if grid else ""
        lines.append(f"  {_flag(hyper)} {value['default']:g}{swept}")
    lines += [f"  {_flag(setting)} {value}" for setting, value in about["settings"].items()]
    lines += [f"  {about['cannot']}"] if about["cannot"] else []
    return "\n".join(lines) + "\n"


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# What `unseam objectives` says of each: one line, formula, paper, hyperparameters with their defaults and grids.


def _describe(kind: type[Objective]) -> dict[str, Any]:
    """An objective as plain data.

    >>> from unseam.objectives import OBJECTIVES
    >>> _describe(OBJECTIVES["beta-vae"])["hyperparameters"]["beta"]
    {'default': 4.0, 'locatello_2019': [1, 2, 4, 6, 8, 16]}
    """
    from unseam.objectives import hyperparameters

    varying = hyperparameters(kind)
    grids = {name: list(kind.grid[name]) if name in kind.grid else None for name in varying}
    return {
        "about": (kind.__doc__ or "").strip().split("\n")[0],
        "formula": kind.formula,
        "paper": kind.paper,
        "hyperparameters": {n: {"default": d, "locatello_2019": grids[n]} for n, d in varying.items()},
        "settings": {f.name: f.default for f in fields(kind) if f.name not in varying},  # type: ignore[arg-type]
        "cannot": kind.cannot,
        "posterior": kind.posterior,
        "batches": kind.batches,
        "smallest_batch": kind.smallest_batch,
    }
