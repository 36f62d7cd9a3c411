"""Every flag of every verb reaches its destination: a verb that parses a flag and drops it turns a test red.

Each case gives a verb one flag with a value that is not its default, puts a recorder in the place of the function that
should receive it, and compares the argument. `test_every_flag_has_a_case` fails for a new flag without one.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from unseam.cli import VERBS
from unseam.cli.common import parse
from unseam.models import Architecture
from unseam.train import Training, fit

INNER = ("typed_flags", "read", "options", "hyperparameters")  # fields that no flag of this name fills
TINY = {
    "steps": 300,
    "beta": 1e-3,
    "network": "linear",
    "latents": 2,
    "lr": 0.01,
    "data_parameters": {"size": 300},
    "show": False,
}


class Arrived(Exception):
    """The recorder was called with these arguments, by the names of the real function."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(str(arguments))
        self.arguments = arguments


class Case(NamedTuple):
    """Flag `field` of a verb, given as `words`, is `expected` in the `argument` of the function at `target`."""

    verb: str
    field: str
    words: str
    target: str
    argument: str
    expected: Any

    def __str__(self) -> str:
        return f"{self.verb}-{self.field}-{self.target.rpartition('.')[2]}"


def cases(verb: str, target: str, /, **fields: tuple[str, str, Any]) -> list[Case]:
    return [Case(verb, name, words, target, argument, value) for name, (words, argument, value) in fields.items()]


def other(hint: Any, default: Any) -> Any:
    """A value of a field's type that is not its default."""
    if get_origin(hint) is Literal:
        return next(word for word in reversed(get_args(hint)) if word != default)
    if hint is bool:
        return not default
    if hint == tuple[int, ...]:
        return (7, 5)
    if hint == tuple[str, ...]:
        return ("gaussian", "gaussian")
    return {int: 3, float: 0.25, str: "cpu"}[hint]


def shown(name: str, value: Any) -> str:
    """A setting as words of the command line."""
    flag = f"--{name}".replace("_", "-")
    if isinstance(value, bool):
        return flag if value else f"--no-{flag[2:]}"
    return f"{flag} {' '.join(map(str, value)) if isinstance(value, tuple) else value}"


def settings() -> list[Case]:
    """The fields of `Architecture` and `Training`, each of which is a flag of `train`."""
    found = []
    for kind in (Architecture, Training):
        hints = get_type_hints(kind)
        for f in dataclasses.fields(kind):
            if f.name in ("posterior", "aligned"):
                continue
            special = {"encoder_activation": "tanh", "decoder_activation": "tanh", "device": "cpu"}
            value = special.get(f.name, other(hints[f.name], f.default) if f.name not in special else None)
            found.append(
                Case(
                    "train",
                    f.name,
                    f"synth-linear {shown(f.name, value)}",
                    "unseam.train.fit",
                    f"{kind.__name__.lower()}.{f.name}",
                    value,
                )
            )
    return found


