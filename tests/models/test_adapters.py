"""`unseam.diagnose(model, x)`: every adapter against closed forms, and bad input in one line.

Modules with the interface of each package stand here; the packages themselves are tried where they are installed.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.distributions import Independent, Normal

import unseam
from unseam.errors import BadInput
from unseam.geometry import entanglement_cost
from unseam.geometry.groups import middle
from unseam.models.adapters import ADAPTERS, adapter_for
from unseam.models.adapters.scvi_tools import _likelihood_of
from unseam.models.likelihood import Gaussian

W = torch.tensor([[3.0, 1.0], [0.0, 1.0], [1.0, -1.0], [0.0, 0.5]])  # (n, K)
X = torch.randn(64, 2, generator=torch.Generator().manual_seed(0)) @ W.T
LOG_VARIANCE = -1.5
COST = float(entanglement_cost((W.T @ W).double(), 1.0))  # of a Gaussian with s2 = 1, beta = 1


class Encoder(nn.Module):
    """codes = pinv(W) x."""

    def __init__(self):
        super().__init__()
        self.inverse = nn.Parameter(torch.linalg.pinv(W))

    def forward(self, x):
        return x @ self.inverse.T


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(W.clone())

    def forward(self, z):
        return z @ self.weight.T


def pair(x):
    mean = Encoder()(x)
    return mean, torch.full_like(mean, LOG_VARIANCE)


def normal(x):
    mean, log_variance = pair(x)
    return Normal(mean, (log_variance / 2).exp())


class WithMethods(nn.Module):
    def __init__(self, returns=pair):
        super().__init__()
        self.weight, self.returns = nn.Parameter(W.clone()), returns

    def encode(self, x):
        return self.returns(x)

    def decode(self, z):
        return z @ self.weight.T


class WithNetworks(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()


class PythaeEncoder(Encoder):
    def forward(self, x):
        mean, log_variance = pair(x)
        return {"embedding": mean, "log_covariance": log_variance}


class PythaeDecoder(Decoder):
    def __init__(self, squash=False):
        super().__init__()
        self.squash = squash

    def forward(self, z):
        out = super().forward(z)
        return SimpleNamespace(reconstruction=torch.sigmoid(out) if self.squash else out)


class PythaeLike(nn.Module):
    def __init__(self, loss="mse", name="VAEConfig", beta=None):
        super().__init__()
        self.encoder, self.decoder = PythaeEncoder(), PythaeDecoder(loss == "bce")
        self.model_config = SimpleNamespace(latent_dim=2, reconstruction_loss=loss, name=name, beta=beta)


class ScviModule(nn.Module):
    """log rates = W z + library: a Poisson model of counts."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(W.clone())

    def inference(self, x):
        mean, log_variance = pair(x)
        return {"qz": Normal(mean, (log_variance / 2).exp()), "z": mean, "library": x[:, :1]}

    def _get_inference_input(self, tensors):
        return {"x": tensors["X"]}

    def _get_generative_input(self, tensors, inference):
        return {"z": inference["z"], "library": inference["library"], "batch_index": tensors["batch"], "y": None}

    def generative(self, z, library, batch_index, y=None):
        assert not batch_index.is_floating_point()  # the batch is a number of a batch again
        rate = torch.exp(0.1 * z @ self.weight.T + library + batch_index)
        return {"px": type("Poisson", (), {"rate": rate})()}


class ScviLike:
    def __init__(self):
        self.module = ScviModule()

    def _validate_anndata(self, x):
        if not isinstance(x, torch.Tensor):
            raise TypeError("not an AnnData")
        return x

    def _make_data_loader(self, adata, batch_size, shuffle):
        return [{"X": part, "batch": (part[:, :1] > 0).long()} for part in adata.split(batch_size)]


class LinearTransformer:
    """inverse_transform in NumPy."""

    def transform(self, x):
        return np.asarray(x, dtype=float) @ np.linalg.pinv(W.double().numpy()).T

    def inverse_transform(self, z):
        return z @ W.double().numpy().T


