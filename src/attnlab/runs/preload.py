"""Imports all code that decides a run's numbers: what is forked from this process runs what it was then, and was hashed.

Also spaCy, by which most runs of text split words, and which would take each of them a second.
"""

import importlib

from attnlab.runs.identity import run_modules

for name in (*run_modules(), "spacy"):
    importlib.import_module(name)
