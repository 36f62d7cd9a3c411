"""Every fault of an encoder or a decoder, in every kind of model that an adapter reads.

Each is one line with the remedy, before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faulty_models import MAKERS, Decoder, Encoder, X
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

import unseam
from unseam.errors import BadInput
from unseam.models.adapters import ADAPTERS, adapter_for

FACTORS = (X > 0).int().numpy()
VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "diagnose": unseam.diagnose,
    "theorems": unseam.theorems,
    "align": unseam.align,
    "traverse": unseam.traverse,
    "report": lambda model, x: unseam.report(model, data=x, show=False),
    "match": lambda model, x: unseam.match(model, model, data=x),
    "score": lambda model, x: unseam.score(model, FACTORS[: len(x)], data=x, metrics="mig"),
}
ENCODES = ("match", "score")  # they use no decoder
NOT_LINEAR = "not linear and does not compute in torch.*`diagnose` takes it"
# fault -> (encoder and decoder, what `diagnose` says)
DECODERS: dict[str, tuple[Callable[[], Decoder], str]] = {
    "not differentiable": (
        lambda: Decoder(lambda t: torch.from_numpy(t.detach().numpy().copy())),
        "(not differentiable|derivative is 0 everywhere).*write it in .*torch operations",
    ),
    "detached": (lambda: Decoder(lambda t: t.detach()), "derivative is 0 everywhere.*differentiable torch operations"),
    "rounding": (lambda: Decoder(lambda t: (4 * t).round()), "derivative is 0 everywhere.*differentiable torch"),
    "dropout": (lambda: Decoder(layer=nn.Dropout(0.5)), r"training mode with Dropout .*\.eval\(\) first|two answers"),
    "dropout, a function": (lambda: Decoder(lambda t: functional.dropout(t, 0.5)), r"two answers.*decoder\.eval\(\)"),
    "batch norm": (
        lambda: Decoder(layer=nn.BatchNorm1d(4)),
        r"training mode with BatchNorm1d .*\.eval\(\) first|depends on the other points",
    ),
    "batch norm, a function": (
        lambda: Decoder(lambda t: functional.batch_norm(t, None, None, training=True)),
        r"depends on the other points of the batch.*decoder\.eval\(\)",
    ),
    "tuple": (lambda: Decoder(lambda t: (t, t)), r"a tuple of 2.*lambda z: decoder\(z\)\[0\]|mean is not known; give"),
    "distribution": (lambda: Decoder(lambda t: Normal(t, 1.0)), r"\(Normal\).*decoder\(z\)\.mean|mean is not known"),
    "another batch size": (lambda: Decoder(lambda t: t.mean(0, keepdim=True)), "keep the batch axis"),
    "not finite": (lambda: Decoder(lambda t: 0 * t / 0), "NaN or infinite values at finite points"),
}
ENCODERS: dict[str, tuple[Callable[[], Encoder], str]] = {
    "stochastic": (lambda: Encoder(lambda m: m + torch.randn_like(m)), "two answers for the same x: it samples; "),
    "another batch size": (lambda: Encoder(lambda m: m[:1]), "turns 64 observations into.*keep the batch axis"),
    "not finite": (lambda: Encoder(lambda m: m * float("nan")), "NaN or infinite codes|inference fails on a batch"),
}
MOVES: dict[str, tuple[Callable[[nn.Module], nn.Module], str]] = {
    "meta": (lambda part: part.to("meta"), r"device 'meta' and has no weights; load them, then call .*\.to\('cpu'\)"),
    "float16": (lambda part: part.half(), r"torch.float16, too coarse for derivatives; call .*\.float\(\) first"),
    "bfloat16": (lambda part: part.to(torch.bfloat16), r"torch.bfloat16, too coarse .* call .*\.float\(\) first"),
}
IN_TORCH = tuple(kind for kind in MAKERS if kind != "scikit-learn")
NOT_FLAT = ("scvi-tools", "diffusers")  # not flat, or with inputs that are not latents: no rotation, no page


def refused(verb: str, model: Any, x: Any, words: str | None = None) -> None:
    """One line, and an empty folder."""
    with pytest.raises(BadInput, match=words) as caught:
        VERBS[verb](model, x)
    assert "\n" not in str(caught.value)
    assert not [path for path in Path().rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_kind_of_model_has_its_faulty_double() -> None:
    assert list(MAKERS) == [adapter.kind for adapter in ADAPTERS]
    for kind, make in MAKERS.items():
        found = adapter_for(make(Encoder(), Decoder()))
        assert found is not None
        assert found.kind == kind


@pytest.mark.parametrize("kind", MAKERS)
def test_a_sound_model_is_taken(kind: str) -> None:
    model = MAKERS[kind](Encoder(), Decoder())
    for verb in VERBS if kind not in NOT_FLAT else ("diagnose", "traverse", "match", "score"):
        VERBS[verb](model, X)


@pytest.mark.parametrize("fault", DECODERS)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_faulty_decoder_is_one_line(kind: str, fault: str) -> None:
    make, words = DECODERS[fault]
    model = MAKERS[kind](Encoder(), make())
    by_differences = kind == "scikit-learn" and fault in ("not differentiable", "detached")
    smooth = fault not in ("not differentiable", "detached", "rounding")
    if not by_differences:
        refused("diagnose", model, X, words)
        for verb in ("theorems", "align", "report"):
            refused(verb, model, X, None if kind in NOT_FLAT else f"{words}|{NOT_LINEAR}")
    if smooth:
        refused("traverse", model, X, words)


@pytest.mark.parametrize("fault", ENCODERS)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_faulty_encoder_is_one_line(kind: str, fault: str) -> None:
    make, words = ENCODERS[fault]
    model = MAKERS[kind](make(), Decoder())
    for verb in VERBS:
        refused(verb, model, X, words)


@pytest.mark.parametrize("where", MOVES)
@pytest.mark.parametrize("kind", IN_TORCH)
def test_another_device_or_half_precision_is_one_line(kind: str, where: str) -> None:
    move, words = MOVES[where]
    encoder, decoder = Encoder(), Decoder()
    model = MAKERS[kind](move(encoder), move(decoder))  # type: ignore[arg-type]
    for verb in VERBS:
        refused(verb, model, X, words)


@pytest.mark.parametrize("kind", MAKERS)
def test_more_latents_than_points_are_one_line(kind: str) -> None:
    model = MAKERS[kind](Encoder(), Decoder())
    refused("diagnose", model, X[:2], "2 points of 2 latents; give more points than latents, at least 3")
    for verb in ("theorems", "align", "report"):
        refused(verb, model, X[:2], None if kind in NOT_FLAT else "at least 3")


def test_weights_codes_and_variances_that_require_a_gradient_are_measured_as_without() -> None:
    decoder = Decoder()
    codes = (X @ torch.linalg.pinv(decoder.weight.detach()).T).requires_grad_()
    variances = torch.full_like(codes, 0.1).requires_grad_()
    with torch.enable_grad():
        found = unseam.theorems(decoder, codes, variances, data=X, beta=1.0)
        plain = unseam.theorems(decoder.requires_grad_(False), codes.detach(), variances.detach(), data=X, beta=1.0)
    assert [p.value for p in found.premises] == [p.value for p in plain.premises]
    assert found.premise("C1").value is not None


def test_theorems_of_principal_components_and_not_of_a_curved_transform() -> None:
    from sklearn.decomposition import PCA, KernelPCA

    x = X.double().numpy()
    table = unseam.theorems(PCA(2).fit(x), x)
    assert table.premise("C1").holds
    assert table.premise("C2").holds
    turned = unseam.align(PCA(2).fit(x), x)
    np.testing.assert_allclose(np.abs(turned.rotation.numpy()).max(0), 1, atol=1e-6)
    curved = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(x)
    with pytest.raises(BadInput, match=NOT_LINEAR):
        unseam.theorems(curved, x)


class InLists:
    """A transformer that returns lists, and takes no fewer than ten rows."""

    def transform(self, x: Any) -> Any:
        if len(x) < 10:
            raise ValueError("too few rows")
        return np.asarray(x)[:, :2]

    def inverse_transform(self, z: Any) -> Any:
        return [[a, b, a + b] for a, b in np.asarray(z)]


def test_a_transformer_of_lists_that_needs_many_rows_is_taken() -> None:
    found = unseam.diagnose(InLists(), np.random.default_rng(0).normal(size=(50, 2)))
    assert found.active == 2