CASES = {
    "module, methods": (WithMethods(), "module"),
    "module, networks": (WithNetworks(), "module"),
    "module, distribution": (WithMethods(lambda x: normal(x)), "module"),
    "module, independent": (WithMethods(lambda x: Independent(normal(x), 1)), "module"),
    "pair of modules": ((Encoder(), Decoder()), "pair"),
    "pair of functions": ((pair, lambda z: z @ W.T), "pair"),
    "pythae": (PythaeLike(), "pythae"),
}


@pytest.mark.parametrize("case", CASES)
def test_every_interface_gives_the_closed_form(case):
    model, kind = CASES[case]
    assert adapter_for(model).kind == kind
    found = unseam.diagnose(model, X, s2=1.0, beta=1.0, points=20)
    assert found.entanglement_cost == pytest.approx(COST, rel=1e-5)
    assert found.points == 20
    assert found.pairs[0].cost == pytest.approx(COST, rel=1e-5)
    if case not in ("module, networks", "pair of modules"):
        np.testing.assert_allclose([z.sigma2 for z in found.latents], np.exp(LOG_VARIANCE), rtol=1e-5)
    codes = X @ torch.linalg.pinv(W).T
    np.testing.assert_allclose([z.mu_std for z in found.latents], codes.std(0, correction=0), rtol=1e-4)


def test_the_registry_has_each_kind_once_and_special_kinds_first():
    kinds = [adapter.kind for adapter in ADAPTERS]
    assert len(set(kinds)) == len(kinds) == 7
    assert kinds.index("pythae") < kinds.index("module")
    assert kinds.index("diffusers") < kinds.index("module")
    assert adapter_for(Decoder()) is None


def test_pythae_brings_its_likelihood_and_beta():
    plain = unseam.diagnose(PythaeLike(), X)
    assert (plain.beta, plain.beta_source) == (1.0, "given")
    assert plain.entanglement_cost == pytest.approx(COST, rel=1e-5)  # 1/2 |x - xhat|^2: s2 = 1
    assert unseam.diagnose(PythaeLike(name="BetaVAEConfig", beta=3.0), X).beta == 3.0
    assert unseam.diagnose(PythaeLike(name="FactorVAEConfig"), X).beta_source == "estimated"
    bce = unseam.diagnose(PythaeLike("bce"), X, points=64)
    z = (X @ torch.linalg.pinv(W).T).double()
    p = torch.sigmoid(z @ W.T.double())
    M = torch.einsum("ni,bn,nj->bij", W.double(), p * (1 - p), W.double())
    assert bce.entanglement_cost == pytest.approx(float(entanglement_cost(M).mean()), rel=1e-3)


def test_scvi_takes_each_cell_with_its_own_library_and_batch():
    adapter = adapter_for(ScviLike())
    assert adapter.kind == "scvi-tools"
    model = ScviLike()
    model.history = {"kl_weight": pd.DataFrame({"kl_weight": [0.1, 0.5, 1.0]})}
    found = unseam.diagnose(model, X / 4, points=64)
    assert (found.beta, found.beta_source) == (1.0, "given")  # the weight at the end of its warm-up
    assert unseam.diagnose(ScviLike(), X / 4, points=64).beta_source == "estimated"
    x = (X / 4).double()
    z = x @ torch.linalg.pinv(W.double()).T
    rate = torch.exp(0.1 * z @ W.T.double() + x[:, :1] + (x[:, :1] > 0))
    M = torch.einsum("ni,bn,nj->bij", 0.1 * W.double(), rate, 0.1 * W.double())
    assert found.entanglement_cost == pytest.approx(float(entanglement_cost(M).mean()), rel=1e-4)
    assert len(found.latents) == 2
    assert found.scope == ""
    with pytest.raises(BadInput, match="give an AnnData"):
        unseam.diagnose(ScviLike(), "cells")
    held = middle(z.numpy())  # align and theorems: one decoder, with the library and batch of a typical cell
    turned = unseam.align(model, X / 4, points=64)
    rate = torch.exp(0.1 * z @ W.T.double() + x[held, :1] + (x[held, :1] > 0))
    M = torch.einsum("ni,bn,nj->bij", 0.1 * W.double(), rate, 0.1 * W.double())
    cost = next(row for row in turned.table if "cost" in row["what"])
    assert cost["before"] == pytest.approx(float(entanglement_cost(M).mean()), rel=1e-3)
    assert f"all latents are looked at, what else the decoder takes is held as in row {held}" in turned.verdict
    assert unseam.theorems(model, X / 4, points=10).scope in turned.verdict


