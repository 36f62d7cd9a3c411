"""The parts of a report: choice, words, pictures, figures, and the command that makes a run again."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from unseam.cli.common import parse
from unseam.cli.train import Command
from unseam.geometry.diagnosis import Arrays, Diagnosis, Latent, Pair
from unseam.metrics import Score
from unseam.objectives.elbo import BetaVAE
from unseam.show import style
from unseam.show.pictures import DOWN, UP, as_pixels, frames_table, png, signed, strip
from unseam.show.report import cohort, figures, provenance
from unseam.show.report.collect import View, rank_views
from unseam.show.report.member import Card
from unseam.show.report.sentences import Held, factor_answers, headline, spread_words, why
from unseam.train import fit


def view(member: int, beta: float, active: int = 2, dto: float = 0.5, mig: float | None = None, **more: Any) -> View:
    """A member with given numbers; `share` (F, K) says what its latents know."""
    cost = more.get("cost", 0.1)  # nats of loss per beta
    pair = Pair(0, 1, cost * beta, 0.4, 0.5, 1.0, 0.0, mixed=cost > 0.02, degenerate=False)
    latents = tuple(Latent(k, 2.0 - k, 0.1, 0.1, 3.0 - k, 1.0, k < active) for k in range(3))
    diagnosis = Diagnosis(
        dto=dto, dto_haar=1.0, entanglement_cost=cost * beta, cost_of_active=cost * beta, ima_contrast=0.1,
        sigma_law_r=0.9,
        sigma_law_error=0.1, active=active, latents=latents, pairs=(pair,), warnings=(), verdict="", beta=beta,
        points=10, dto_all=dto,
    )  # fmt: skip
    score = None if mig is None else Score("mig", mig)
    share = None if mig is None else np.asarray(more.get("share", np.eye(2, 3)))
    row = {"loss": 1.0, "reconstruction": 1.0, "kl": 1.0}
    codes = np.zeros((4, 3))
    return View(member, member % 2, {"beta": beta}, row, diagnosis, codes, score, share, ("x", "y") if mig else ())


def choose(views: list[View]) -> tuple[View, View | None]:
    """The chosen member, and the one it is compared with."""
    found = rank_views(views)
    return views[found.order[0]], None if found.compared is None else views[found.compared]


def test_the_choice_needs_a_stable_number_of_active_latents() -> None:
    views = [
        view(0, 0.1, active=3, dto=0.1),  # seeds disagree at this beta
        view(1, 0.1, active=2, dto=0.9),
        view(2, 1.0, active=2, dto=0.6),
        view(3, 1.0, active=2, dto=0.4),
        view(4, 9.0, active=1, dto=0.0),  # orthogonal because it pruned
        view(5, 9.0, active=1, dto=0.0),
    ]
    assert rank_views(views).stable == 2
    chosen, other = choose(views)
    assert other is not None
    assert (chosen.member, other.member) == (3, 1)


@given(st.permutations(range(6)))
def test_the_choice_does_not_depend_on_the_order(order: list[int]) -> None:
    views = [view(m, beta=1.0 + m // 2, dto=0.1 + 0.1 * m) for m in range(6)]
    assert choose([views[m] for m in order])[0].member == 0


def test_one_member_is_compared_with_nobody() -> None:
    assert choose([view(0, 1.0)])[1] is None


def test_one_latent_has_no_axes_to_compare() -> None:
    chosen, other = choose([view(0, 1.0, active=1, cost=0.2), view(1, 1.0, active=1, cost=0.1)])
    assert (chosen.member, other) == (1, None)


def test_words_follow_the_numbers() -> None:
    apart = view(3, 2.0, dto=0.2, mig=0.8, share=[[0.9, 0.1, 0.0], [0.0, 0.8, 0.1]], cost=0.01)
    mixed = view(0, 0.5, dto=0.9, mig=0.1, share=[[0.4, 0.3, 0.0], [0.3, 0.4, 0.0]], cost=0.3)
    assert headline(apart) == "Latents 0 and 1 hold x and y, one each."
    unclean = view(3, 2.0, mig=0.8, share=[[0.9, 0.1, 0.0], [0.0, 0.8, 0.1]], cost=0.3)
    assert headline(unclean) == "Latents 0 and 1 hold x and y, one each, but not cleanly."
    assert headline(mixed) == "No factor has a latent of its own."
    assert [row.separated for row in factor_answers(mixed)] == [False, False]
    first, second = why(apart, mixed)
    for part in (
        "Member 0 (beta 0.5, seed 0) mixes latents 0 with 1",
        "(DtO 0.90; random axes give 1.00)",
        "0.300 nats",
        "No single latent holds x or y.",
    ):
        assert part in first
    for part in (
        "Member 3 (beta 2, seed 1)",
        "(DtO 0.20; random axes give 1.00)",
        "0.010 nats",
        "MIG is 0.80 instead of 0.10.",
    ):
        assert part in second


def test_words_admit_a_choice_that_pays_more() -> None:
    cheap, dear = view(0, 1.0, dto=0.9, cost=0.1), view(1, 1.0, dto=0.8, cost=0.2)
    assert "although mixing costs more. Mixing costs 0.200 nats per beta" in why(dear, cheap)[1]
    assert "although" not in why(dear, view(0, 1.0, dto=0.9, cost=0.2))[1]


def test_seeds_of_a_setting_stand_apart() -> None:
    """Four seeds of four betas with the same number: no dot lies on another."""
    views = [view(m, beta, dto=0.5) for m, beta in enumerate(np.repeat([0.5, 1.5, 2.0, 3.0], 4))]
    figure = cohort.draw_members(views, [], "beta", dict.fromkeys(views, 3.0), "active latents", log=True)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    places = np.sort([axes.transData.transform(dot.get_offsets()[0])[0] for dot in axes.collections])
    wide = np.sqrt(axes.collections[0].get_sizes()[0]) * figure.dpi / 72
    assert np.diff(places).min() > 0.95 * wide
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.5", "1.5", "2", "3"]
    bands = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    assert bands == [(-0.5, 0.5), (1.5, 2.5)]  # what stands side by side shares a value


def test_the_end_of_training_is_not_flattened_by_its_beginning() -> None:
    steps = np.arange(0, 1001, 100.0)
    curves = {"0": (steps, np.array([500.0, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11]))}
    assert figures.draw_over_training(curves, "loss (nats)", strong="0").axes[0].get_ylim()[1] < 25


def test_words_admit_a_choice_that_labels_contradict() -> None:
    second = why(view(1, 1.0, dto=0.2, mig=0.1), view(0, 1.0, dto=0.9, mig=0.6))[1]
    assert "labels do not confirm the choice: MIG 0.10 against 0.60" in second


def test_words_without_factors() -> None:
    assert headline(view(0, 1.0)) == "2 of 3 latents are in use, 1 pair of them mixed."
    assert "MIG" not in " ".join(why(view(1, 1.0, dto=0.2), view(0, 1.0)))
    assert headline(view(0, 1.0, active=0)) == "No latent is active, although together they hold 3.00 nats of KL."
    none = replace(view(0, 1.0).diagnosis, active=0, latents=(Latent(0, 0.01, 1.0, 1.0, 0.0, 0.01, False),))
    told = headline(replace(view(0, 1.0), diagnosis=none))
    assert told == "Nothing is encoded: every latent has collapsed onto the prior."


def test_a_passive_latent_in_mig_is_pointed_out() -> None:
    """Latent 2 is passive but knows factor x almost as well as latent 0: MIG falls to 0.45, 0.9 without it."""
    found = view(0, 1.0, mig=0.45, share=[[0.9, 0.0, 0.9], [0.0, 0.9, 0.0]])
    assert found.active_mig == pytest.approx(0.9)
    assert view(0, 1.0).active_mig is None
    assert view(0, 1.0, active=0, mig=0.1).active_mig is None
    assert view(0, 1.0, active=1, mig=0.45, share=[[0.9, 0.9, 0.9], [0.1, 0.9, 0.0]]).active_mig == pytest.approx(0.5)


def test_pictures_keep_their_values() -> None:
    frames = torch.rand(2, 3, 3, 5, 4)
    tall = frames_table(frames)
    assert tall.shape == (10, 12, 3)
    wanted = (frames[1, 2].movedim(0, 2) * 255).round().byte().numpy()
    np.testing.assert_array_equal(tall[5:, 8:], wanted)
    decoded = np.asarray(Image.open(io.BytesIO(png(strip(frames[0, :, :1])))))
    np.testing.assert_array_equal(decoded[:, :4], (frames[0, 0, 0] * 255).round().byte().numpy())


def test_a_member_of_the_worst_pictures_fits() -> None:
    noise = torch.rand(11, 3, 64, 64)
    assert len(png(strip(noise))) < 52_000  # 24 latents: 1.7 MB as text


def test_large_and_many_channelled_pictures_shrink() -> None:
    assert as_pixels(torch.ones(2, 5, 256, 128)).shape == (2, 64, 32, 1)
    assert (as_pixels(torch.full((1, 3, 200, 200), 2.0)) == 255).all()


def test_a_signed_picture_shows_sign_and_size() -> None:
    image = signed(torch.tensor([[[1.0, -0.25, 0.0]]]), largest=1.0)
    assert image[0, :, 3].tolist() == [255, 128, 0]
    assert tuple(image[0, 0, :3]) == UP
    assert tuple(image[0, 1, :3]) == DOWN


def test_a_latent_has_one_colour_everywhere() -> None:
    """In the Sigma law's scatter, in the lines over training and on its card."""
    latents = tuple(Latent(k, 1.0, 0.1, 0.1, 1.0, 1.0, k != 1) for k in range(4))
    values = np.full((5, 4), 0.1)
    d = replace(view(0, 1.0).diagnosis, latents=latents, arrays=Arrays(sigma2=values, sigma2_law=values))
    dots = {line.get_label(): line.get_color() for line in figures.draw_sigma_law(d).axes[0].lines}
    curve = (np.arange(3.0), np.arange(3.0))
    shades = {str(z.index): style.shade(z.index, z.active) for z in latents}
    lines = figures.draw_over_training(dict.fromkeys("301", curve), "y", colours=shades).axes[0].lines
    colours = [Card(latents[k], None, [0.0], 0).colour for k in (3, 0, 1)]
    assert [line.get_color() for line in lines] == colours == [dots["3"], dots["0"], dots["1"]]
    assert dots["1"] == style.OTHER  # passive
    assert len({style.latent_colour(k) for k in range(11)} - {style.OTHER}) == 11


