"""Pages that `make docs` makes from others: the gallery of the exhibits, and one page a data set out of data.md."""

import re
from html import escape
from typing import Any

from mkdocs.structure.files import File, Files

DATA = "data.md"
SECTION = re.compile(r"^## ([A-Z]\d+)$", re.MULTILINE)
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
    """Every data set gets a page, and the exhibits a gallery."""
    pages = [f for f in files.documentation_pages() if f.src_uri.startswith("papers/")]
    data = taken(files, DATA)
    made = {"gallery.md": gallery({page.src_uri[:-3]: str(page.content_string) for page in pages})}
    made |= {DATA: sets_in_short(data)}
    made |= {f"data/{name}.md": set_page(name, text) for name, text in SET.findall(data)}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


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


def gallery(pages: dict[str, str]) -> str:
    r"""Each exhibit's figure and name, as a link to its section.

    >>> text = "# X\n## A1\n**VAE & PCA** (Doe).\n![A1](../figures/A1.svg)\n"
    >>> "<b>A1</b> VAE &amp; PCA" in gallery({"papers/x": text})
    True
    """
    parts = ["---", "hide: [toc]", "---", "# Gallery", "", HEAD, "", STYLE, '<div class="gallery">']
    for page, whole in pages.items():
        _, *rest = SECTION.split(whole)
        for name, text in zip(rest[::2], rest[1::2], strict=True):
            title, picture = re.search(r"\*\*(.+?)\*\*", text), re.search(r"!\[[^\]]*\]\(\.\./(figures/[^)]+)\)", text)
            if picture:
                image = f'<img src="{picture[1]}" alt="{name}" loading="lazy">'
                words = f"<b>{name}</b> {escape(title[1] if title else '')}"
                parts.append(f'<a href="{page}.html#{name.lower()}">{image}{words}</a>')
    return "\n".join([*parts, "</div>", ""])
