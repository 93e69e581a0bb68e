"""Links as files hold them: the Pharaoh and the talp format."""

import pytest

from attnlab.data.pharaoh import Gold, check_inside, format_links, parse_links, transpose
from attnlab.errors import UserError


def test_formats_there_and_back() -> None:
    assert parse_links("1-1 2p3 10-2", base=1) == Gold({(0, 0), (9, 1)}, {(0, 0), (1, 2), (9, 1)})
    links = {(2, 0), (0, 1), (10, 3)}
    assert format_links(links) == "0-1 2-0 10-3"
    assert format_links(links, base=1) == "1-2 3-1 11-4"
    assert parse_links(format_links(links, base=1), base=1).sure == links
    assert parse_links("").sure == set()
    assert transpose(links) == {(0, 2), (1, 0), (3, 10)}


@pytest.mark.parametrize(
    ("line", "base", "message"),
    [
        ("0-0 1:1", 0, "file, line 1: '1:1' is no link"),
        ("0-1", 1, "file, line 1: '0-1' counts from 0, not from 1"),
        ("-1-0", 0, "'-1-0' is no link"),
        (f"{'9' * 5000}-0", 0, "is no link"),
        ("²-0", 0, "is no link"),
    ],
)
def test_what_is_no_link_is_told(line: str, base: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_links(line, base=base, place="file, line 1")


def test_links_past_the_end_are_told_as_the_file_counts() -> None:
    check_inside({(0, 0), (1, 2)}, 2, 3, place="file, line 1")
    with pytest.raises(UserError, match=r"source position 3 is linked to target position 1, counted from 1, but there are 2"):
        check_inside({(0, 0), (2, 0)}, 2, 3, place="file, line 1", base=1)