def test_figures_use_the_page_s_ink_and_save_everywhere(tmp_path: Path) -> None:
    figure = figures.heatmap(np.eye(2), ["a", "$b$"], ["0", "1"])
    drawn = style.svg(figure, "one")
    assert "currentColor" in drawn
    assert style.INK not in drawn
    assert "$b$" in drawn
    assert "http" not in drawn
    magic = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for suffix, first in magic.items():
        path = style.save(figure, tmp_path / f"figure.{suffix}")
        assert path.read_bytes().startswith(first)


def test_two_figures_share_no_ids() -> None:
    curve = {"a": (np.arange(3.0), np.arange(3.0))}
    ids = [set(_ids(style.svg(figures.draw_over_training(curve, "y"), name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def _ids(text: str) -> list[str]:
    return [part.split('"')[0] for part in text.split('id="')[1:]]


@pytest.mark.parametrize(
    ("objective", "settings"),
    [
        ("beta-vae", {"beta": [0.5, 2.0], "decoder": (8, 4), "decoder_activation": "tanh", "snapshots": 1}),
        ("vae", {"likelihood": "gaussian", "s2": 0.25, "lr": 2e-3, "optimiser": "adagrad", "holdout": 0.2}),
        ("vae", {"eps": 1e-3, "weight_decay": 0.01}),
        ("vae", {"b1": 0.5, "b2": 0.99}),
    ],
)
def test_the_command_makes_the_same_run_again(tmp_path: Path, objective: str, settings: dict[str, Any]) -> None:
    data = {"size": 16, "orientations": 1, "xs": 2, "ys": 2, "colour": True}
    run = fit("sprites", objective, seeds=[3, 5], steps=1, network="mlp", encoder=(8,), latents=2, workers=1,
              data_parameters=data, out=tmp_path / "first", show=False, **settings)  # fmt: skip
    command = provenance.command(run)
    assert command is not None
    words = [*shlex.split(command)[2:], "--out", str(tmp_path / "second")]
    again = parse(Command, words, "unseam train").train()
    assert replace(again.config, groups=()) == replace(run.config, groups=())
    assert (tmp_path / "second" / "config.json").read_text() == (tmp_path / "first" / "config.json").read_text()


class OwnObjective(BetaVAE):
    """An objective that only the user's script knows."""


def test_an_objective_of_the_user_has_no_command(tmp_path: Path) -> None:
    run = fit("synth-linear", OwnObjective, steps=1, network="linear", latents=2, data_parameters={"size": 50}, b1=0.5,
              out=tmp_path / "run", show=False)  # fmt: skip
    assert provenance.command(run) is None
    assert "b1=0.5" in provenance.call(run)


def test_a_latent_that_knows_little_of_a_factor_or_more_of_another_does_not_hold_it():
    """The headline said that latent 0 holds light: it knew 0.11 of its entropy, and 0.41 of y's."""
    light, small = Held("light", 0, 0.11, 1, 0.01, 0.41), Held("light", 0, 0.3, 1, 0.01, 0.8)
    assert [row.separated for row in (light, small, Held("y", 0, 0.41, 4, 0.1, 0.41))] == [False, False, True]
    assert [Held("light", 0, share, 1, 0.01, share).separated for share in (0.24, 0.26)] == [False, True]
    assert [Held("light", 0, 0.5, 1, second, 0.5).separated for second in (0.24, 0.26)] == [True, False]
    assert spread_words(light) == "no latent holds light (latent 0 knows 0.11 of its entropy)"
    assert spread_words(Held("light", 0, 0.05, 1, 0.01)).startswith("no latent knows light")
    assert spread_words(Held("light", 0, 0.5, 1, 0.4)).startswith("light is spread over latents 0 and 1")
