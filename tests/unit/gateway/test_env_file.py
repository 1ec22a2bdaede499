"""The promises of reading a `.env` file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.env_file import Assignment, EnvFile, Unreadable, parse_env, read_env_file

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
ONE_LINE = st.text(st.characters(exclude_characters="\r\n'", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=2", "2"),
        ("  A = 2  ", "2"),
        ("export A=2", "2"),
        ("A=2 # two", "2"),
        ("A=2#two", "2#two"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A='a # b'", "a # b"),
        ("A='a' # b", "a"),
        (r"A='\n'", r"\n"),
        (r'A="a\n\"b\"\\"', 'a\n"b"\\'),
        ("A=it's", "it's"),
        ("A=$HOME/${B}", "$HOME/${B}"),
        ("A=b=c", "b=c"),
    ],
)
def test_a_line_says_what_it_seems_to_say(line: str, value: str) -> None:
    """Blanks, quotes, escapes and comments are read as people write them, and nothing is substituted."""
    assert parse_env(line) == EnvFile((Assignment("A", value, 1),))


@pytest.mark.parametrize(
    "line", ["A", "A 2", "2A=1", "=1", "A-B=1", "export A", "A='open", 'A="open', 'A="a" b', "A='"]
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    """A malformed line is reported by its number, and the lines around it are still read."""
    read = parse_env(f"FIRST=1\n\n{line}\nLAST=2\n")
    assert [one.line for one in read.unreadable] == [3]
    assert [(one.name, one.line) for one in read.assignments] == [("FIRST", 1), ("LAST", 4)]


@pytest.mark.parametrize("secret", ["A hunter2", "A='hunter2", 'A="hunter2" x'])
def test_a_line_that_cannot_be_read_is_not_repeated(secret: str) -> None:
    """What stands in a malformed line is kept out of the report: it may be a secret."""
    (fault,) = parse_env(secret).unreadable
    assert "hunter2" not in fault.expected


def test_an_open_quote_harms_its_own_line_alone() -> None:
    """A quote that nobody closed does not swallow the assignments below it."""
    read = parse_env('A="open\nB=1\nC="closed"\n')
    assert [one.name for one in read.assignments] == ["B", "C"]
    assert [one.line for one in read.unreadable] == [1]


@given(st.dictionaries(NAMES, ONE_LINE))
def test_every_quoted_line_comes_back(values: dict[str, str]) -> None:
    """Whatever stands on one line in single quotes is read back as it is."""
    read = parse_env("".join(f"{name}='{value}'\n" for name, value in values.items()))
    assert {one.name: one.value for one in read.assignments} == values
    assert not read.unreadable


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_editors_count_them(newline: str) -> None:
    """Files from any system are split and numbered alike."""
    read = parse_env(newline.join(["# comment", "", "A=1", "B=2"]))
    assert read.assignments == (Assignment("A", "1", 3), Assignment("B", "2", 4))


def test_no_file_is_an_empty_file(tmp_path: Path) -> None:
    """A directory without `.env` is nothing to complain about."""
    assert read_env_file(tmp_path / ".env") == EnvFile()


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    """A file saved with a byte order mark is read like any other."""
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfA=1\n")
    assert read_env_file(tmp_path / ".env").assignments == (Assignment("A", "1", 1),)


def test_text_in_another_encoding_is_named_by_line(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported with their line."""
    (tmp_path / ".env").write_bytes("A=1\nB=ä\n".encode("latin-1"))
    assert read_env_file(tmp_path / ".env").unreadable == (Unreadable(2, "UTF-8 text"),)


def test_a_directory_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    """Something that cannot be opened as a file is reported with the system's reason."""
    (tmp_path / ".env").mkdir()
    (fault,) = read_env_file(tmp_path / ".env").unreadable
    assert fault.line is None
    assert "Is a directory" in fault.expected
