"""Exact Metropolis-Hastings from binary votes.

No web, no clock, no sockets, no global random state. Start reading at `chain.py`. What code outside this package may
use is imported in `__init__.pyi`, where type checkers and readers see it; what judges need is in `sampler.judges`.
Each name is loaded on its first use: a program that asks for little of this package starts without SciPy and RDKit.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
