"""Two tiny runs, and an explorer that serves one of them."""

from collections.abc import Iterator

import pytest
from explorer_server import Asker, served

from unseam.run import Run
from unseam.show.explorer.open_runs import Gallery, open_gallery
from unseam.train import fit


@pytest.fixture(scope="package")
def images(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("explorer") / "sprites"
    few = {"size": 16, "shapes": 1, "orientations": 1}
    small = {"network": "mlp", "latents": 4, "encoder": (64,), "decoder": (64,), "beta": 1.0}
    return fit("sprites", data_parameters=few, seeds=[0, 1], steps=400, out=out, show=False, **small)


@pytest.fixture(scope="package")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("explorer") / "ring"
    return fit("ring", network="mlp", latents=2, beta=0.01, steps=200, out=out, show=False)


@pytest.fixture(scope="package")
def gallery(images: Run) -> Gallery:
    return open_gallery([images.folder], [0, None])


@pytest.fixture(scope="package")
def ask(gallery: Gallery) -> Iterator[Asker]:
    with served(gallery) as asker:
        yield asker
