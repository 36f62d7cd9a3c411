"""The reference of the command line: what `unseam VERB --help` prints, verb by verb."""

import re
from contextlib import redirect_stdout, suppress
from io import StringIO

from unseam.cli import VERBS, main

HEAD = """# The command line

`unseam VERB --help` prints what stands here. Every verb also takes `--json` (one JSON document on standard output),
`-q` (no notes, no progress) and `-v`. Bad input ends with one line and exit code 2, a failure of the machine with 1.
"""


def help_of(verb: str) -> str:
    text = StringIO()
    with redirect_stdout(text), suppress(SystemExit):
        main([verb, "--help"])
    return re.sub(r"\x1b\[[0-9;]*m", "", text.getvalue())


def pages() -> dict[str, str]:
    parts = [f"## {verb}\n\n{about}\n\n```text\n{help_of(verb).strip()}\n```\n" for verb, (_, about) in VERBS.items()]
    return {"command-line.md": HEAD + "\n" + "\n".join(parts)}
