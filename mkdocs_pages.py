"""Pages that `make docs` makes from others: one page an exhibit out of what-the-papers-show.md, and their gallery; one
page a data set out of data.md."""

import re
from html import escape
from typing import Any

from mkdocs.structure.files import File, Files

WHOLE, DATA = "what-the-papers-show.md", "data.md"
SECTION = re.compile(r"^## ([A-Z]\d+)$", re.MULTILINE)
LINK = re.compile(r"what-the-papers-show\.md#([a-z]\d+)\)")
SET = re.compile(r"^### `([\w-]+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
SHIM = re.compile(r"""https:[^"'\s]+/iframe-worker/shim""")
HEAD = "Every figure as `unseam reproduce` draws it; each leads to its exhibit."
STYLE = """<style>
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 1rem; }
.gallery a { color: inherit; font-size: .68rem; line-height: 1.4; }
.gallery img { display: block; width: 100%; height: 9rem; object-fit: contain; background: #fff; border-radius: .2rem; }
</style>"""
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]+\)")


def on_files(files: Files, config: Any) -> Files:
    """Long pages become their own contents: every exhibit and data set gets a page, exhibits a gallery too."""
    head, sections = split(taken(files, WHOLE))
    data = taken(files, DATA)
    made = {WHOLE: linked(head, sections, "papers/"), "gallery.md": gallery(sections)}
    made |= {f"papers/{name}.md": exhibit(name, text, sections) for name, text in sections.items()}
    made |= {DATA: sets_in_short(data)}
    made |= {f"data/{name}.md": set_page(name, text) for name, text in SET.findall(data)}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """A link to a section of the long page leads to the exhibit's own.

    >>> on_page_markdown("[all](what-the-papers-show.md#z11)", None, None, None)
    '[all](papers/Z11.md)'
    """
    return LINK.sub(lambda found: f"papers/{found[1].upper()}.md)", markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Search from disk by our own worker.js: nothing is loaded from elsewhere."""
    return SHIM.sub("../" * page.url.count("/") + "worker.js", output)


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return SHIM.sub("worker.js", output)


def taken(files: Files, path: str) -> str:
    """The text of a page, which another takes the place of."""
    whole = files.get_file_from_path(path)
    assert whole is not None
    files.remove(whole)
    return str(whole.content_string)


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
        parts = [f"### [{found[1]}](data/{found[1]}.md)", first, *PICTURE.findall(found[2])]
        return "\n\n".join(parts) + "\n\n"

    return SET.sub(short, text)


def split(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first section, and each section by its id.

    >>> split("intro\\n## A1\\none\\n## Z2\\ntwo")
    ('intro\\n', {'A1': '\\none\\n', 'Z2': '\\ntwo'})
    """
    head, *rest = SECTION.split(text)
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def linked(text: str, sections: dict[str, str], folder: str) -> str:
    """Links within the long page, as links to the exhibits' own."""
    for name in sections:
        text = text.replace(f"](#{name.lower()})", f"]({folder}{name}.md)")
    return text


def exhibit(name: str, text: str, sections: dict[str, str]) -> str:
    back = "[all exhibits](../what-the-papers-show.md)"
    return f"# {name}\n\n{back}\n{linked(text, sections, '').replace('](figures/', '](../figures/')}"


def gallery(sections: dict[str, str]) -> str:
    """Each exhibit's figure and name, as a link to its page.

    >>> "<b>A1</b> VAE &amp; PCA" in gallery({"A1": "\\n**VAE & PCA** (Doe).\\n\\n![A1](figures/A1.svg)\\n"})
    True
    """
    parts = ["---", "hide: [toc]", "---", "# Gallery", "", HEAD, "", STYLE, '<div class="gallery">']
    for name, text in sections.items():
        title, picture = re.search(r"\*\*(.+?)\*\*", text), re.search(r"!\[[^\]]*\]\((figures/[^)]+)\)", text)
        if picture:
            image = f'<img src="{picture[1]}" alt="{name}" loading="lazy">'
            words = f"<b>{name}</b> {escape(title[1] if title else '')}"
            parts.append(f'<a href="papers/{name}.html">{image}{words}</a>')
    return "\n".join([*parts, "</div>", ""])
