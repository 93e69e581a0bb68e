"""Imports all code that decides a run's numbers: what is forked from this process runs what it was then, and was hashed."""

import importlib

from attnlab.runs.identity import run_modules

for name in run_modules():
    importlib.import_module(name)
