"""Imports all code that decides a run's numbers: what is forked from this process runs what it was then, and was hashed.

Also libraries that most runs of text use, and that each would take a second to import.
"""

import importlib

from attnlab.runs.identity import run_modules

for name in (*run_modules(), "sacremoses", "spacy", "wandb.apis.public"):
    importlib.import_module(name)