def test_objects_with_inverse_transform_are_differentiated_by_differences():
    found = unseam.diagnose(LinearTransformer(), X.numpy(), s2=1.0, beta=1.0)
    codes = X.double() @ torch.linalg.pinv(W.double()).T
    scaled = W.double() * codes.std(0, correction=0)  # codes are divided by their spread
    assert found.entanglement_cost == pytest.approx(float(entanglement_cost(scaled.T @ scaled)), rel=1e-6)
    assert [z.mu_std for z in found.latents] == pytest.approx([1, 1])


def test_principal_components_are_orthogonal_and_independent_ones_of_this_mixing_are_not():
    from sklearn.decomposition import PCA, FastICA

    rng = np.random.default_rng(0)
    data = rng.laplace(size=(2000, 2)) @ W.numpy().T.astype(float)
    pca, ica = (unseam.diagnose(kind.fit(data), data, points=50) for kind in (PCA(2), FastICA(2, random_state=0)))
    assert pca.entanglement_cost < 1e-9 < 0.01 < ica.entanglement_cost
    assert pca.dto < 1e-6


def test_observations_may_be_an_array_a_table_a_dataset_or_a_loader():
    model = WithMethods()
    expected = unseam.diagnose(model, X).entanglement_cost, unseam.diagnose(model, X).latents[0].mu_std
    dataset = torch.utils.data.TensorDataset(X, torch.zeros(64))
    loader = torch.utils.data.DataLoader(dataset, batch_size=10)
    for x in (X.numpy(), X.double(), pd.DataFrame(X.numpy()), dataset, loader):
        found = unseam.diagnose(model, x)
        assert (found.entanglement_cost, found.latents[0].mu_std) == pytest.approx(expected)


def test_codes_still_work_as_they_did():
    model, codes = WithMethods(), X @ torch.linalg.pinv(W).T
    for found in (
        unseam.diagnose(lambda z: z @ W.T, codes, s2=1.0),
        unseam.diagnose(Decoder(), codes, s2=1.0),
        unseam.diagnose(model, codes, s2=1.0),  # only the decoder takes it
        unseam.diagnose(model, codes, torch.full((64, 2), 0.1), s2=1.0),
        unseam.diagnose(model, codes=codes, s2=1.0),
    ):
        assert found.entanglement_cost == pytest.approx(COST, rel=1e-5)
        assert found.beta_source == "given"


def test_what_could_be_codes_or_observations_is_asked_about():
    square = WithNetworks()
    square.encoder, square.decoder = nn.Linear(2, 2), nn.Linear(2, 2)
    with pytest.raises(BadInput, match=r"fits both the encoder and the decoder.*data=.*codes="):
        unseam.diagnose(square, X[:, :2])
    by_name = [unseam.diagnose(square, data=X[:, :2]), unseam.diagnose(square, codes=X[:, :2])]
    assert by_name[0].latents[0].mu_std != pytest.approx(by_name[1].latents[0].mu_std)


class Faulty(nn.Module):
    """A model with one fault in its decoder or encoder."""

    def __init__(self, decode=None, encode=None, layer=None):
        super().__init__()
        self.weight = nn.Parameter(W.clone())
        self.wrong_decode, self.wrong_encode, self.layer = decode, encode, layer

    def encode(self, x):
        return self.wrong_encode(x) if self.wrong_encode else pair(x)

    def decode(self, z):
        out = z @ self.weight.T
        out = out if self.layer is None else self.layer(out)
        return self.wrong_decode(out) if self.wrong_decode else out


