"""Walk everything that must work without torch; `python core_walk.py [RUN]` in an empty folder.

torch is refused even where it is installed. `make lowest` and the wheel's smoke test run the same file.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


class NoTorch:
    """An import hook that says of torch what Python says of a package that is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def cli(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    from unseam.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as stop:  # --help
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def made() -> tuple[Any, Any]:
    """Two independent factors, and six columns that they move."""
    g = np.random.default_rng(0)
    factors = g.uniform(size=(400, 2))
    return factors, factors @ g.normal(size=(2, 6)) + 0.01 * g.normal(size=(400, 6))


def python_walk() -> None:
    import unseam
    from unseam import estimators

    factors, x = made()
    assert unseam.find(x, network=False).count == 2
    assert unseam.find(x).count == 2  # with no torch there is no network, and the answer is the linear one
    assert unseam.match(x, x[:, ::-1], of="codes").stable.all()
    scores = unseam.score(factors, np.round(4 * factors), metrics="mig,dci,sap", kinds=["ordinal"])
    assert scores["mig"].value > 0.5
    for estimator in (estimators.PPCA(2), estimators.LinearVAE(2), estimators.FactorFinder()):
        assert estimator.fit_transform(x).shape == (400, 2)
    for name in ("fit", "diagnose", "demo", "load_data"):
        refused(f"unseam.{name}", lambda name=name: getattr(unseam, name))
    refused("VAE", lambda: estimators.VAE(2).fit(x))


def refused(what: str, call: Any) -> None:
    """It raises one line that has the command to install torch."""
    try:
        call()
        message = "nothing was raised"
    except ImportError as error:
        message = str(error)
    assert message == f"{what} needs torch; run: pip install 'unseam[train]'", message


def command_walk() -> None:
    factors, x = made()
    names = ",".join(f"c{i}" for i in range(x.shape[1]))
    np.savetxt("table.csv", x, delimiter=",", header=names, comments="")
    np.save("codes.npy", factors)
    np.savetxt("factors.csv", np.round(4 * factors), delimiter=",", header="a,b", comments="")
    from unseam.cli import VERBS

    assert cli("--help")[0] == cli("--version")[0] == 0
    for verb in VERBS:
        code, out, err = cli(verb, "--help")
        assert (code, err) == (0, ""), (verb, err)
        assert "xample" in out or verb == "data", verb
    code, out, err = cli("find", "table.csv", "--no-network", "--json")
    assert code == 0, err
    assert len(json.loads(out)["factors"]) == 2
    code, out, err = cli("score", "codes.npy", "factors.csv", "--metrics", "mig", "--json")
    assert code == 0, err
    assert json.loads(out)
    code, _, err = cli("match", "codes.npy", "codes.npy", "--of", "codes")
    assert code == 0, err
    Path("run").mkdir(exist_ok=True)
    on_run = ("evaluate", "diagnose", "align", "report", "traverse", "export", "stress")
    for words in (("train", "sprites"), ("data", "list"), ("objectives",), *((verb, "run") for verb in on_run)):
        code, _, err = cli(*words)
        assert (code, err) == (2, f"unseam: unseam {words[0]} needs torch; run: pip install 'unseam[train]'\n"), err


def run_walk(folder: str) -> None:
    """A run's configuration and tables are read; its models are refused in one line."""
    import unseam

    run = unseam.load_run(folder)
    assert len(run.table()) == len(run.members) == 2
    assert len(run.log())
    assert len(run.latents())
    assert "member" in run._repr_html_()
    assert run.config.architecture.latents == 2
    refused("a run's model", lambda: run.model(0))


def main() -> None:
    sys.meta_path.insert(0, NoTorch())  # type: ignore[arg-type]
    python_walk()
    command_walk()
    for folder in sys.argv[1:]:
        run_walk(folder)
    assert "torch" not in sys.modules
    sys.stdout.write(f"the core works without torch in {Path.cwd()}\n")


if __name__ == "__main__":
    main()
