"""What was typed before: kept between chats for its owner only, bounded, and never a reason not to chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.channels.history import KEPT, LONGEST, LineHistory

if TYPE_CHECKING:
    from pathlib import Path


def kept(file: Path) -> list[str]:
    return [*LineHistory(file).load_history_strings()]


def test_lines_come_back_newest_first(tmp_path: Path) -> None:
    """Also those of several lines and in any alphabet; twice the same in a row counts once."""
    history = LineHistory(tmp_path / "history")
    for line in ["one", "two\nlines", "中文 \u2028", "two", "two"]:
        history.append_string(line)
    assert kept(tmp_path / "history") == ["two", "中文 \u2028", "two\nlines", "one"]


def test_what_begins_with_a_blank_is_not_kept(tmp_path: Path) -> None:
    """Neither in the file nor for this chat; nor what is blank, nor a book."""
    history = LineHistory(tmp_path / "history")
    for line in [" secret", "\tsecret", "   ", "x" * (LONGEST + 1)]:
        history.append_string(line)
    assert history.get_strings() == ["x" * (LONGEST + 1)]
    assert kept(tmp_path / "history") == []


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    """Also when it was there before with other rights. (S20)"""
    file = tmp_path / "history"
    file.touch(0o644)
    LineHistory(file).append_string("one")
    assert file.stat().st_mode & 0o777 == 0o600


def test_it_does_not_grow_for_ever(tmp_path: Path) -> None:
    """Twice as many lines as are wanted are cut to those that are."""
    file = tmp_path / "history"
    file.write_text("".join(f'"{number}"\n' for number in range(2 * KEPT + 1)))
    assert kept(file) == [str(number) for number in range(2 * KEPT, KEPT, -1)]
    assert len(file.read_text().splitlines()) == KEPT
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_broken_file_is_no_reason_not_to_chat(tmp_path: Path) -> None:
    """Halves of lines are skipped; a link, a directory and nothing at all are empty histories."""
    file = tmp_path / "history"
    file.write_bytes(b'"one"\n"tw\n7\n\xff\n"three"\n')
    assert kept(file) == ["three", "one"]
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for place in [tmp_path, tmp_path / "link", tmp_path / "no" / "such", None]:
        history = LineHistory(place)
        history.append_string("typed")
        assert history.get_strings() == ["typed"]
    assert not (tmp_path / "elsewhere").exists()