FAULTS = {
    "not differentiable": (
        Faulty(lambda t: torch.from_numpy(t.detach().numpy())),
        "(not differentiable|derivative is 0).*torch operations",
    ),
    "rounding": (Faulty(lambda t: t.detach()), "derivative is 0 everywhere.*write it in differentiable torch"),
    "dropout": (Faulty(layer=nn.Dropout(0.5)), r"training mode with Dropout 'layer'; call model.eval\(\)"),
    "batch norm": (Faulty(layer=nn.BatchNorm1d(4)), r"training mode with BatchNorm1d 'layer'; call model.eval\(\)"),
    "tuple": (Faulty(lambda t: (t, t)), r"returns a tuple of 2.*lambda z: decoder\(z\)\[0\]"),
    "distribution": (Faulty(lambda t: Normal(t, 1.0)), r"returns a distribution \(Normal\).*decoder\(z\)\.mean"),
    "batch size": (Faulty(lambda t: t.mean(0, keepdim=True)), "keep the batch axis"),
    "half": (Faulty().half(), r"torch.float16, too coarse for derivatives; call model.float\(\)"),
    "bfloat16": (Faulty().to(torch.bfloat16), r"call model.float\(\)"),
    "other device": (Faulty().to("meta"), r"device 'meta' and has no weights.*model.to\('cpu'\)"),
    "stochastic encoder": (
        Faulty(encode=lambda x: torch.randn(len(x), 2)),
        "gives two answers for the same x.*mean, log-variance",
    ),
    "three parts": (
        Faulty(encode=lambda x: (*pair(x), x)),
        r"encoder returns a tuple of 3; let it return codes.*\(mean, log-variance\)",
    ),
    "encoder's batch": (Faulty(encode=lambda x: pair(x)[0][:1]), "encoder turns 64 observations.*keep the batch axis"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_model_is_one_line_with_the_remedy(fault):
    model, message = FAULTS[fault]
    with pytest.raises(BadInput, match=message) as told:
        unseam.diagnose(model, X)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:2], "2 points of 2 latents; give more points than latents"),
        (X[:, :3], "encoder fails on x of shape"),
        (X[0], r"x has shape \(4,\); give observations"),
        ((X * 20).to(torch.uint8), "uint8; scale it as in training"),
        (torch.where(X > 5, torch.nan, X), "NaN or infinite values; drop or fill"),
        (None, "needs observations: give x"),
        (object(), "x is object|x has shape"),
    ],
)
def test_faulty_observations_are_one_line_with_the_remedy(x, message):
    with pytest.raises(BadInput, match=message) as told:
        unseam.diagnose(WithMethods(), x)
    assert "\n" not in str(told.value)


def test_align_score_and_match_take_the_same_models():
    model = WithMethods()
    turned = unseam.align(model, X, s2=1.0, beta=1.0)
    R = turned.rotation
    assert turned.table[0]["before"] == pytest.approx(COST, rel=1e-5)
    after = entanglement_cost(R.T @ (W.T @ W).double() @ R)
    assert turned.table[0]["after"] == pytest.approx(float(after), abs=1e-6)
    assert float(after) < 1e-6
    assert torch.allclose(turned.decoder(turned.encoder(X).mean), X, atol=1e-4)
    codes = (X @ torch.linalg.pinv(W).T).numpy()
    factors = np.round(codes).astype(int)
    by_model = unseam.score(model, factors, data=X, metrics="mig")["mig"].value
    assert by_model == pytest.approx(unseam.score(codes, factors, metrics="mig")["mig"].value)
    matched = unseam.match(model, (Encoder(), Decoder()), data=X)
    assert matched.of == "codes"
    assert matched.pairs[0].values == pytest.approx([1, 1])
    with pytest.raises(BadInput, match="needs observations: give data="):
        unseam.match(model, model)
    with pytest.raises(BadInput, match="needs observations: give data="):
        unseam.score(model, factors)


