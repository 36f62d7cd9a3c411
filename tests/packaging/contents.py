"""Whether the wheel and the sdist in a folder hold everything that works outside the repository; `contents.py dist`."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sdist_names(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def missing_from_wheel(wheel: Path) -> list[str]:
    """Files of src that the wheel does not have; caches and the like are not part of src."""
    ours = [p.relative_to(ROOT / "src") for p in (ROOT / "src").rglob("*") if p.is_file()]
    wanted = {str(p.as_posix()) for p in ours if "__pycache__" not in p.parts}
    return sorted(wanted - wheel_names(wheel))


def missing_from_sdist(sdist: Path) -> list[str]:
    """What a packager needs to build and to test."""
    src = {f"src/{name}" for name in ("unseam/__init__.py", "unseam/py.typed", "unseam_papers/__init__.py")}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "hatch_build.py", *src}
    wanted |= {"constraints.txt", "Makefile", "tests/test_house.py", "tests/packaging/core_walk.py"}
    return sorted(wanted - sdist_names(sdist))


def main() -> None:
    folder = Path(sys.argv[1])
    lost = [
        *(f"{wheel.name} lacks {name}" for wheel in folder.glob("*.whl") for name in missing_from_wheel(wheel)),
        *(f"{sdist.name} lacks {name}" for sdist in folder.glob("*.tar.gz") for name in missing_from_sdist(sdist)),
    ]
    sys.exit("\n".join(lost) if lost else None)


if __name__ == "__main__":
    main()
