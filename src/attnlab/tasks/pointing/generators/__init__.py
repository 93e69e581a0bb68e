"""Problems with exact answers, one module each: a result depends on the module of its own problem and of no other.

A module here imports no other of this folder but those of its base classes, which :mod:`attnlab.source` counts with it.
"""

from attnlab.tasks.pointing.generators.convex_hull import ConvexHull
from attnlab.tasks.pointing.generators.delaunay import Delaunay
from attnlab.tasks.pointing.generators.sort import Sort
from attnlab.tasks.pointing.generators.tours import Tours

__all__ = ["ConvexHull", "Delaunay", "Sort", "Tours"]
