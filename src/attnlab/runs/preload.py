"""Imports all code that decides a run's numbers: what is forked from this process runs what it was then, and was hashed.

Also libraries that most runs of text use, and that each would take a second to import.
"""

import importlib
import sys

from attnlab.runs.identity import run_modules
from attnlab.source import PACKAGE, hash_code

# spaCy asks CuPy for GPUs as soon as it finds it, and what is forked from a process that has asked cannot use CUDA.
is_hidden = "cupy" not in sys.modules
if is_hidden:
    sys.modules["cupy"] = None  # type: ignore[assignment]
hash_code([PACKAGE])  # once for all that are forked from it
for name in (*run_modules(), "sacremoses", "spacy", "wandb.apis.public"):
    importlib.import_module(name)
if is_hidden:
    del sys.modules["cupy"]
