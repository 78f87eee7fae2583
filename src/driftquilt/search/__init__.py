"""Which disparity bound in (0, 2)? Each search trains candidates and keeps every trial.

Shared  all bounds in one pass, the default
Bayes   random and guided trials, as in the paper
"""

from driftquilt.search.base import DISPARITY_RANGE, Search, Trial, best
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

__all__ = ["DISPARITY_RANGE", "Bayes", "Search", "Shared", "Trial", "best"]