RUN, RUN2, CODES, FACTORS = "{run}", "{run2}", "{codes}", "{factors}"
CASES = [
    *cases(
        "align",
        "unseam.runs.align.align_members",
        member=(f"{RUN} --member 1", "members", [1]),
        points=(f"{RUN} --points 33", "points", 33),
        seed=(f"{RUN} --seed 7", "seed", 7),
    ),
    *cases("align", "unseam.cli.align.load_run", run_folder=(RUN, "folder", RUN)),
    *cases(
        "align", "unseam.runs.align.save_alignment", out=(f"{RUN} --out there --points 20", "folder", Path("there"))
    ),
    *cases("align", "unseam.run.run.Run.on", device=(f"{RUN} --device cpu", "name", "cpu")),
    *cases(
        "align",
        "unseam.runs.any_model.align",
        likelihood=("{model} --data {codes} --likelihood bernoulli", "likelihood", "bernoulli"),
    ),
    *cases(
        "bench",
        "unseam.cli.bench.run_benchmark",
        names=("cohort-conv", "name", "cohort-conv"),
        kinds=("find-calibration --kinds null", "kinds", "null"),
        tables=("find-calibration --tables 3", "tables", 3),
        workers=("find-calibration --workers 2", "workers", 2),
        out=("find-calibration --out there", "out", Path("there")),
    ),
    *cases("completion", "unseam.cli.completion.script", shell=("zsh", "shell", "zsh")),
    *cases(
        "data show",
        "unseam.cli.data.named_data",
        name=("sprites", "name", "sprites"),
        options=("sprites --data.size 16", "options", {"size": "16"}),
    ),
    *cases(
        "data show",
        "unseam.show.contact_sheet.write_contact_sheet",
        out=("sprites --data.size 16 --out a.png", "path", Path("a.png")),
    ),
    *cases(
        "data fetch",
        "unseam.data.download.fetch.fetch",
        name=("mnist", "name", "mnist"),
        origin=("mnist --from here.gz", "origin", "here.gz"),
    ),
    *cases("data pack", "unseam.run.load_run", runs=(f"{RUN} --out there", "folder", RUN)),
    *cases(
        "data pack",
        "unseam.runs.pack.pack",
        out=(f"{RUN} --out there", "out", Path("there")),
        rows=(f"{RUN} --out there --samples 9", "rows", 9),
        licence=(f"{RUN} --out there --licence CC0-1.0", "licence", "CC0-1.0"),
    ),
    *cases("demo", "unseam.show.demo.demo", out=("--out there", "out", Path("there")), seed=("--seed 7", "seed", 7)),
    *cases(
        "diagnose",
        "unseam.runs.diagnose.diagnose",
        member=(f"{RUN} --member 1", "members", [1]),
        points=(f"{RUN} --points 33", "points", 33),
        seed=(f"{RUN} --seed 7", "seed", 7),
    ),
    *cases("diagnose", "unseam.cli.diagnose.load_run", run_folder=(RUN, "folder", RUN)),
    *cases("diagnose", "unseam.run.run.Run.on", device=(f"{RUN} --device cpu", "name", "cpu")),
    *cases(
        "diagnose",
        "unseam.runs.diagnose.rows_of",
        points=(f"{RUN} --points 33", "count", 33),
        seed=(f"{RUN} --points 33 --seed 7", "seed", 7),
    ),
    *cases("evaluate", "unseam.cli.evaluate.load_run", run_folder=(RUN, "folder", RUN)),
    *cases("evaluate", "unseam.run.run.Run.on", device=(f"{RUN} --device cpu", "name", "cpu")),
    *cases("evaluate", "unseam.runs.evaluate.with_factors", factors=(f"{RUN} --factors f.csv", "table", Path("f.csv"))),
    *cases(
        "evaluate",
        "unseam.runs.evaluate.evaluate",
        metrics=(f"{RUN} --metrics sap", "metrics", "sap"),
        member=(f"{RUN} --member 1", "members", [1]),
        rows=(f"{RUN} --rows all", "rows", "all"),
        samples=(f"{RUN} --samples 44", "samples", 44),
        seed=(f"{RUN} --seed 7", "seed", 7),
        ci=(f"{RUN} --ci", "ci", True),
    ),
    *cases(
        "evaluate",
        "unseam.runs.evaluate.rows_for",
        metrics=(f"{RUN} --metrics sap", "metrics", "sap"),
        rows=(f"{RUN} --rows all", "which", "all"),
        samples=(f"{RUN} --samples 44", "samples", 44),
        seed=(f"{RUN} --seed 7", "seed", 7),
    ),
    *cases(
        "explore",
        "unseam.show.explorer.open_runs.open_gallery",
        run_folder=(f"{RUN}", "folders", [RUN]),
        run2=(f"{RUN} {RUN2}", "folders", [RUN, RUN2]),
        member=(f"{RUN} --member 1", "members", [1, None]),
        member2=(f"{RUN} --member2 1", "members", [None, 1]),
    ),
    *cases("explore", "unseam.show.explorer.server.serve_explorer", port=(f"{RUN} --port 9999", "port", 9999)),
    *cases("export", "unseam.cli.export.load_run", run_folder=(RUN, "folder", RUN)),
    *cases(
        "export",
        "unseam.runs.export.export",
        member=(f"{RUN} --member 1", "member", 1),
        to=(f"{RUN} --to safetensors", "to", "safetensors"),
        out=(f"{RUN} --out there", "out", Path("there")),
    ),
    *cases(
        "find",
        "unseam.finding.find",
        data=("wine.csv", "data", "wine.csv"),
        out=("a.csv --out there", "out", Path("there")),
        scale=("a.csv --scale common", "scale", "common"),
        quick=("a.csv --quick", "effort", "quick"),
        thorough=("a.csv --thorough", "effort", "thorough"),
        no_network=("a.csv --no-network", "network", False),
        latents=("a.csv --latents 3", "latents", 3),
        leave_out=("a.csv --leave-out a,b", "leave_out", ["a", "b"]),
        keep=("a.csv --keep a,b", "keep", ["a", "b"]),
        kinds=("a.csv --kinds a=counts", "kinds", {"a": "counts"}),
        codes=("a.csv --codes parquet", "codes", "parquet"),
        key=("a.csv --key b", "key", "b"),
        channels=("pictures --channels 1", "channels", 1),
        orthogonal=("a.csv --orthogonal", "orthogonal", True),
        beta=("a.csv --beta 2.5", "beta", 2.5),
        device=("a.csv --device cpu", "device", "cpu"),
        seed=("a.csv --seed 7", "seed", 7),
    ),
    *cases(
        "match",
        "unseam.cli.match.match",
        of=(f"{CODES} {CODES} --of codes", "of", "codes"),
        signed=(f"{CODES} {CODES} --signed", "signed", True),
        at=(f"{CODES} {CODES} --at 0.5", "at", 0.5),
        seed=(f"{CODES} {CODES} --seed 7", "seed", 7),
    ),
    *cases("match", "unseam.cli.match.open_set", things=(CODES, "place", CODES)),
    *cases(
        "match", "unseam.show.style.save", figure=(f"{CODES} {CODES} --figure there.svg", "path", Path("there.svg"))
    ),
    *cases(
        "match", "unseam.cli.match.write_atomic", out=(f"{CODES} {CODES} --out there.csv", "path", Path("there.csv"))
    ),
    *cases(
        "objectives",
        "unseam.show.pages.objectives.objectives_page",
        names=("vae --page sprites", "names", ("vae",)),
        steps=("--page sprites --steps 9", "steps", 9),
        out=("--page sprites --out there.png", "out", Path("there.png")),
        network=("--page sprites --network conv", "network", "conv"),
        latents=("--page sprites --latents 3", "latents", 3),
    ),
    *cases(
        "objectives",
        "unseam.cli.objectives.named_data",
        page=("--page rooms", "name", "rooms"),
        options=("--page rooms --data.size 16", "options", {"size": "16"}),
    ),
    *cases(
        "perturb",
        "unseam.cli.perturb.named_data",
        data=("rooms --out there", "name", "rooms"),
        options=("rooms --out there --data.size 16", "options", {"size": "16"}),
    ),
    *cases(
        "perturb",
        "unseam.perturb.perturb",
        out=("sprites --data.size 16 --out there", "out", Path("there")),
        teacher=("sprites --data.size 16 --out there --teacher restart", "how", "restart"),
        seeds=("sprites --data.size 16 --out there --seeds 3,5", "seeds", [3, 5]),
        steps=("sprites --data.size 16 --out there --steps 9", "steps", 9),
    ),
    *cases(
        "perturb",
        "unseam.run.load_run",
        run_folder=(f"sprites --data.size 16 --out there --run {RUN}", "folder", RUN),
    ),
    *cases(
        "perturb",
        "unseam.perturb.Settings",
        eps=("sprites --out there --eps 0.2", "eps", 0.2),
        rounds=("sprites --out there --rounds 9", "rounds", 9),
        gap=("sprites --out there --gap reconstruction", "gap", "reconstruction"),
        seed=("sprites --out there --seed 7", "seed", 7),
    ),
    *cases(
        "report",
        "unseam.show.report.write.write_run_report",
        run_folder=(RUN, "run", RUN),
        out=(f"{RUN} --out there.html", "out", Path("there.html")),
        member=(f"{RUN} --member 1", "member", 1),
        figures=(f"{RUN} --save-figures there", "figures", Path("there")),
        formats=(f"{RUN} --formats png,svg", "formats", ["png", "svg"]),
    ),
    *cases(
        "reproduce",
        "unseam_papers.frame.run.reproduce",
        ids=("V1 V2", "ids", ("V1", "V2")),
        scale=("V1 --size large", "scale", "large"),
        out=("V1 --out there", "out", Path("there")),
        engine=("V1 --engine written-out", "engine", "written-out"),
    ),
    *cases("reproduce", "unseam_papers.frame.run.finished_entries", listing=("V1 --list", "out", Path("exhibits"))),
    *cases("score", "unseam.cli.score.read_array", codes=(f"{CODES} {FACTORS}", "place", CODES)),
    *cases(
        "score",
        "unseam.cli.score.score",
        factors=(f"{CODES} {FACTORS}", "factors", "content of factors"),
        test_codes=(
            f"{CODES} {FACTORS} --test-codes {FACTORS} --test-factors {CODES}",
            "test_codes",
            "content of factors",
        ),
        test_factors=(
            f"{CODES} {FACTORS} --test-codes {FACTORS} --test-factors {CODES}",
            "test_factors",
            "content of codes",
        ),
        names=(f"{CODES} {FACTORS} --names a,b", "names", ["a", "b"]),
        kinds=(f"{CODES} {FACTORS} --kinds cyclic", "kinds", ["cyclic"]),
        metrics=(f"{CODES} {FACTORS} --metrics sap", "metrics", "sap"),
        ci=(f"{CODES} {FACTORS} --ci", "ci", True),
        chance=(f"{CODES} {FACTORS} --chance", "chance", True),
        bin_continuous=(f"{CODES} {FACTORS} --bin-continuous 5", "bin_continuous", 5),
        groups=(f"{CODES} {FACTORS} --groups 0-1", "groups", "0-1"),
        components=(f"{CODES} {FACTORS} --components 2", "components", 2),
        active=(f"{CODES} {FACTORS} --active 1", "active", [1]),
        seed=(f"{CODES} {FACTORS} --seed 7", "seed", 7),
        workers=(f"{CODES} {FACTORS} --threads 1", "workers", 1),
    ),
    *cases(
        "stress",
        "unseam.perturb.stress.stress_run",
        member=(f"{RUN} --member 1", "members", [1]),
        degrees=(f"{RUN} --degrees 20", "degrees", 20.0),
        eps=(f"{RUN} --eps 0.2", "eps", 0.2),
        points=(f"{RUN} --points 33", "points", 33),
    ),
    *cases("stress", "unseam.run.load_run", run_folder=(RUN, "folder", RUN)),
    *cases("stress", "unseam.perturb.retrain.confirm", confirm=(f"{RUN} --points 33 --confirm --eps 0.2", "eps", 0.2)),
    *cases(
        "study",
        "unseam.study.study",
        grid=("minute", "grid", "minute"),
        out=("minute --out there", "out", Path("there")),
        on=("minute --on dask", "on", "dask"),
        workers=("minute --workers 3", "workers", 3),
        models=("minute --models 0,2", "models", [0, 2]),
        device=("minute --device cpu", "device", "cpu"),
        options=("minute --options queue=q", "options", "queue=q"),
        deadline=("minute --deadline 9", "deadline", 9.0),
    ),
    *cases(
        "study",
        "unseam.study.cost.cost",
        target=("show minute", "grid", ...),
        workers=("show minute --workers 3", "workers", 3),
    ),
    *cases(
        "study",
        "unseam.study.grid.load_grid",
        target=("show minute", "grid", "minute"),
        models=("show minute --models 0,2", "models", (0, 2)),
    ),
    *cases(
        "study",
        "unseam.study.cluster.job_array",
        print_jobs=("minute --print-jobs --models 0 --out there --deadline 9", "deadline", 9.0),
    ),
    *cases(
        "study",
        "unseam.study.engine.one_piece",
        piece=("work there --piece 3", "number", 3),
        target=("work there --piece 3", "folder", "there"),
        deadline=("work there --piece 3 --deadline 9", "deadline", 9.0),
        device=("work there --piece 3 --device cpu", "device", "cpu"),
    ),
    *cases(
        "study",
        "unseam.study.engine.work_on_study",
        target=("work there", "folder", "there"),
        device=("work there --device cpu", "device", "cpu"),
    ),
    *cases("study", "unseam.study.load", target=("table there", "path", "there")),
    *cases(
        "study",
        "unseam.show.pages.study.write_analysis",
        target=("analyse there", "study", Path("there")),
        out=("analyse there --out here", "out", Path("here")),
    ),
    *cases(
        "train",
        "unseam.train.fit",
        objective=("synth-linear --objective vae", "objective", "VAE"),
        seeds=("synth-linear --seeds 3,5", "seeds", [3, 5]),
        out=("synth-linear --out there", "out", Path("there")),
        scale=("synth-linear --scale none", "scale", "none"),
        optimiser=("synth-linear --optimiser sgd", "optimiser.name", "sgd"),
        lr=("synth-linear --lr 0.25", "optimiser.lr", 0.25),
        eps=("synth-linear --eps 0.25", "optimiser.eps", 0.25),
        b1=("synth-linear --b1 0.25", "optimiser.b1", 0.25),
        b2=("synth-linear --b2 0.25", "optimiser.b2", 0.25),
        weight_decay=("synth-linear --weight-decay 0.25", "optimiser.weight_decay", 0.25),
        track=("synth-linear --track tensorboard", "track", "tensorboard"),
        hyperparameters=("synth-linear --beta 1,2", "hyperparameters", {"beta": [1.0, 2.0]}),
    ),
    *cases(
        "train",
        "unseam.cli.train.named_data",
        data=("rooms", "name", "rooms"),
        options=("rooms --data.size 16", "options", {"size": "16"}),
    ),
    *cases("train", "unseam.train.resume", resume=("--resume there", "folder", Path("there"))),
    *settings(),
    *cases("traverse", "unseam.cli.traverse.load_run", run_folder=(RUN, "folder", RUN)),
    *cases(
        "traverse",
        "unseam.show.film.film",
        member=(f"{RUN} --member 1", "member", 1),
        row=(f"{RUN} --row 3", "row", 3),
        to=(f"{RUN} --row 3 --to-row 5", "to", 5),
        steps=(f"{RUN} --frames 7", "steps", 7),
        all=(f"{RUN} --all", "every", True),
    ),
    *cases(
        "traverse",
        "unseam.show.film.write_film",
        out=(f"{RUN} --out there", "out", Path("there")),
        gif=(f"{RUN} --gif", "gif", True),
    ),
]
ELSEWHERE = {  # flags that are no argument of a function: each has a test below; `data` has it in test_adapted_run.py
    *((verb, "data") for verb in ("align", "diagnose", "evaluate", "explore", "match", "report", "score", "traverse")),
    *((verb, "likelihood") for verb in ("diagnose", "explore", "report")),
    ("diagnose", "figures"), ("diagnose", "theorems"), ("explore", "open"), ("match", "columns"), ("score", "format"),
}  # fmt: skip


