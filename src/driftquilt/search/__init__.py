"""Which disparity bound? Each search trains candidates and keeps every trial.

Shared      all bounds in one pass, the default
Bayes       random and guided trials, as in the paper
Everything  no bound: one training on all data
"""

from driftquilt.search.base import DISPARITY_RANGE, Everything, Search, Trial, best
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

__all__ = ["DISPARITY_RANGE", "Bayes", "Everything", "Search", "Shared", "Trial", "best"]
