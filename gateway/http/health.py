"""Whether the process lives, and whether it can take messages in: for whoever restarts it, or sends requests elsewhere.

    /healthz   it answers. A loop that is stuck does not: whoever asks runs into their time limit, and that is the sign.
    /readyz    200 ok          it works on messages, or stands by for the gateway that does: it takes messages in
               503 unhealthy   the store does not answer; a part that matters rests after a failure; or it stood still
                               a moment ago, which a probe that came between two stalls would never see

Neither needs a token, so neither tells anything but this. Both answer within about two seconds, whatever else hangs.
"""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from gateway.http.gate import GuardedRoute, Room
from gateway.http.problems import documented
from gateway.http.shapes import HealthOut
from gateway.office import Office

router = APIRouter(route_class=GuardedRoute, tags=["gateway"])

BESIDE = frozenset({"traces", "tidy_up", "waiting"})
"""Services that messages are answered without."""
STALLED_S = 30.0
"""For so long after it has stood still it is said not to be ready."""


class ReadyOut(BaseModel):
    status: Literal["ok", "unhealthy"]
    gateway: Literal["working", "waiting"]
    """Waiting: another gateway works on the messages, and this one keeps what is handed in for it."""
    problems: list[str]
    """What is not as it should be."""


@router.get("/healthz", responses=documented(422))
async def healthz() -> HealthOut:
    """The process is there and answers."""
    return HealthOut(status="ok")


@router.get("/readyz", responses={503: {"model": ReadyOut}, **documented(422)})
async def readyz(office: Room, response: Response) -> ReadyOut:
    """It can take messages in: the store answers, nothing that matters rests, and it has not just stood still."""
    office.lag.look()
    problems = [*await store_problems(office), *service_problems(office), *loop_problems(office)]
    response.status_code = 503 if problems else 200
    return ReadyOut(
        status="unhealthy" if problems else "ok",
        gateway="waiting" if office.gateway is None else "working",
        problems=problems,
    )


async def store_problems(office: Office) -> list[str]:
    seen = await office.pulse.feel()
    return [] if seen.alive else ["the store does not answer"]


def service_problems(office: Office) -> list[str]:
    health = () if office.gateway is None else office.gateway.health()
    cared_for = [one for one in health if one.name not in BESIDE]
    resting = [one.name for one in cared_for if one.state == "resting"]
    given_up = [one.name for one in cared_for if one.given_up]
    return [
        *(f"the service {name} rests after a failure and is started again" for name in resting),
        *(f"the service {name} has given up; /v1/status tells why" for name in given_up),
    ]


def loop_problems(office: Office) -> list[str]:
    since_s, lag = office.lag.since_stall_s(), office.lag
    if since_s > STALLED_S:
        return []
    return [f"nothing went on here for {lag.stalled_s:.0f} s; that was over {since_s:.0f} s ago"]