def commands() -> dict[str, type]:
    """The dataclass of every verb and of every verb of a verb, by what one types."""
    found = {}
    for verb, (module, _) in VERBS.items():
        command = import_module(f"unseam.cli.{module}").Command
        parts = [(get_args(part)[0], get_args(part)[1].name) for part in get_args(command)]
        found |= {f"{verb} {name}": kind for kind, name in parts} if parts else {verb: command}
    return found


def flags(command: type) -> set[str]:
    nested = {"architecture": Architecture, "training": Training}
    names = {f.name for f in dataclasses.fields(command) if f.name not in ("json", *INNER)}
    inner = {f.name for name in names & set(nested) for f in dataclasses.fields(nested[name])} - {
        "posterior",
        "aligned",
    }
    return (names - set(nested)) | inner


def test_every_flag_has_a_case() -> None:
    covered = {(case.verb, case.field) for case in CASES} | ELSEWHERE
    wanted = {(verb, name) for verb, command in commands().items() for name in flags(command)}
    assert wanted - covered == set()
    assert {(verb, name) for verb, name in covered - wanted if name not in INNER} == set()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("flags")
    fit("synth-linear", seeds=[0, 1], out=folder / "run", **TINY)
    g = np.random.default_rng(0)
    np.save(folder / "codes.npy", g.normal(size=(40, 2)))
    np.save(folder / "factors.npy", g.normal(size=(40, 2)))
    (folder / "networks.py").write_text("import torch\npair = torch.nn.Linear(2, 1), torch.nn.Linear(1, 2)\n")
    return {
        "run": str(folder / "run"),
        "run2": str(folder / "run"),
        "codes": str(folder / "codes.npy"),
        "factors": str(folder / "factors.npy"),
        "model": f"{folder / 'networks.py'}:pair",
    }


