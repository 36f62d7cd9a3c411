"""exhibits.html, one self-contained page, and exhibits.md, the same for the docs: a section an exhibit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What the papers show</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .92rem; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
section { margin: 3rem 0; } figure { margin: 1rem 0; overflow-x: auto; } figure svg { width: 100%; height: auto; }
.verdict { padding: .1rem .5rem; border-radius: .6rem; font-size: .85rem; white-space: nowrap; background: #e8e8e8; }
.agrees { background: #d7efdf; color: #14532d; } .differs { background: #f7dcd4; color: #7a2410; }
.note, .source { color: #555; font-size: .9rem; } code { background: #f3f3f3; padding: .1rem .3rem; }
</style></head><body>
<h1>What the papers show</h1>
<p>Each section repeats something a paper shows. Only the published values are written down; the rest is computed. An
exhibit differs when any row of its table does.</p>
<table><thead><tr><th>id</th><th>exhibit</th><th>verdict</th><th>rows that agree / differ / cannot be compared</th></tr>
</thead><tbody>
{% for e in exhibits %}<tr><td><a href="#{{ e.id }}">{{ e.id }}</a></td><td>{{ e.title }}</td>
<td><span class="verdict {{ e.verdict }}">{{ e.verdict }}</span></td><td>{{ count(e) }}</td></tr>
{% endfor %}</tbody></table>
{% for e in exhibits %}<section id="{{ e.id }}">
<h2>{{ e.id }}. {{ e.title }} <span class="verdict {{ e.verdict }}">{{ e.verdict }}</span></h2>
<p>{{ e.claim }} <span class="source">({{ e.source }})</span></p>
<p><code>unseam reproduce {{ e.id }} --scale {{ e.scale }}</code></p>
<table><thead><tr><th>what</th><th>published</th><th>ours</th><th>verdict</th></tr></thead><tbody>
{% for row in e.rows %}<tr><td>{{ row.what }}
{% if row.note %}<br><span class="note">{{ row.note }}</span>{% endif %}</td>
<td>{{ row.published }}</td><td>{{ row.ours }}</td>
<td><span class="verdict {{ row.verdict }}">{{ row.verdict }}</span></td></tr>
{% endfor %}</tbody></table>
<figure role="img" aria-label="{{ e.title }}">{{ svg(e.figure) }}</figure>
<p>{{ e.conclusion }}</p>
{% if e.choices %}<details><summary>What the source leaves open, and what we chose</summary><ul>
{% for choice in e.choices %}<li>{{ choice }}</li>
{% endfor %}</ul></details>{% endif %}
</section>
{% endfor %}</body></html>
"""

MARKDOWN = """# What the papers show

Each section repeats something a paper shows. Only the published values are written down; the rest is computed by the
command beside it, the verdict too: *agrees* (inside the central 95 % of our repetitions, or a stated ordering that a
test confirms), *differs*, or *not comparable*. An exhibit differs when any row of its table does; the last column
counts the rows that agree / differ / cannot be compared. This page is `exhibits.md` of those commands' output folder.

| id | exhibit | verdict | rows |
| --- | --- | --- | --- |
{% for e in exhibits %}| [{{ e.id }}](#{{ e.id | lower }}) | {{ e.title }} | {{ e.verdict }} | {{ count(e) }} |
{% endfor %}
{% for e in exhibits %}## {{ e.id }}
**{{ e.title }}** ({{ e.source }}). {{ e.claim }}

`unseam reproduce {{ e.id }} --scale {{ e.scale }}`

| what | published | ours | verdict |
| --- | --- | --- | --- |
{% for row in e.rows %}| {{ row.what|cell }} | {{ row.published|cell }} | {{ row.ours|cell }} | {{ row.verdict }} |
{% endfor %}
![{{ e.title }}](figures/{{ e.id }}.svg)

{{ e.conclusion }}

{% if e.notes %}Notes:
{% for note in e.notes %}- {{ note }}
{% endfor %}
{% endif %}{% if e.choices %}What the source leaves open, and what we chose:
{% for choice in e.choices %}- {{ choice }}
{% endfor %}
{% endif %}{% endfor %}"""


def count(entry: Mapping[str, Any]) -> str:
    """Rows that agree / differ / cannot be compared.

    >>> count({"rows": [{"verdict": "agrees"}, {"verdict": "agrees"}, {"verdict": "not comparable"}]})
    '2 / 0 / 1'
    """
    verdicts = [row["verdict"] for row in entry["rows"]]
    return " / ".join(str(verdicts.count(kind)) for kind in ("agrees", "differs", "not comparable"))


def markdown(entries: Sequence[Mapping[str, Any]]) -> str:
    """The entries as Markdown, with the figures beside it in figures/.

    >>> markdown([]).splitlines()[0]
    '# What the papers show'
    """
    noted = [
        {**e, "notes": [f"{row['what']}: {row['note']}." for row in e["rows"] if row.get("note")]} for e in entries
    ]
    environment = Environment(autoescape=False, trim_blocks=False)
    environment.filters["cell"] = cell
    return environment.from_string(MARKDOWN).render(exhibits=noted, count=count).rstrip() + "\n"


def cell(text: str) -> str:
    """Text for a cell of a Markdown table, where a bar would end the cell.

    >>> print(cell("|R - P|"))
    \\|R - P\\|
    """
    return text.replace("|", "\\|")


def page(entries: Sequence[Mapping[str, Any]]) -> str:
    """The page of the entries of exhibits.json; the figures are read from their files and put inside.

    >>> "What the papers show" in page([])
    True
    """
    return Environment(autoescape=True).from_string(TEMPLATE).render(exhibits=entries, svg=inline, count=count)


def inline(path: str) -> Markup:
    """An SVG file without its XML header, to stand inside HTML."""
    text = Path(path).read_text()
    return Markup(text[text.index("<svg") :])
