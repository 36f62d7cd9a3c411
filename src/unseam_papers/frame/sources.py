"""The sources, in the order of the first screen: which exhibits are theirs, and in words what came out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from unseam_papers.frame.rows import VerdictRow


@dataclass(frozen=True)
class Source:
    """A source and its exhibits; the sentences are ours, the counts beside them come from the rows."""

    page: str  # the file of its exhibits: papers/PAGE.md
    name: str
    about: str  # what it is, in a few words
    exhibits: tuple[str, ...]
    figure: str  # the exhibit whose figure stands for it
    holds: str
    against: str  # what does not come out
    untried: str  # what could not be tried


def _ids(letter: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in numbers)


PAPER_SOURCES = (
    Source(
        "allen", "Allen 2024", "Paper and blog: when does a VAE separate, and why", _ids("A", *range(1, 13)), "A11",
        "The theorems hold where they can be tested: a linear VAE finds the components of PPCA data, the push-forward "
        "density factorises along the component curves, components of a map with orthogonal columns are found and "
        "those of a sheared one are not.",
        "The posterior over a memorised point does not tend to the prior's: it has to fit on its plateau (A10). In A6 "
        "the merging of points follows the figure only in one of two layouts, whose lengths the source does not print.",
        "Likelihoods of images of natural size; an autoregressive decoder (A8).",
    ),
    Source(
        "vu", "Vu 2024", "Slides: groups of factors found by I_m or by SAP", _ids("V", 1, 2, 3), "V1",
        "Which metric is ahead in most scenarios, and half of the success rates that a training can move.",
        "SAP's two 92 % of the first table: no open setting gives them. Rates are luck of the start: with a full "
        "S_w the loss does not see a rotation of the code.",
        "The hypothesis itself: its pattern is there before anything is learned, so no training can confirm it (V3).",
    ),
    Source(
        "zietlow", "Zietlow 2022, chapters 2, 3, 5 and 7.6", "Thesis: VAEs as local PCA",
        (*_ids("Z", *range(1, 11)), "Z15"), "Z5",
        "VAEs with a diagonal posterior are locally orthogonal, autoencoders and full posteriors are not: every "
        "ordering of Table 3.3 that these restarts can test comes out. Latents collapse where the linear theory says.",
        "Table 3.4 at the printed beta: at a ratio of 1.5 our restarts are not aligned after 600 epochs (Z7). The "
        "exponent of the budget in (3.20) is a slip (Z2).",
        "dSprites, MNIST and fMNIST for the printed number of epochs: 5 core-hours a model.",
    ),
    Source(
        "zietlow-4", "Zietlow 2022, chapter 4", "Thesis: data changed a little so that VAEs find other axes",
        _ids("Z", *range(11, 15)), "Z12",
        "A change of at most 0.1 per pixel that a player of our own makes lowers the scores of VAEs on small sprites, "
        "and other strengths do not bring them back.",
        "With the printed gap and teacher the change had no effect on small sprites.",
        "The published sizes: 64 x 64 images, convolutions; and the weakly supervised GAN.",
    ),
    Source(
        "locatello", "Locatello 2019", "Slides: 12,600 models without supervision", _ids("L", *range(1, 10)), "L5",
        "Seed and strength matter more than the objective; settings chosen by the labels of another run win a little "
        "more often than chance, less so on other data; scores do not reliably save labels.",
        "MIG and DCI do not rank 972 weak models alike, and the total correlation of mean codes does not rise for "
        "every method. Of 600 better models (second column) it falls for none and rises for three of five methods, the "
        "metrics agree more, and FactorVAE scores still save no labels (MIG goes along with fewer for trees, 0.52).",
        "The published data sets, sizes and 300,000 steps: years here.",
    ),
    Source(
        "beyond", "Beyond the papers", "Questions that the sources leave open, asked here",
        ("Z16", *_ids("N", *range(1, 10))), "N6",
        "A latent of a non-linear VAE collapses where the local variance is below beta s2, a prediction without a free "
        "number (N6), and so is how long a linear VAE must train until its latents lie on the axes (N5). MIG falls "
        "when the posterior can be turned (N3).",
        "At beta s2 = 0.7 a latent that should be in use somewhere is not, in any model (N6). Over Tripod's members "
        "its second derivatives do not go along with what a VAE pays for (N1).",
        "Which of polar and Cartesian coordinates a VAE chooses, predicted from their costs: A12 and Z14 only show "
        "that both exist.",
    ),
)  # fmt: skip
OUT_OF_SCOPE = (
    "Chapters 7.1 to 7.5 of the thesis are out of scope: each is a summary, without equations or settings, of another "
    "paper of its author (combinatorial solvers as layers, oversampling with GANs, quantum generators, inversion of "
    "GANs, 31,000 networks on 172 pairs of data sets). The systems that the thesis describes are in chapters 2 to 6 "
    "and 7.6."
)


def paper_of(exhibit: str) -> Source | None:
    """The source of an exhibit; none for one that is not registered.

    >>> paper_of("A3").page, paper_of("Z12").page, paper_of("T1")
    ('allen', 'zietlow-4', None)
    """
    return next((source for source in PAPER_SOURCES if exhibit in source.exhibits), None)


def by_source(entries: Iterable[Mapping[str, Any]]) -> list[tuple[Source, list[Mapping[str, Any]]]]:
    """The sources that have entries, and these in the order of the exhibits; others stand under the last source."""
    left = list(entries)
    out = []
    for source in PAPER_SOURCES:
        own = [
            e for e in left if e["id"] in source.exhibits or (source is PAPER_SOURCES[-1] and paper_of(e["id"]) is None)
        ]
        if own:
            out.append((source, own))
    return out


def entry_rows(entries: Iterable[Mapping[str, Any]]) -> list[VerdictRow]:
    """The rows of entries of exhibits.json."""
    return [VerdictRow(**row) for entry in entries for row in entry["rows"]]
