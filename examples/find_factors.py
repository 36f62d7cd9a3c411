"""Three unlabelled factors in twelve columns of very different scale: one call, and what it says of itself."""

import numpy as np
import pandas as pd

import unseam

g = np.random.default_rng(0)
factors = g.uniform(-1, 1, (1000, 3))
table = pd.DataFrame(factors @ g.normal(size=(3, 12)) + 0.05 * g.normal(size=(1000, 12)))
table = (table * 10.0 ** g.integers(-3, 4, 12)).add_prefix("sensor")

found = unseam.find(table, factors=factors)  # the factors only score; leave them out with your own data
print(found)
