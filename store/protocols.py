"""How the store is asked: domain verbs, each one transaction, each with its promise.

Expected refusals are values: a duplicate, a message that was stopped meanwhile, an owner whose lease is over. When a
`StoreError` is raised the verb was not carried out, or nobody knows whether it was; one that is retriable may be called
again as it is, and has its effect once.

    StoreError              code, fields, retriable
    ├── StoreUnavailable    the disk is full, the server is away, it took too long: try again
    ├── RuleBroken          what was to be written breaks a rule, and nothing was changed
    └── CannotOpen          it cannot be used at all: the message says what to do
        └── InUse           somebody else has it, perhaps only for a moment
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta

    from store.cron_protocol import CronStore
    from store.pairing import Knock, Pairing, Sender
    from store.records import (
        Address,
        ApiToken,
        Beat,
        Cursor,
        Incoming,
        Lease,
        Line,
        MachineSnapshot,
        Message,
        MessageState,
        NewToken,
        Note,
        OwnKey,
        Reading,
        Receipt,
        Reply,
        Said,
        Session,
        SessionKey,
        SessionPolicy,
        Standing,
        Tenant,
        Tidied,
        Worker,
        WorkerStatus,
    )

POLL = "poll"
"""What a listener hears first, and again whenever it may have missed something: look for yourself."""
INBOX = "inbox"
"""Somebody who does not work on messages has handed one in."""
OUTBOX = "outbox"
"""Somebody who does not send replies has put one there."""


class StoreError(Exception):
    """The store could not do it. ``retriable`` tells whether trying again may help."""

    code = "store"

    def __init__(self, message: str, *, retriable: bool = True, **fields: object) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.fields = fields


class StoreUnavailable(StoreError):
    """Not now: nothing was changed, or nobody knows."""

    code = "store-unavailable"


class RuleBroken(StoreError):
    """What was to be written breaks a rule of the store; nothing was changed."""

    code = "rule-broken"

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message, retriable=False, **fields)


class CannotOpen(StoreError):
    """The store cannot be used: the message says why and what to do."""

    code = "cannot-open"

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message, retriable=False, **fields)


class InUse(CannotOpen):
    """Another process has it. ``owner`` says which."""

    code = "in-use"


class MessageStore(Protocol):
    """Inbox and outbox, as the holder of a lease sees them.

    Without the lease, or when it is over, only `accept` without a cursor, `standings` and `states` work. Every other
    verb then changes nothing and answers as if there were nothing to do: no messages, no replies, False.
    """

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        """All of the batch is kept when this returns, in order, and the cursor with it, in one write.

        What was delivered before leads to its old row. None, and nothing is kept, if a cursor came without the lease.
        """

    async def cursor(self, channel: str, account: str) -> int | None:
        """How far this channel was read; None if it never was."""

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        """Those of the messages that run in this turn now. Left out is what was stopped or begun by another turn."""

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        """Bring the turn's messages to their end, its notes into the outbox and what was said into the transcript.

        All of it or nothing. False, and nothing is written, if none of the messages was still open for this turn: a
        stop came first. An empty turn settles what has never begun. ``context`` becomes the session's figure.
        """

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        """Stop the open messages of the session up to that id for ever; returns them as they were. Commands go on.

        ``sender`` and ``only`` narrow it to one person's messages, or to these.
        """

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        """What runs in this turn waits again, as if it had not begun: a shutdown costs no attempt."""

    async def resume(self) -> tuple[Message, ...]:
        """After a start: everything open, in order. What was running waits again, its attempt counted."""

    async def waiting(self) -> tuple[Message, ...]:
        """Everything accepted that does not run, in order: what others have handed in is among it."""

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        """How the messages of each of these sessions are to be treated."""

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        """How the messages of these deliveries are. Left out is what was never delivered, or is forgotten."""

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        """What is still to be sent, but for these addresses: urgent replies first, then in order."""

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        """Remember how much of a reply the channel has, so that a restart goes on there; parts never become fewer."""

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        """The channel has all of it, or ``failed`` tells why it never will; it leaves the outbox.

        A cron run that said it is told which. False if it was not there any more.
        """


class SessionStore(Protocol):
    """Transcripts and the policies of single conversations."""

    async def session(self, key: SessionKey) -> Session | None:
        """What is kept of this conversation; None if nothing is."""

    async def sessions(self, tenant: str, *, limit: int = 100, after: str = "") -> tuple[Session, ...]:
        """The tenant's sessions by their text forms, from the one after ``after`` on."""

    async def set_policy(self, key: SessionKey, policy: SessionPolicy, only: Collection[str] | None = None) -> Session:
        """From the next message on the conversation is treated like this.

        With ``only``, the names of some of its fields, the others stay as they are then: whoever sets something else
        at the same time takes nothing back.
        """

    async def remember(self, key: SessionKey, said: Sequence[Said]) -> int:
        """Add lines to the transcript in one write; returns the number of the newest."""

    async def transcript(self, key: SessionKey, *, after: int = 0, limit: int = 100) -> tuple[Line, ...]:
        """Lines in order, from the first one after that number on."""

    async def newest(self, key: SessionKey, limit: int) -> tuple[Line, ...]:
        """The last lines, in order."""

    async def trim(self, key: SessionKey, upto: int) -> int:
        """Forget the lines up to that number; returns how many went."""

    async def forget(self, key: SessionKey) -> bool:
        """Policy, figure and transcript are gone, its messages and replies are not. False if nothing was kept."""


