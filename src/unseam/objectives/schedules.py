"""How a strength changes over a run: small functions of t = step / steps in [0, 1] that return a share in [0, 1].

warm-up   min(1, t / ramp)                         Bowman et al. 2016; Sonderby et al. 2016
cyclical  min(1, frac(t cycles) / ramp)            Fu et al. 2019: 4 cycles, ramp 1/2
"""

import torch
from torch import Tensor

Number = float | Tensor


def warm_up(t: Number, ramp: Number = 0.5) -> Tensor:
    """A straight line from 0 to 1 over the first `ramp` of the run, then 1.

    >>> [warm_up(t).item() for t in (0.0, 0.25, 0.5, 1.0)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return torch.as_tensor(t / ramp).clamp(max=1.0)


def cyclical(t: Number, ramp: Number = 0.5, cycles: int = 4) -> Tensor:
    """`cycles` warm-ups, one after the other; `ramp` is the rising share of each.

    >>> [cyclical(t).item() for t in (0.0, 0.0625, 0.125, 0.2, 0.25, 1.0)]
    [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]
    """
    t = torch.as_tensor(t)
    return warm_up(torch.where(t < 1, t * cycles % 1.0, 1.0), ramp)


def constant(t: Number, ramp: Number = 0.5) -> Tensor:
    """1, all the time."""
    return torch.ones_like(torch.as_tensor(t, dtype=torch.get_default_dtype()))


SCHEDULES = {"constant": constant, "warm-up": warm_up, "cyclical": cyclical}
