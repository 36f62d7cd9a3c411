"""Results in notebooks: short reprs, tables, and pictures that return Axes."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unseam
from unseam import BadInput

mpl.use("Agg")


def results() -> dict[str, object]:
    g = np.random.default_rng(0)
    factors = g.uniform(size=(300, 2))
    x = factors @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(300, 6))
    decoder = torch.nn.Linear(2, 6)
    v = g.integers(0, 4, (300, 2))
    return {
        "find": unseam.find(x, network=False),
        "score": unseam.score(
            v + 0.1 * g.normal(size=v.shape), v, metrics="mig,sap", chance=True, ci=True, kinds=["ordinal"]
        ),
        "match": unseam.match(factors, factors[:, ::-1], of="codes", names=["a<b", "c"]),
        "diagnose": unseam.diagnose(decoder, factors),
    }


def test_results_are_short_lines_tables_and_pictures() -> None:
    for name, result in results().items():
        assert "\n" not in repr(result), name
        assert len(repr(result)) < 400, name
        page = result._repr_html_()  # type: ignore[attr-defined]
        assert "<table" in page, name
        assert "a<b" not in page, name
        ax = Figure().add_subplot()
        assert unseam.plot(result, ax=ax) is ax, name
        assert ax.get_xlabel(), name


def test_a_plot_shows_the_numbers() -> None:
    found = results()["find"]
    ax = unseam.plot(found)
    assert isinstance(ax, Axes)
    drawn = np.asarray(ax.images[0].get_array())
    names = [label.get_text() for label in ax.get_yticklabels()]
    move = found.factors[1].moves[0]  # type: ignore[attr-defined]
    assert drawn[names.index(move.name), 1] == pytest.approx(move.share)
    scores = results()["score"]
    widths = [bar.get_width() for bar in unseam.plot(scores).patches]
    assert widths == pytest.approx([s.value for s in list(scores.values())[::-1]])  # type: ignore[attr-defined]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(BadInput, match="result is a list"):
        unseam.plot([1, 2])
