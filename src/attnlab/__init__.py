"""attnlab: which attention, and why? A framework to compare attention mechanisms in sequence-to-sequence translation."""

from importlib.metadata import version

__version__ = version("attnlab")
