"""An agent that is a program: any language, one process per turn.

    stdin   {"type": "turn", "agent", "session", "texts", "history": [{"role", "text"}], "tools": […], "depth"}
    stdout  plain text: shown as it comes, the whole is the answer
       or   JSON lines, if the first line is an object with a "type":
              {"type": "text", "text"}                    a piece of the answer
              {"type": "show", "text"}                    work in progress, not part of the answer
              {"type": "tool", "id", "name", "arguments"} answered by {"type": "result", "id", "ok", "text"}
              {"type": "steering"}                        answered by {"type": "steering", "texts": […]}
              {"type": "usage", "tokens_in", "tokens_out"}
              {"type": "answer", "text"}                  the answer, in the place of all pieces
              {"type": "error", "text"}                   the end
    stderr  kept for the message, should it fail

The program works in the agent's workspace and finds nothing of goclaw's own environment but PATH, HOME, LANG and TERM.
Its input stays open for answers; with `stdin = "closed"` it ends after the first line, for programs that read all.
"""

from __future__ import annotations

import codecs
import json
import os
from typing import TYPE_CHECKING

import trio

from gateway.agents.models import clean_text
from gateway.agents.one_voice import open_nursery
from gateway.agents.processes import open_program
from gateway.agents.program_lines import Conversation
from gateway.agents.workspace import Workspace, WorkspaceError
from gateway.protocols import AgentError, AgentReply
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.agents.spec import AgentSpec
    from gateway.protocols import AgentContext, Turn

PASSED_ON = ("PATH", "HOME", "LANG", "TERM")
STDERR_KEPT = 4_000
LEFT_IN_PIPE_S = 0.5
"""How long output is read after the program has ended: a child of it may hold the pipe open for ever."""
NO_ANSWER = "The program gave no answer."


class CommandAgent:
    def __init__(self, spec: AgentSpec, workspace: Workspace, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self.can_steer = spec.steer
        self._spec = spec
        self._workspace = workspace
        self._environ = {name: environ[name] for name in PASSED_ON if name in environ}

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        try:
            workspace = self._workspace.of(turn.session.tenant)
            await workspace.prepare()
        except WorkspaceError as error:
            raise AgentError(str(error)) from None
        environ = {**self._environ, **turn.environ}
        async with open_program(self._spec.command, directory=workspace.root, environ=environ) as process:
            with context.asking(self._spec.command[0]):
                run = _Run(process, Conversation(context))
                await run.talk(self._first_line(turn, context), keep_open=self._spec.stdin == "open")
            return self._reply(turn, run)

    def _first_line(self, turn: Turn, context: AgentContext) -> dict[str, object]:
        return {
            "type": "turn",
            "agent": self._spec.name,
            "session": str(turn.session),
            "texts": list(turn.texts),
            "history": [{"role": str(line.role), "text": line.text} for line in turn.history],
            "tools": [
                {"name": tool.name, "about": tool.about, "parameters": dict(tool.parameters)} for tool in context.tools
            ],
            "depth": turn.depth,
        }

    def _reply(self, turn: Turn, run: _Run) -> AgentReply:
        code = run.process.returncode
        if code != 0:
            how = f"was ended by signal {-code}" if code is not None and code < 0 else f"failed with status {code}"
            last = run.last_words()
            raise AgentError(f"the program {self._spec.command[0]} {how}" + (f": {last}" if last else ""))
        text = clean_text(run.conversation.answer).strip()
        heard = run.conversation.heard
        said = tuple(Said(Role.USER, clean_text(words)) for words in (*turn.texts, *heard)) if heard else ()
        return AgentReply(text or NO_ANSWER, said)


class _Run:
    """One process and the three pipes between it and the gateway."""

    def __init__(self, process: trio.Process, conversation: Conversation) -> None:
        self.process = process
        self.conversation = conversation
        self._stderr = b""

    async def talk(self, first: dict[str, object], *, keep_open: bool) -> None:
        """Until the program has ended."""
        send, receive = trio.open_memory_channel[dict[str, object]](self.conversation.most_waiting)
        send.send_nowait(first)
        reading = trio.CancelScope()
        async with open_nursery() as nursery:
            nursery.start_soon(self._write, receive)
            if not keep_open:
                send.close()
            nursery.start_soon(self._stop_reading_after_the_end, reading)
            with reading:
                async with open_nursery() as pipes:
                    pipes.start_soon(self._keep_stderr)
                    await self._read(send, nursery)
            await self.process.wait()
            self.conversation.end()
            nursery.cancel_scope.cancel()

    async def _write(self, lines: trio.MemoryReceiveChannel[dict[str, object]]) -> None:
        # Of its own: a program that reads nothing holds up only what is meant for it.
        stdin = self.process.stdin
        if stdin is None:
            raise AssertionError("started with a pipe")
        try:
            async with stdin, lines:
                async for line in lines:
                    await stdin.send_all(json.dumps(line, default=str).encode("utf-8", "replace") + b"\n")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # It does not want to hear more; what it says still counts.

    async def _read(self, send: trio.MemorySendChannel[dict[str, object]], nursery: trio.Nursery) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if self.process.stdout is None:
            raise AssertionError("started with a pipe")
        async for data in self.process.stdout:
            await self.conversation.hear(decoder.decode(data), send, nursery)
        await self.conversation.hear(decoder.decode(b"", final=True), send, nursery)

    async def _stop_reading_after_the_end(self, reading: trio.CancelScope) -> None:
        await self.process.wait()
        reading.deadline = trio.current_time() + LEFT_IN_PIPE_S

    async def _keep_stderr(self) -> None:
        if self.process.stderr is None:
            raise AssertionError("started with a pipe")
        async for data in self.process.stderr:
            self._stderr = (self._stderr + data)[-STDERR_KEPT:]

    def last_words(self) -> str:
        lines = [line.strip() for line in self._stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return clean_text(lines[-1])[:300] if lines else ""
