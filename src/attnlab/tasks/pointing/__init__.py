"""Pointing: vectors in, positions of some of them out (Vinyals et al. 2015)."""

from attnlab.tasks.pointing.problems import Problem, Problems
from attnlab.tasks.pointing.sort import Sort
from attnlab.tasks.pointing.task import Pointing

__all__ = ["Pointing", "Problem", "Problems", "Sort"]
