"""What the papers show, shown again: one file an exhibit, one row here.

reproduce(EXHIBITS, ["V1"], scale="quick", out=Path("exhibits"))
"""

from unseam.exhibits.a1 import A1
from unseam.exhibits.a2 import A2
from unseam.exhibits.a3 import A3
from unseam.exhibits.a4 import A4
from unseam.exhibits.a5 import A5
from unseam.exhibits.a6 import A6
from unseam.exhibits.a7 import A7
from unseam.exhibits.a8 import A8
from unseam.exhibits.a9 import A9
from unseam.exhibits.a10 import A10
from unseam.exhibits.a11 import A11
from unseam.exhibits.base import Exhibit
from unseam.exhibits.l1 import L1
from unseam.exhibits.l2 import L2
from unseam.exhibits.run import reproduce
from unseam.exhibits.v1 import V1
from unseam.exhibits.v2 import V2
from unseam.exhibits.v3 import V3
from unseam.exhibits.z1 import Z1
from unseam.exhibits.z2 import Z2
from unseam.exhibits.z3 import Z3
from unseam.exhibits.z4 import Z4
from unseam.exhibits.z5 import Z5
from unseam.exhibits.z6 import Z6
from unseam.exhibits.z7 import Z7
from unseam.exhibits.z8 import Z8
from unseam.exhibits.z9 import Z9
from unseam.exhibits.z10 import Z10
from unseam.exhibits.z14 import Z14
from unseam.exhibits.z15 import Z15

IN_ORDER = (
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    A7,
    A8,
    A9,
    A10,
    A11,
    Z1,
    Z2,
    Z3,
    Z4,
    Z5,
    Z6,
    Z7,
    Z8,
    Z9,
    Z10,
    Z14,
    Z15,
    L1,
    L2,
    V1,
    V2,
    V3,
)
EXHIBITS: dict[str, Exhibit] = {exhibit.id: exhibit for exhibit in IN_ORDER}

__all__ = ["EXHIBITS", "Exhibit", "reproduce"]
