"""`unseam explore RUN [RUN2]`: a local page to move through a model's latent space."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import tyro

from unseam.cli.common import MaybeInt, ModelData, ModelLikelihood, RunOrModel, emit, stdout
from unseam.cli.model_file import run_of_file
from unseam.errors import BadInput

NEEDED = ("starlette", "uvicorn")


@dataclass
class Command:
    """Move through a model's latent space: a local web page that decodes as you drag a slider.

    It shows what each latent moves (Jacobian columns), what mixing costs at the current point, and where the data
    lies; two models can be set side by side on the same input. The page is served to this machine only. Ctrl-C ends it.

    Example: unseam explore runs/sprites-beta-vae --member 0 --member2 3
    """

    run_folder: RunOrModel
    run2: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[RUN2]")] = None
    """A second run, shown beside the first."""
    member: MaybeInt = None
    """The member to start with; without it the one that `diagnose` or `report` chose, else the first finished."""
    member2: MaybeInt = None
    """The member beside it: of RUN2, or of RUN when there is none."""
    port: int = 8642
    """Where to listen on 127.0.0.1; 0 takes a free port."""
    open: bool = True
    """Open the page in a browser."""
    data: ModelData = None
    likelihood: ModelLikelihood = None
    json: bool = False
    """Print one JSON document with the address, then serve."""

    def run(self) -> None:
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise BadInput(f"the explorer needs {' and '.join(missing)}; install them: pip install unseam[explore]")
        from unseam.show.explorer.open_runs import open_gallery
        from unseam.show.explorer.server import serve_explorer

        with TemporaryDirectory() as scratch:
            first = run_of_file(self.run_folder, self.data, Path(scratch) / "model", self.likelihood) or self.run_folder
            folders = [first] if self.run2 is None else [first, self.run2]
            gallery = open_gallery(folders, [self.member, self.member2])
            serve_explorer(gallery, self.port, self.ready)

    def ready(self, url: str) -> None:
        if self.json:
            emit({"url": url})
        else:
            stdout.print(f"exploring at {url} (Ctrl-C ends)", soft_wrap=True)
        if self.open:
            webbrowser.open(url)
