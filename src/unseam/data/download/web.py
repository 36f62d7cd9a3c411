"""Data at an address: `https://host/table.csv` is fetched once, up to a limit, into the data folder and read there."""

from __future__ import annotations

import hashlib
import re
import urllib.parse
from pathlib import Path

from unseam.data.cache import data_folder
from unseam.data.download.fetch import DOWNLOAD_ERRORS, reason, receive
from unseam.errors import BadInput
from unseam.readers import ENDINGS, ending

_LARGEST = 1 << 30  # bytes of a table at an address
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_LETTERS = re.compile(r"[^A-Za-z0-9_.+-]")  # that stay out of the local name


def is_address(place: object) -> bool:
    """Whether this is an address of the web.

    >>> is_address("https://example.org/a.csv"), is_address("a.csv")
    (True, False)
    """
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def local_copy(place: str, where: str) -> str:
    """The file that an address names, fetched if it is not here yet; anything else is returned as it is.

    Parameters
    ----------
    place
        An http or https address of a file with a known ending, or a path or name.
    where
        The argument, for messages.

    Returns
    -------
    str
        A path in the data folder (`$UNSEAM_DATA/web`); delete it to fetch the file again.

    >>> local_copy("wine.csv", "data")
    'wine.csv'
    >>> local_copy("https://example.org/page.html", "data")
    Traceback (most recent call last):
    unseam.errors.BadInput: data='https://example.org/page.html' ends in '.html'; known are .npy, ...
    """
    if not is_address(place):
        return place
    name = _LETTERS.sub("_", urllib.parse.unquote(urllib.parse.urlsplit(place).path).rpartition("/")[2])[-100:]
    if ending(name) not in ENDINGS:
        raise BadInput(f"{where}={place!r} ends in {ending(name)!r}; known are {', '.join(ENDINGS)}")
    target = data_folder() / "web" / hashlib.sha256(place.encode()).hexdigest()[:16] / name
    if not target.is_file():
        _fetch(place, target, where)
    return str(target)


def _fetch(address: str, target: Path, where: str) -> None:
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        receive(address, part, _LARGEST, f"fetching {target.name} (MB)")
        part.replace(target)
    except DOWNLOAD_ERRORS as error:
        part.unlink(missing_ok=True)
        raise BadInput(f"{where}={address!r} cannot be fetched: {reason(error)}") from None
