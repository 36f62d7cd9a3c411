"""What the papers show, shown again: one file an exhibit, one row here.

reproduce(EXHIBITS, ["V1"], scale="quick", out=Path("exhibits"))
"""

from unseam.exhibits.base import Exhibit
from unseam.exhibits.run import reproduce
from unseam.exhibits.v1 import V1
from unseam.exhibits.v2 import V2
from unseam.exhibits.v3 import V3

EXHIBITS: dict[str, Exhibit] = {exhibit.id: exhibit for exhibit in (V1, V2, V3)}

__all__ = ["EXHIBITS", "Exhibit", "reproduce"]
