"""What a person sees of a terminal: enough of one to follow what prompt_toolkit and our own output write."""

from __future__ import annotations

import re

from rich.cells import cell_len

PIECE = re.compile(r"\x1b\[(?P<given>[?0-9;]*)(?P<what>[A-Za-z])|\x1b[=>]|(?P<char>(?s:.))")


class Glass:
    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.x = self.y = 0
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    def feed(self, text: str) -> None:
        text, self._rest = self._rest + text, ""
        if cut := re.search(r"\x1b(\[[?0-9;]*)?\Z", text):  # the rest comes with the next piece
            text, self._rest = text[: cut.start()], cut.group()
        for piece in PIECE.finditer(text):
            if piece["char"] is not None:
                self._char(piece["char"])
            elif piece["what"] is not None:
                self._move(piece["what"], piece["given"])

    def _char(self, char: str) -> None:
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self.y += 1
            self.rows += [[] for _ in range(self.y + 1 - len(self.rows))]
        elif char == "\b":
            self.x = max(self.x - 1, 0)
        else:
            self._put(char)

    def _put(self, char: str) -> None:
        if self.x + cell_len(char) > self.columns:
            self._char("\r")
            self._char("\n")
        row = self.rows[self.y]
        row += [" "] * (self.x + cell_len(char) - len(row))
        row[self.x : self.x + cell_len(char)] = [char, ""][: cell_len(char)]
        self.x += cell_len(char)

    def _move(self, what: str, given: str) -> None:
        number = int(given) if given.isdigit() else 1
        if what == "A":
            self.y = max(self.y - number, 0)
        elif what == "B":
            self.y = min(self.y + number, len(self.rows) - 1)
        elif what == "C":
            self.x = min(self.x + number, self.columns - 1)
        elif what == "D":
            self.x = max(self.x - number, 0)
        elif what in "JK":
            del self.rows[self.y][self.x :]
            if what == "J":
                del self.rows[self.y + 1 :]
