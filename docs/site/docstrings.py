"""Our docstrings are plain words with `code` and formulas such as |J|_1, whose bars and stars
reStructuredText would read as markup."""

import re
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import find_pending_xref_condition

CODE = re.compile(r"(``.+?``|`[^`]+`(?!_))")
MARKUP = re.compile(r"([*|]|(?<=\w)_(?=\W|$)|\\)")


def plain(line: str) -> str:
    """The same words, with what would be markup escaped.

    >>> plain("gamma |J|_1 * x of `a * b`")
    'gamma \\\\|J\\\\|_1 \\\\* x of `a * b`'
    """
    parts = CODE.split(line)
    return "".join(part if i % 2 else MARKUP.sub(r"\\\1", part) for i, part in enumerate(parts))


def escape(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape all lines but examples; an example below another section gets a heading of its own."""
    first = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if first is not None and "Examples" not in lines:
        lines[first:first] = ["Examples", "--------"]
    out: list[str] = []
    example = False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        out.append(line if example or re.match(r"\s*\.\. ", line) else plain(line))
    lines[:] = out


class PlainTypes(SphinxPostTransform):
    """A lower-case word in the type of a parameter ("str, path or model") is a word, not the name of a class of ours.

    Sphinx would look for anything of that name, and warn where it finds several attributes.
    """

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(addnodes.pending_xref)):
            word, wanted = node.get("reftarget", ""), (node.get("refdomain"), node.get("reftype")) == ("py", "class")
            if wanted and word.isidentifier() and word.islower():
                written = find_pending_xref_condition(node, "*")
                node.replace_self((written or node).children)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", escape, priority=400)  # before napoleon reads sections
    app.add_post_transform(PlainTypes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
