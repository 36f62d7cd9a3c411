"""Pages that are made from others: the gallery of the exhibits, one page per data set out of data.md, changelog and
contributing."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = "data.md"
SECTION = re.compile(r"^## ([A-Z]\d+)$", re.MULTILINE)
SET = re.compile(r"^### `([\w-]+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^( *)(\S.*?) {2,}(# .*)$", re.MULTILINE)
FITS = 76  # characters of code in the column of a desk at 1280 pixels
TITLE = re.compile(r"\*\*(.+?)\*\*")


def generated(texts: dict[str, str]) -> dict[str, str]:
    """Every page of `texts` that is replaced, and every page that is new."""
    sets = dict(SET.findall(texts[DATA]))
    made = {DATA: sets_in_short(texts[DATA]) + toctree([f"data/{name}" for name in sets])}
    made |= {f"data/{name}.md": set_page(name, text) for name, text in sets.items()}
    papers = {path.removesuffix(".md"): text for path, text in texts.items() if path.startswith("papers/")}
    made |= {f"{path}.md": with_code(text) for path, text in papers.items()}
    made["gallery.md"] = texts["gallery.md"] + gallery(papers)
    made["changelog.md"] = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    made["contributing.md"] = (ROOT / "CONTRIBUTING.md").read_text().replace("](docs/", "](")
    return made


def with_code(text: str) -> str:
    """Backticks inside lines of HTML, which Markdown leaves as they are, as code.

    >>> with_code("<li>the `ring`</li>\\nthe `ring`")
    '<li>the <code>ring</code></li>\\nthe `ring`'
    """

    def line(words: str) -> str:
        return re.sub(r"`([^`]+)`", r"<code>\1</code>", words) if words.startswith("<") else words

    return "\n".join(map(line, text.split("\n")))


def comments_above(text: str) -> str:
    """Comments behind code on lines of their own, in blocks that would be cut off at the right.

    >>> comments_above("```\\nunseam find a.csv" + 60 * " " + "# a table\\nls   # short\\n```\\n")
    '```\\n# a table\\nunseam find a.csv\\n# short\\nls\\n```\\n'
    >>> comments_above("```text\\nx" + 80 * " " + "# 1\\n```") == "```text\\nx" + 80 * " " + "# 1\\n```"
    True
    """

    def block(found: re.Match[str]) -> str:
        language, code = found.groups()
        wide = any(len(line) > FITS and COMMENT.match(line) for line in code.split("\n"))
        if language not in ("", "bash", "sh", "python") or not wide:
            return found[0]
        return f"```{language}\n" + COMMENT.sub(r"\1\3\n\1\2", code) + "```"

    return FENCE.sub(block, text)


def toctree(names: list[str]) -> str:
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def set_page(name: str, text: str) -> str:
    """
    >>> set_page("ring", "\\nCircles.\\n\\n![ring](data/ring.png)\\n")
    '# ring\\n\\n[all data sets](../data.md)\\n\\nCircles.\\n\\n![ring](ring.png)\\n'
    """
    return f"# {name}\n\n[all data sets](../data.md)\n{text.replace('](data/', '](')}"


def sets_in_short(text: str) -> str:
    """Each data set's first sentence and picture, as a link to its page.

    >>> sets_in_short("### `ring`\\n\\nCircles (Doe et al. 2020). More.\\n\\n![ring](data/ring.png)\\n\\n## Next\\n")
    '### [ring](data/ring.md)\\n\\nCircles (Doe et al. 2020).\\n\\n![ring](data/ring.png)\\n\\n## Next\\n'
    """

    def short(found: re.Match[str]) -> str:
        first = re.split(r"(?<=\.)(?<!al\.)\s", found[2].strip(), maxsplit=1)[0]
        pictures = [picture[0] for picture in PICTURE.finditer(found[2])]
        return "\n\n".join([f"### [{found[1]}](data/{found[1]}.md)", first, *pictures]) + "\n\n"

    return SET.sub(short, text)


def gallery(pages: dict[str, str]) -> str:
    """Each exhibit's figure and title, as a card that leads to its section.

    >>> text = "# X\\n## A1\\n**VAE & PCA** (Doe).\\n![A1](../figures/A1.svg)\\n"
    >>> ":link: papers/x.html#a1\\n" in gallery({"papers/x": text})
    True
    """
    cards = []
    for page, whole in pages.items():
        _, *rest = SECTION.split(whole)
        for name, text in zip(rest[::2], rest[1::2], strict=True):
            title, picture = TITLE.search(text), PICTURE.search(text)
            if title and picture:
                cards.append(card(title[1], picture[1].removeprefix("../"), f"{page}.html#{name.lower()}"))
    return "\n\n::::{grid} 1 2 3 3\n:gutter: 3\n" + "\n".join(cards) + "\n::::\n"


def card(title: str, picture: str, link: str) -> str:
    options = [f":link: {link}", ":link-type: url", f":img-top: {picture}", ":class-img-top: unseam-thumbnail"]
    return "\n".join([":::{grid-item-card}", *options, "", title, ":::"])
