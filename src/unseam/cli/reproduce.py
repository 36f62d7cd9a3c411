"""`unseam reproduce [ID ...]`: show again what the papers show, published numbers beside ours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from unseam.cli.common import AsJson, emit


@dataclass
class Command:
    """Reproduce published results, with their numbers beside ours.

    Writes exhibits.html, exhibits.json, Markdown and figures. The same command continues where it stopped.

    Example: unseam reproduce V1 V2 V3 --size quick --out exhibits
    """

    ids: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which exhibits, for example V1; all of them when none is named, or with the word all."""
    scale: Annotated[Literal["quick", "large", "paper"], tyro.conf.arg(name="size")] = "quick"
    """quick: minutes for most. large: our largest, hours: in Z4, Z5, Z6, Z9 and Z10 the synthetic sets for all 600
    epochs, MNIST and fMNIST for 100 of 400 and 500, and in Z5 the first epochs of dSprites as printed; L2 to L8 read
    our finished study of 972 models; Z11 to Z13 all methods; the others as quick. paper: the published data, networks
    and lengths: days to years here (official files where they are in the data folder, else our drawings). What the
    source does not print is ours: --list says what."""
    listing: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Only list the exhibits, with the verdicts already in --out."""
    engine: Literal["auto", "xla", "written-out"] = "auto"
    """What runs the steps of trainings; digits depend on it. auto: XLA where JAX is installed and it saves time.
    xla: the same, and an error where JAX is missing. written-out: never XLA."""
    out: Path = Path("exhibits")
    """The folder to write to and to resume from."""
    json: AsJson = False

    def run(self) -> None:
        from unseam_papers import EXHIBITS
        from unseam_papers.frame.run import describe_exhibit, finished_entries, reproduce, select_exhibits

        if self.listing:
            done = finished_entries(self.out)
            entries = [describe_exhibit(e) | _known(done.get(e.id, {})) for e in select_exhibits(EXHIBITS, self.ids)]
        else:
            entries = reproduce(EXHIBITS, self.ids, self.scale, self.out, self.engine)
        entries = [e | {"figure": e["figure"] and self.out / "figures" / f"{e['id']}.svg"} for e in entries]
        if self.json:
            emit({"exhibits": entries})
        else:
            _print(entries, self.listing, self.out)


def _known(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry.get(key) for key in ("scale", "verdict", "figure")}


def _print(entries: list[dict[str, Any]], listing: bool, out: Path) -> None:
    for e in entries:
        print(f"{e['id']:<4} {e['verdict'] or 'not run here yet':<17} {e['title']} ({e['source']})")
        if listing and e["paper"]:
            print(f"     paper: {e['paper']}")
        for row in e.get("rows", ()):
            print(
                f"     {row['what']:<60} {row['published']:>14} | {row['ours']:<40} | {row['verdict']} ({row['kind']})"
            )
        if not listing:
            print(f"     {e['conclusion']}\n")
    if not listing:
        print(f"wrote {out / 'exhibits.html'} and {out / 'exhibits.json'}")
