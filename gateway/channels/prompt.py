"""The input line of a real terminal: edited, remembered, completed; the conversation is printed above it.

prompt_toolkit brings an event loop of its own, so all of this runs in a thread of its own:

    gateway's thread                    terminal's thread
    print_above, refresh, …     ──►     one callback after the other, in order
    entered, printed            ◄──     told through the two functions given

Only `print_above`, `refresh`, `resume` and `stop` may be called from another thread. A terminal that takes no output
holds up this thread and nothing else; one that is gone ends it.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, cast

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from gateway.channels.device import Keyboard, Sink
from gateway.channels.history import LineHistory
from gateway.channels.live import STEP_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import TextIO

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.layout.containers import AnyContainer

    from gateway.channels.live import Live

LEAVING = "Leaving when everything is answered; Ctrl-C stops what runs."
SUSPEND_S = 1.0
STYLE = Style.from_dict(
    {
        "label": "bold ansicyan",
        "status": "bold",
        "growing": "",
        "hint": "fg:ansibrightblack",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit fg:ansibrightblack",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit",
    }
)


class Prompt:
    """The terminal while a chat goes on. ``entered`` gets each line, and None when there will be no more."""

    def __init__(
        self,
        input_fd: int,
        output_fd: int,
        *,
        label: str,
        live: Live,
        history: Path | None,
        commands: Mapping[str, str],
        entered: Callable[[str | None], None],
        echo: Callable[[str], str],
        in_main: Callable[[Callable[[], None]], None],
    ) -> None:
        self._label = label
        self._live = live
        self._entered = entered
        self._echo = echo
        self._in_main = in_main
        self._closing = False
        self._stopped = False
        self._asked = False
        self._cancel_tick: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        keyboard = Keyboard(input_fd)
        self._raw = keyboard.raw_mode()
        self._sink = Sink(output_fd)
        # Not asking for the position of the cursor: not every terminal answers, and a late answer looks typed.
        stdout, term = cast("TextIO", self._sink), os.environ.get("TERM")
        self._output = Vt100_Output(stdout, self._sink.size, term, enable_cpr=False)
        self._buffer = Buffer(
            name="line",
            multiline=True,
            completer=CommandCompleter(commands),
            complete_while_typing=Condition(lambda: self._buffer.text.startswith("/")),
            history=LineHistory(history),
            accept_handler=self._accept,
            read_only=Condition(lambda: self._closing),
        )
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            style=STYLE,
            input=keyboard,
            output=self._output,
            erase_when_done=True,
        )

    def run(self, ready: Callable[[], None]) -> None:
        """In the terminal's thread, until it is stopped or the terminal is gone."""

        def begun() -> None:
            with self._guard:
                if self._stopped:
                    self._exit()
            ready()

        try:
            self._app.run(pre_run=begun, set_exception_handler=False, handle_sigint=False)
        except EOFError:
            pass
        finally:
            self._entered(None)

    def print_above(self, text: str, turn: str | None, printed: Callable[[bool], None]) -> bool:
        """Put finished lines above the input line, in place of the turn's work. False: nobody is there to do it."""

        def print_now() -> None:
            if turn is not None:
                self._live.answered(turn)
            self._print(text)
            printed(not self._sink.gone)

        return self._soon(print_now)

    def refresh(self) -> None:
        """Something changed in what is shown."""
        if not self._asked:
            self._asked = True
            self._soon(self._tick)

    def resume(self) -> None:
        """After the process was stopped and goes on: whoever had the terminal meanwhile has changed its settings."""

        def take_back() -> None:
            self._raw.__enter__()
            self._print("")

        self._soon(take_back)

    def stop(self) -> None:
        with self._guard:
            self._stopped = True
        self._soon(self._exit)

    def _soon(self, callback: Callable[[], None]) -> bool:
        loop = self._app.loop
        if loop is None:
            return False
        try:
            loop.call_soon_threadsafe(callback)
        except RuntimeError:  # closed since
            return False
        return True

    def _exit(self) -> None:
        if self._app.future is not None and not self._app.future.done():
            self._app.exit()

    def _tick(self) -> None:
        """Draw, and again soon for as long as something grows or passes."""
        self._asked = False
        self._cancel_tick()
        self._app.invalidate()
        if self._sink.gone:
            self._exit()
        if self._live.any and self._app.loop is not None:
            self._cancel_tick = self._app.loop.call_later(STEP_S, self._tick).cancel

    def _print(self, text: str) -> None:
        self._app.renderer.erase()
        self._output.write_raw(text.replace("\n", "\r\n"))
        self._output.flush()
        self._tick()

    def _accept(self, buffer: Buffer) -> bool:
        if buffer.text.strip():
            self._print(self._echo(buffer.text))
            self._entered(buffer.text)
        return False

    def _suspend(self) -> None:
        """Stop like other programs do, together with what started us (make).

        The main thread is the one that a signal to the process stops before it goes on. Sent from here, this thread
        would have taken the terminal back before the process stops.
        """
        back = threading.Event()

        def stop() -> None:
            os.kill(0, signal.SIGTSTP)
            back.set()

        self._in_main(stop)
        back.wait(SUSPEND_S)

    def _close(self) -> None:
        if not self._closing:
            self._closing = True
            self._entered(None)

    # ── what it looks like ───────────────────────────────────────────────────────────────────────────────────────────

    def _layout(self) -> Layout:
        closing, working = Condition(lambda: self._closing), Condition(lambda: self._live.any)
        search = SearchToolbar()
        line = Window(
            BufferControl(self._buffer, search_buffer_control=search.control, preview_search=True),
            height=lambda: Dimension(min=1, max=max(self._sink.size().rows // 2, 1)),
            get_line_prefix=self._prefix,
            wrap_lines=True,
            dont_extend_height=True,
        )
        rows: list[AnyContainer] = [
            ConditionalContainer(Window(FormattedTextControl(self._work), dont_extend_height=True), working),
            ConditionalContainer(line, ~closing),
            ConditionalContainer(Window(FormattedTextControl([("class:hint", LEAVING)]), height=1), closing),
            search,
            CompletionsMenu(max_height=8),
        ]
        return Layout(HSplit(rows), focused_element=line)

    def _work(self) -> StyleAndTextTuples:
        size = self._sink.size()
        drawn = self._live.drawn(size.columns, max(size.rows // 2, 1))
        return [*drawn[:-1], *((style, text.rstrip("\n")) for style, text in drawn[-1:])]

    def _prefix(self, line: int, wraps: int) -> StyleAndTextTuples:
        label = f"{self._label} "
        return [("class:label", label)] if line == wraps == 0 else [("", " " * len(label))]

    # ── what keys do ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)

        @keys.add("enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            if not self._closing:
                self._buffer.validate_and_handle()

        @keys.add("escape", "enter", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            if not self._closing:
                self._buffer.newline(copy_margin=False)

        @keys.add("c-c", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            """The signal that the key would have been, so that there is one way to be interrupted."""
            if self._buffer.text and not self._closing:
                self._buffer.reset()
            else:
                os.kill(os.getpid(), signal.SIGINT)

        @keys.add("c-d", filter=empty & ~is_searching)
        def _(event: KeyPressEvent) -> None:
            self._close()

        @keys.add("c-z", filter=~is_searching)
        def _(event: KeyPressEvent) -> None:
            run_in_terminal(self._suspend)

        return keys


class CommandCompleter(Completer):
    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if typed.startswith("/"):
            for name, about in self._commands.items():
                if f"/{name}".startswith(typed.lower()):
                    yield Completion(f"/{name}", start_position=-len(typed), display_meta=about)
