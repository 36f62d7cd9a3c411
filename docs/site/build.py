"""`python docs/site/build.py [OUT] [--run]`: the site, from docs/ and from the code. `--run` executes the tutorials.

Sources are staged in a folder beside the site, with the pages that are made from others; only changed files are
written, so that Sphinx reads only those again.
"""

import os
import shutil
import sys
from pathlib import Path

import command_line
import pages
import reference

HERE = Path(__file__).parent
DOCS = HERE.parent

KEPT = {".md", ".rst", ".png", ".svg", ".txt", ".csv"}


def sources() -> dict[str, bytes]:
    """Every file of the site by its path: those of docs/, and those made of others."""
    files = {
        str(path.relative_to(DOCS)): path.read_bytes()
        for path in sorted(DOCS.rglob("*"))
        if path.suffix in KEPT and HERE not in path.parents
    }
    texts = {path: data.decode() for path, data in files.items() if path.endswith((".md", ".rst"))}
    made = pages.generated(texts) | reference.pages() | command_line.pages()
    shown = {path: pages.comments_above(text) for path, text in (texts | made).items()}
    return files | {path: text.encode() for path, text in shown.items()}


def stage(folder: Path) -> None:
    """Write what changed, remove what is gone."""
    files = sources()
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def build(out: Path, run: bool = False) -> int:
    """Stage and build; returns Sphinx's exit code."""
    from sphinx.cmd.build import main

    work = out.with_name(out.name + "-build")
    stage(work / "source")
    os.environ["UNSEAM_DOCS_RUN"] = "force" if run else "off"
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if run:
        shutil.rmtree(work / "doctrees", ignore_errors=True)
    return main([
        "-b", "html", "-W", "--keep-going", "-q", "-c", str(HERE), "-d", str(work / "doctrees"),
        str(work / "source"), str(out),
    ])  # fmt: skip


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    sys.exit(build(Path(arguments[0] if arguments else "site"), run="--run" in sys.argv))
