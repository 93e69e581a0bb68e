"""What is shown on the terminal."""

import os
import subprocess
import sys

PROGRAM = """
import sys
from attnlab.terminal import Terminal, tell
sys.stdin.read()
for show in (Terminal().print, tell, Terminal().print, tell):
    show("a line")
print("alive", file=sys.stderr)
"""


def test_a_reader_who_leaves_ends_nothing() -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    os.close(read)
    assert process.communicate(timeout=60)[1] == "alive\n"
    assert process.returncode == 0
