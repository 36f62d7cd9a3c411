"""The public face is typed: mypy knows what `unseam.fit` returns, and the lazy list is the typed one."""

import ast
from pathlib import Path

import pytest

import unseam

ROOT = Path(__file__).parents[2]
SNIPPET = """
import unseam
run = unseam.fit("sprites", steps=3)
reveal_type(run)
reveal_type(run.beta(0))
reveal_type(unseam.load_run("x").members)
reveal_type(unseam.score)
"""


def test_lazy_names_typed_names_and_all_are_one_list() -> None:
    tree = ast.parse(Path(unseam.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == unseam.PUBLIC
    assert sorted(unseam.__all__) == sorted([*unseam.PUBLIC, "__version__"])
    assert all(getattr(unseam, name) is not None for name in unseam.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        unseam.fitt  # noqa: B018


def test_mypy_knows_the_public_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the project's settings and its cache: quick after `make types`, a minute without."""
    api = pytest.importorskip("mypy.api")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    told, trouble, _ = api.run([str(tmp_path / "snippet.py"), "--config-file", str(ROOT / "pyproject.toml")])
    revealed = [line.split("Revealed type is ")[1] for line in told.splitlines() if "Revealed type" in line]
    assert len(revealed) == 4, told + trouble
    assert "unseam.train.run.Run" in revealed[0]
    assert "float | None" in revealed[1]
    assert "unseam.train.config.Member" in revealed[2]
    assert "Scores" in revealed[3]
