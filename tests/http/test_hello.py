"""The API is there, and answers whoever has a token."""

from __future__ import annotations

from tests.http.world import open_served, problem_of


async def test_whoever_has_a_token_is_answered() -> None:
    """Its own name, tenant and scopes; without a token a problem that says what to do."""
    async with open_served() as served:
        async with served.client(await served.secret("read")) as client:
            me = (await client.get("/v1/me")).json()
            assert (me["tenant"], me["name"], me["scopes"]) == ("default", "test", ["read"])
        async with served.client() as nobody:
            answer = await nobody.get("/v1/me")
            assert answer.status_code == 401
            assert "goclaw token create" in problem_of(answer)["next"]


async def test_a_message_is_answered_over_http() -> None:
    """What was said to the agent comes back with what it answered. (P6)"""
    async with open_served() as served, served.client(await served.secret("chat")) as client:
        answer = await client.post("/v1/messages", json={"text": "hello", "wait": 30})
        assert answer.status_code == 200, answer.text
        assert "demo agent" in answer.json()["answer"]
        assert answer.json()["state"] == "done"