class TenantStore(Protocol):
    """Tenants and their API tokens. `default` is always there."""

    async def create_tenant(self, tenant: str, name: str = "", zone: str = "UTC") -> bool:
        """Make room for a tenant; False if it was there before, which changes nothing."""

    async def tenant(self, tenant: str) -> Tenant | None:
        """What is known of it."""

    async def tenants(self) -> tuple[Tenant, ...]:
        """All of them, by id."""

    async def enable_tenant(self, tenant: str, enabled: bool) -> bool:
        """Switch it on or off; False if there is no such tenant."""

    async def edit_tenant(self, tenant: str, *, name: str | None = None, zone: str | None = None) -> bool:
        """Call it something else, or put it into another zone; what is None stays. False if there is no such tenant."""

    async def delete_tenant(self, tenant: str) -> bool:
        """The tenant and everything it owns are gone. False if there was none; `default` stays (`RuleBroken`)."""

    async def add_token(self, token: NewToken) -> bool:
        """Keep a token. False, and nothing is kept, if its id or digest is taken."""

    async def token_for(self, digest: str) -> ApiToken | None:
        """The token with this digest if it is good now and its tenant is enabled; its use is noted to the minute."""

    async def tokens(self, tenant: str) -> tuple[ApiToken, ...]:
        """The tenant's tokens by id, those included that are good for nothing any more."""

    async def revoke_token(self, tenant: str, token: str) -> bool:
        """From now on it opens nothing. False if this tenant has no such token, or it was revoked before."""

    async def note_key(self, tenant: str, key: str, meaning: str) -> str:
        """What this key means in this tenant: whatever it was noted with first. Remembered for `REMEMBER_KEYS`."""


class PairingStore(Protocol):
    """Who was let in without standing on a list. `store.pairing` has the rules."""

    async def allowed(self, who: Sender) -> str | None:
        """The tenant that has let them in; None if none has, or it is switched off."""

    async def knock(self, knock: Knock) -> bool:
        """Somebody asks to be let in. False, and nothing is kept: they have a code, or were let in or turned away
        lately, or too many knock at this account, or the digest is taken. The same knock again is the same."""

    async def knocks(self) -> tuple[Pairing, ...]:
        """Those who knock and those who were turned away lately, by sender. They belong to no tenant."""

    async def pairings(self, tenant: str) -> tuple[Pairing, ...]:
        """Those whom this tenant has let in, by sender."""

    async def approve(self, digest: str, tenant: str, by: str) -> Pairing | None:
        """Let in whoever was shown this code, and spend it. None if it is nobody's, spent or too old."""

    async def deny(self, who: Sender, by: str) -> bool:
        """Turn them away: for a day they are not heard. False if they do not knock."""

    async def dismiss(self, tenant: str | None, who: Sender) -> bool:
        """Forget whom this tenant has let in; without one, somebody who knocks or was turned away. False if none."""


class WorkerStore(Protocol):
    """Who works on this store, how the machines are, and who may do what alone."""

    async def beat(
        self, worker: str, status: WorkerStatus, *, run: str = "", context: Mapping[str, object] | None = None
    ) -> None:
        """The worker is there; the first beat introduces it."""

    async def leave(self, worker: str) -> bool:
        """The worker ends in good order and is not listed any more. False if it was not."""

    async def workers(self) -> tuple[Worker, ...]:
        """Those that have not left, by id."""

    async def beats(self, worker: str, limit: int = 10) -> tuple[Beat, ...]:
        """A worker's signs of life, newest first."""

    async def record(self, reading: Reading) -> None:
        """Keep what the machine looked like."""

    async def readings(self, limit: int = 60) -> tuple[MachineSnapshot, ...]:
        """What the machines looked like, newest first."""

    async def acquire(self, name: str, owner: str, span: timedelta) -> Lease | None:
        """The lease, under a new token, if nobody else holds it. An owner who asks again ends its own older one."""

    async def renew(self, lease: Lease, span: timedelta) -> Lease | None:
        """The same lease for longer; None if it is over, and then it stays over."""

    async def release(self, lease: Lease) -> bool:
        """Let somebody else have it at once. False if it was over."""

    async def lease(self, name: str) -> Lease | None:
        """Who holds it now."""


class Store(SessionStore, TenantStore, PairingStore, WorkerStore, Protocol):
    """Everything that is kept, in one place."""

    @property
    def cron(self) -> CronStore:
        """Jobs, what fires them, and what came of it."""

    def messages(self, lease: Lease | None) -> MessageStore:
        """Inbox and outbox for whoever holds this lease."""

    def listen(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """What happens elsewhere: `POLL` at once and after every gap, then words like `INBOX`, equal ones joined."""

    async def tidy(self) -> Tidied:
        """Remove some of what is older than it needs to be; call again while there was something."""
