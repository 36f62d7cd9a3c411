"""Everything that fixes a model but its weights: a run's configuration holds it, and can be read without torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from unseam.errors import BadInput, check_literals
from unseam.rng import derive

if TYPE_CHECKING:
    from unseam.models.autoencoder import Autoencoder
    from unseam.models.own_networks import MakeNetworks


@dataclass(frozen=True)
class NetworkSource:
    """Where the user's own networks come from; they are never stored, only their weights."""

    function: str = ""  # module:name of the function that makes them; "" if it cannot be imported
    kinds: str = ""  # their classes, for errors and pages


@dataclass(frozen=True)
class Architecture:
    """Everything that determines a model except its weights; "auto" follows the data. Each field is documented below.

    Examples
    --------
    >>> Architecture(latents=4).for_data((1, 64, 64), "bernoulli").network
    'conv'
    """

    network: Literal["auto", "mlp", "conv", "linear", "own"] = "auto"
    """auto: conv for images whose sides are multiples of 16, mlp for the rest; conv takes images of any size; own:
    those that `fit(networks=)` was given"""
    latents: int = 10
    """K, the size of the latent space"""
    small_kernels: bool = False
    """conv: 2x2 kernels in the encoder's last two layers, as in the code of Locatello 2019"""
    encoder: tuple[int, ...] = (256, 256)
    """hidden widths of an mlp encoder"""
    decoder: tuple[int, ...] = (256, 256)
    """hidden widths of an mlp decoder"""
    encoder_activation: str = "relu"
    """relu, tanh, elu or softplus"""
    decoder_activation: str = "relu"
    """tanh makes the decoder smooth, as the theory wants it"""
    likelihood: Literal["auto", "bernoulli", "gaussian", "poisson", "negative-binomial", "categorical", "mixed"] = (
        "auto"
    )
    """what the data is modelled with; the data's own choice by default (categorical: classes, or shares of a sum)"""
    columns: tuple[str, ...] = ()
    """of a mixed likelihood, from left to right: gaussian:5 bernoulli:2 (models/mixed.py)"""
    s2: float = 0.5
    """variance of a Gaussian likelihood (1/2: the squared error itself, as in Zietlow 2022)"""
    learned_s2: bool = False
    """make s2 a parameter"""
    posterior: str = "diagonal"
    """the family of q(z|x), a name of `models.posterior.POSTERIORS`; set by the objective"""
    levels: int = 10
    """values a latent can take when the posterior is quantised (Hsu 2023)"""
    aligned: bool = False
    """the axes of latent space were turned after training; set by `unseam align`"""

    def __post_init__(self) -> None:
        check_literals(self)
        if self.latents < 1:
            raise BadInput(f"latents={self.latents} must be at least 1")
        if self.levels < 2:
            raise BadInput(f"levels={self.levels} must be at least 2: a latent with one value says nothing")
        if not self.s2 > 0:
            raise BadInput(f"s2={self.s2} must be positive: it is the variance of the Gaussian likelihood")
        if any(width < 1 for width in (*self.encoder, *self.decoder)):
            raise BadInput(f"hidden widths must be at least 1, got encoder={self.encoder}, decoder={self.decoder}")

    def for_data(self, shape: tuple[int, ...], likelihood: Literal["bernoulli", "gaussian"]) -> Architecture:
        """Resolve "auto" for data of this shape.

        >>> Architecture().for_data((1, 64, 64), "bernoulli").network
        'conv'
        """
        from unseam.models.autoencoder import conv_grid
        from unseam.models.mixed_likelihood import parts_of

        image = len(shape) == 3 and shape[1] % 16 == 0 and shape[2] % 16 == 0
        network = ("conv" if image else "mlp") if self.network == "auto" else self.network
        if self.likelihood == "mixed":
            parts_of(self.columns, shape[0] if len(shape) == 1 else -1)
        if network == "conv":
            conv_grid(shape)
        return replace(self, network=network, likelihood=likelihood if self.likelihood == "auto" else self.likelihood)

    def build(self, shape: tuple[int, ...], seed: int, make: MakeNetworks | None = None) -> Autoencoder:
        """The model with the initial weights of this seed; `make` makes the user's own networks."""
        import torch

        from unseam.models.autoencoder import Autoencoder

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "weights"))
            return Autoencoder(self, shape, None if make is None else make())
