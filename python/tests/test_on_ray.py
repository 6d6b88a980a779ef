"""What the gateway says to Ray: labels, refusals, places. Sessions on a real cluster are tests of packages/on-ray."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src")]

pytest.importorskip("ray", reason="Ray is not installed")

from rayling.on_ray.cluster import Cluster, Node, meets, selector  # noqa: E402
from rayling.on_ray.gateway import Gateway  # noqa: E402
from rayling.on_ray import serving  # noqa: E402
from rayling.on_ray.reservations import RefusedError, Reservations  # noqa: E402

pytestmark = pytest.mark.ray


def node(name: str, cpus: float = 2, free: float | None = None, **labels: str) -> Node:
    resources = {"CPU": cpus}
    available = {"CPU": cpus if free is None else free}
    return Node(name, True, name, "host", "127.0.0.1", resources, available, labels, "")


def demand(strategy: dict[str, Any], *selectors: Any, cpus: float = 1) -> dict[str, Any]:
    return {"hold": {"CPU": cpus}, "strategy": strategy, "selectors": list(selectors)}


def reservations(*nodes: Node) -> Reservations:
    cluster = Cluster(lambda _: None)
    cluster.nodes = list(nodes)
    return Reservations(cluster, lambda _name, _nodes: None)


@pytest.mark.parametrize(
    ("conditions", "expected", "met"),
    [
        ({"zone": {"in": ["a"]}}, {"zone": "a"}, ["first"]),
        ({"zone": {"in": ["a", "b"]}}, {"zone": "in(a,b)"}, ["first", "second"]),
        ({"zone": {"notIn": ["a"]}}, {"zone": "!a"}, ["second", "third"]),
        ({"zone": {"notIn": ["a", "b"]}}, {"zone": "!in(a,b)"}, ["third"]),
        ({"zone": {"exists": True}}, {"ray.io/node-id": "in(first,second)"}, ["first", "second"]),
        ({"zone": {"doesNotExist": True}}, {"ray.io/node-id": "third"}, ["third"]),
        ({"disk": {"exists": True}}, {"ray.io/node-id": "none"}, []),
    ],
)
def test_conditions_are_rays_label_selectors(
    conditions: Any, expected: dict[str, str], met: list[str]
) -> None:
    nodes = [node("first", zone="a"), node("second", zone="b"), node("third")]
    assert selector(conditions, nodes) == expected
    assert [one.id for one in nodes if meets(one, conditions)] == met


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"kind": "NODE_AFFINITY", "nodeId": "gone", "soft": False}, "is gone or never existed"),
        ({"kind": "NODE_AFFINITY", "nodeId": "first", "soft": False}, r"\(4 CPU of 2\)"),
    ],
)
def test_a_node_that_can_never_do_is_refused(strategy: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        asyncio.run(reservations(node("first")).reserve("r", demand(strategy, cpus=4)))


def test_what_holds_nothing_gets_one_node_after_the_other() -> None:
    async def picked() -> list[str | None]:
        nothing = demand({"kind": "DEFAULT"}, cpus=0)
        all_ = reservations(node("first"), node("second"))
        return [await all_.reserve(str(index), nothing) for index in range(4)]

    assert asyncio.run(picked()) == ["first", "second", "first", "second"]


def test_what_holds_nothing_goes_where_its_labels_are() -> None:
    async def picked() -> str | None:
        there = demand(
            {"kind": "DEFAULT"}, {"zone": {"in": ["c"]}}, {"zone": {"in": ["b"]}}, cpus=0
        )
        return await reservations(node("first"), node("second", zone="b")).reserve("r", there)

    assert asyncio.run(picked()) == "second"


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(Exception, match="no operation 'dance'"):
        asyncio.run(Gateway(lambda _: None).do("dance", {}))


class Answering:
    """A gateway that knows one operation: it returns as many letters as it is asked for."""

    def __init__(self, _: Any) -> None:
        """Needs nothing."""

    async def open(self) -> None:
        """Does nothing."""

    def watching(self) -> list[Any]:
        """Returns what lasts as long as the driver."""
        return [asyncio.Event().wait()]

    async def do(self, _: str, given: Any) -> str:
        """Answers."""
        return "x" * int(given["length"])

    async def close(self) -> None:
        """Does nothing."""


@contextlib.asynccontextmanager
async def driver() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connects to a gateway."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serving.Connection(reader, writer).serve()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1000)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert json.loads(await reader.readline())["event"] == "welcome"
        yield reader, writer
        writer.close()


def test_an_answer_that_is_too_long_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "Gateway", Answering)
    monkeypatch.setattr(serving, "_LONGEST_ANSWER", 500)

    async def asked() -> list[Any]:
        async with driver() as (reader, writer):
            answers = []
            for number, length in enumerate([1000, 5]):
                request = {"id": number, "op": "letters", "with": {"length": length}}
                writer.write(f"{json.dumps(request)}\n".encode())
                answers.append(json.loads(await reader.readline()))
            return answers

    long, short = asyncio.run(asked())
    assert long["id"] == 0
    assert "the answer has 1020 bytes, and may have 500" in long["error"]["message"]
    assert short == {"id": 1, "ok": "xxxxx"}


@pytest.mark.parametrize("sent", [b"x" * 2000, b"no JSON\n"])
def test_a_line_that_cannot_be_read_ends_the_gateway_and_the_log_says_so(
    sent: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving, "Gateway", Answering)

    async def ended() -> bytes:
        async with driver() as (reader, writer):
            writer.write(sent)
            return await reader.read()

    asyncio.run(ended())
    assert "a line of the driver cannot be read" in capsys.readouterr().err
