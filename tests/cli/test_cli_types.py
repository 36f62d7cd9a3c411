"""The lazy list of public names is the typed one; what mypy makes of them, `make types` asks (tests/typed_names.py)."""

import ast
from pathlib import Path

import pytest

import unseam


def test_lazy_names_typed_names_and_all_are_one_list() -> None:
    tree = ast.parse(Path(unseam.__file__).read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == unseam.PUBLIC
    assert sorted(unseam.__all__) == sorted([*unseam.PUBLIC, "__version__"])
    assert all(getattr(unseam, name) is not None for name in unseam.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'fitt'"):
        unseam.fitt  # noqa: B018
