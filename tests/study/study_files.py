"""The grid that the tests of the room share, and what a finished study must hold byte for byte."""

from pathlib import Path

TINY = Path(__file__).parent / "tiny.toml"


def content(folder: Path) -> dict[str, bytes]:
    files = [p for p in folder.rglob("*") if p.name in ("rows.json", "codes.npy")]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}