def test_gaussian_likelihood_of_a_module_is_used():
    model = WithMethods()
    model.likelihood = Gaussian(0.25)
    expected = float(entanglement_cost((W.T @ W).double() / 0.25, 2.0))
    assert unseam.diagnose(model, X, beta=2.0).entanglement_cost == pytest.approx(expected, rel=1e-5)


class Sigmoid(WithMethods):
    """The decoder of PyTorch's own VAE example: probabilities, trained with cross entropy."""

    def decode(self, z):
        return torch.sigmoid(super().decode(z))


def test_probabilities_are_turned_into_logits_for_a_bernoulli_and_noted_otherwise():
    model, x = Sigmoid(), torch.sigmoid(X)
    found = unseam.diagnose((model.encode, model.decode), x, likelihood="bernoulli", beta=1.0)
    logits = (model.encode, lambda z: WithMethods.decode(model, z))
    expected = unseam.diagnose(logits, x, likelihood="bernoulli", beta=1.0)
    assert found.entanglement_cost == pytest.approx(expected.entanglement_cost, rel=1e-3)
    assert "the decoder returns probabilities; their logits were taken" in found.warnings
    pair = (model.encode, model.decode)
    assert any("if the model was trained with cross entropy" in w for w in unseam.diagnose(pair, x).warnings)
    assert not any("cross entropy" in w for w in unseam.diagnose(pair, x, s2=0.1).warnings)


def test_a_derivative_that_is_not_the_decoders_is_said():
    cut = lambda z: Decoder()(z.detach()) + 0.5 * Decoder()(z)  # noqa: E731
    found = unseam.diagnose((Encoder(), cut), X, s2=1.0, beta=1.0)
    assert any("is off by 67% of what it is by finite differences" in w for w in found.warnings)
    assert not any("finite differences" in w for w in unseam.diagnose((Encoder(), Decoder()), X, s2=1.0).warnings)


class Plain(nn.Module):
    def __init__(self, encode, decode):
        super().__init__()
        self.encode, self.decode = encode, decode


PARTS = {  # the same faulty parts behind both ways in which modules are given
    "module": Plain,
    "pair": lambda encode, decode: (encode, decode),
}
BROKEN = {
    "tuple": (lambda z: (z @ W.T, z), "decoder returns a tuple of 2"),
    "distribution": (lambda z: torch.distributions.Normal(z @ W.T, 1.0), "decoder returns a distribution"),
    "batch size": (lambda z: (z @ W.T).sum(0, keepdim=True), "keep the batch axis|turns .* points"),
    "not differentiable": (lambda z: torch.from_numpy(z.detach().numpy() @ W.numpy().T), "derivative|differentia"),
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("fault", BROKEN)
def test_every_verb_refuses_a_broken_decoder_in_one_line_and_writes_nothing(kind, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    decode, words = BROKEN[fault]
    model = PARTS[kind](lambda x: x @ torch.linalg.pinv(W).T, decode)
    for verb in (unseam.diagnose, unseam.theorems, unseam.align):
        with pytest.raises(BadInput, match=words) as told:
            verb(model, X)
        assert "\n" not in str(told.value)
    with pytest.raises(BadInput):
        unseam.report(model, data=X, show=False)
    assert not list(tmp_path.rglob("*.html"))


@pytest.mark.parametrize("by_cell", [False, True])
def test_each_gene_of_a_negative_binomial_has_its_own_dispersion(by_cell):
    class NegativeBinomial:
        theta = torch.tensor([0.5, 2.0, 8.0])

    px = NegativeBinomial()
    if by_cell:  # the geometric mean of 0.5 and 2 times the gene's
        px.theta = torch.stack([0.5 * px.theta, 2 * px.theta])
    likelihood, notes = _likelihood_of(px)
    torch.testing.assert_close(likelihood.log_r.exp(), torch.tensor([0.5, 2.0, 8.0]))
    assert ("the dispersion differs between cells" in " ".join(notes)) == by_cell
