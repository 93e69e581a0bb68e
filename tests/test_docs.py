"""The page of all components is what the classes say now."""

import runpy

import pytest

from attnlab.cli import CONF as INSTALLED
from conftest import CONF, ROOT, options

MADE = runpy.run_path(str(ROOT / "docs" / "components.py"))


def test_the_page_is_up_to_date() -> None:
    assert INSTALLED.samefile(CONF)
    written = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    assert written == MADE["page"](), "run make docs"


@pytest.mark.parametrize("group", list(MADE["SECTIONS"]))
def test_every_component_tells_what_it_computes(group: str) -> None:
    """A class whose docstring gives no equation, or an option that is left out, would make an empty cell."""
    for option in options(group):
        cells = MADE["row"](group, option)
        assert all(cell for index, cell in enumerate(cells) if index != 2), cells  # not everything has a source
        if group not in ("attention", "decoder/initial_state") and option != "none":
            assert "=" in cells[1] or group in ("attention/window", "auxiliary"), cells