def recorder(real: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(real)

    def record(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        loose = [p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
        arguments = dict(bound.arguments)
        for name in loose:
            arguments |= arguments.pop(name)
        raise Arrived(arguments)

    return record


def arrived(verb: str, words: Sequence[str], target: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a verb up to the call of the function at `target`; the arguments of that call."""
    owner, _, name = target.rpartition(".")
    try:
        place: Any = import_module(owner)
    except ModuleNotFoundError:  # a method
        place = getattr(import_module(owner.rpartition(".")[0]), owner.rpartition(".")[2])
    monkeypatch.setattr(place, name, recorder(getattr(place, name)))
    first, *rest = verb.split()
    command = import_module(f"unseam.cli.{VERBS[first][0]}").Command
    with pytest.raises(Arrived) as call:
        parse(command, [*rest, *words], f"unseam {first}").run()
    return call.value.arguments


def comparable(value: Any) -> Any:
    """Paths as text, types by name."""
    if isinstance(value, (list, tuple)):
        return [comparable(v) for v in value]
    return value.__name__ if isinstance(value, type) else str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_flag_arrives(case: Case, places: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word.format(**places) for word in case.words.split()]
    argument, *attributes = case.argument.split(".")
    found = arrived(case.verb, words, case.target, monkeypatch)[argument]
    for name in attributes:
        found = getattr(found, name)
    if case.expected is ...:
        return
    if isinstance(case.expected, str) and case.expected.startswith("content of "):
        assert np.array_equal(found, np.load(places[case.expected.split()[-1]]))
        return
    assert comparable(found) == filled(comparable(case.expected), places)


def filled(value: Any, places: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [filled(v, places) for v in value]
    return value.format(**places) if isinstance(value, str) else value


def run(*words: str) -> None:
    command = import_module(f"unseam.cli.{VERBS[words[0]][0]}").Command
    parse(command, list(words[1:]), f"unseam {words[0]}").run()


@pytest.mark.parametrize("figures", [True, False])
def test_diagnose_figures(
    figures: bool, places: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("unseam.cli.diagnose.draw", lambda run, member, found: drawn.append(member))
    run("diagnose", places["run"], "--points", "33", *([] if figures else ["--no-figures"]))
    assert drawn == ([0, 1] if figures else [])


@pytest.mark.parametrize("asked", [True, False])
def test_diagnose_theorems(asked: bool, places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diagnose", places["run"], "--points", "33", "--member", "1", "--no-figures", "--json"]
    run(*words, *(["--theorems"] if asked else []))
    (row,) = json.loads(capsys.readouterr().out)["members"]
    assert ("theorems" in row) == asked
    if asked:
        import unseam

        expected = unseam.theorems(unseam.load_run(places["run"]), member=1).to_json()
        assert [p["name"] for p in row["theorems"]["premises"]] == [p["name"] for p in expected["premises"]]
        assert [t["applies"] for t in row["theorems"]["theorems"]] == [t["applies"] for t in expected["theorems"]]


@pytest.mark.parametrize("browser", [True, False])
def test_explore_open(browser: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    opened: list[str] = []
    monkeypatch.setattr("unseam.cli.explore.webbrowser.open", opened.append)
    command = parse(
        import_module("unseam.cli.explore").Command, ["there", *([] if browser else ["--no-open"])], "explore"
    )
    command.ready("http://127.0.0.1:1/")
    assert opened == (["http://127.0.0.1:1/"] if browser else [])


def test_match_columns(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.load(places["codes"])
    found = arrived("match", [places["codes"], places["codes"], "--transpose"], "unseam.cli.match.match", monkeypatch)
    assert all(np.array_equal(each, codes.T) for each in found["things"])


def test_score_format(places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    run("score", places["codes"], places["factors"], "--metrics", "mcc", "--format", "latex")
    assert "tabular" in capsys.readouterr().out


PRINTED = {
    "align": "{run} --points 20",
    "data list": "",
    "data show": "synth-linear --out a.png",
    "diagnose": "{run} --points 20 --no-figures",
    "evaluate": "{run} --metrics mcc",
    "export": "{run} --to safetensors --member 1",
    "match": "{codes} {codes}",
    "objectives": "",
    "reproduce": "--list",
    "score": "{codes} {factors} --metrics mcc",
    "stress": "{run} --points 20",
    "study": "show minute",
    "train": "synth-linear --steps 1 --network linear --out there",
    "traverse": "{run} --member 1",
}  # verbs that are quick enough to run whole; `--json` of the others is tested where they are


@pytest.mark.parametrize("verb", PRINTED)
def test_json_prints_one_document(
    verb: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(*verb.split(), *PRINTED[verb].format(**places).split(), "--json")
    assert json.loads(capsys.readouterr().out)
