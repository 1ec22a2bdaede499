"""Which lines of an agent's answer are commands: those that a person would not take for an example."""

from time import perf_counter

import pytest

from gateway.schedule_lines import split

LINE = "/schedule every day at 9am: look"


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{LINE}\n```",
        f"~~~\n{LINE}\n~~~",
        f"```\n~~~\n{LINE}\n```",
        f"````\n```\n{LINE}\n```\n````",
        f"```\nfirst\n```sh\n{LINE}\n```",
        f"```\n{LINE}",
        f"Write this:\n\n    {LINE}\n",
        f"Write this:\r\n\r\n```\r\n{LINE}\r\n```\r\n",
        f"- so:\n\n  ```\n  {LINE}\n  ```",
        f"> ```\n> {LINE}\n> ```",
        f"first\rsecond\r```\n{LINE}\n```",
        f"Write `{LINE}`.",
        f"> {LINE}",
    ],
)
def test_an_example_is_text(text: str) -> None:
    """Whatever the code block looks like, nothing in it is carried out and nothing of the answer is missing."""
    assert split(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (LINE, ""),
        (f"Well.\n{LINE}\nDone.", "Well.\nDone."),
        (f"Well.\r\n{LINE}\r\nDone.", "Well.\nDone."),
        (f"``` one ``` is code within a line\n{LINE}", "``` one ``` is code within a line"),
        (f"```\n{LINE}\n```\n{LINE}", f"```\n{LINE}\n```"),
        (f"~~~\n```\n~~~\n{LINE}", "~~~\n```\n~~~"),
        (f"still a paragraph\n    {LINE}", "still a paragraph"),
        (f"  {LINE}  ", ""),
    ],
)
def test_a_line_of_its_own_is_a_command(text: str, rest: str) -> None:
    """It is taken out, and what is around it stays."""
    assert split(text) == (rest, [LINE])


@pytest.mark.parametrize("text", ["[" * 100_000, "> " * 50_000, "- " * 50_000, "`" * 100_000, "    x\n" * 20_000])
def test_a_strange_answer_is_read_quickly(text: str) -> None:
    """What a stuck model writes holds nobody up."""
    began = perf_counter()
    assert split(f"{text}\n\n{LINE}")[1] in ([LINE], [])
    assert perf_counter() - began < 2
