"""What is shown on the terminal as it is: names and texts of the user's, whatever is in them."""

from typing import Any

from rich.console import Console
from rich.text import Text
from typing_extensions import override

from attnlab.errors import printable


class Terminal(Console):
    """Standard output: what a text holds is neither markup of rich nor does anything to the terminal."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)

    @override
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)
