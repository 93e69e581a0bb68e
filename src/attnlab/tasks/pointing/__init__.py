"""Pointing: vectors in, positions of some of them out (Vinyals et al. 2015)."""

from attnlab.tasks.pointing.generators import ConvexHull, Delaunay, Sort, Tours
from attnlab.tasks.pointing.problems import Problem, Problems
from attnlab.tasks.pointing.task import Pointing

__all__ = ["ConvexHull", "Delaunay", "Pointing", "Problem", "Problems", "Sort", "Tours"]
