"""Imports all code that decides a run's numbers: what is forked from this process runs what it was then, and was hashed.

Also libraries that most runs of text use, and that each would take a second to import.
"""

import importlib
import signal
import sys

# Ctrl-C is for the process that starts the runs, and ends this one too.
interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
identity, source = (importlib.import_module(f"attnlab.{name}") for name in ("runs.identity", "source"))
# spaCy asks CuPy for GPUs as soon as it finds it, and what is forked from a process that has asked cannot use CUDA.
is_hidden = "cupy" not in sys.modules
if is_hidden:
    sys.modules["cupy"] = None  # type: ignore[assignment]
source.hash_code([source.PACKAGE])  # once for all that are forked from it
for name in (*identity.run_modules(), "sacremoses", "spacy", "wandb.apis.public"):
    importlib.import_module(name)
if is_hidden:
    del sys.modules["cupy"]
signal.signal(signal.SIGINT, interrupt)
