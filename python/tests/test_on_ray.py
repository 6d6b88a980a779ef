"""What the gateway says to Ray: labels, refusals, places. Sessions on a real cluster are tests of packages/on-ray."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src")]

ray = pytest.importorskip("ray", reason="Ray is not installed")

from ray._private.runtime_env.working_dir import upload_working_dir_if_needed  # noqa: E402

from rayling.on_ray import serving  # noqa: E402
from rayling.on_ray.cluster import Cluster, Node, meets, selector  # noqa: E402
from rayling.on_ray.foreign import Foreign  # noqa: E402
from rayling.on_ray.gateway import Gateway  # noqa: E402
from rayling.on_ray.reservations import RefusedError, Reservations  # noqa: E402
from rayling.wire import values  # noqa: E402

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


SHOP = """
import asyncio, decimal
import ray

class Shop:
    def __init__(self):
        self.sold = 0

    def sell(self):
        self.sold += 1
        return self.sold

    def upto(self, end):
        for one in range(end):
            yield one

    def upto_failing(self, end):
        for one in range(end):
            yield one
        raise ValueError("sold out")

    def back(self, text):
        return eval(text)

    def stop(self):
        raise StopIteration(5)

    def odd(self):
        class Odd(Exception):
            def __init__(self, one, two):
                super().__init__(one)
        raise Odd(1, 2)

class Stall:
    async def upto(self, end):
        for one in range(end):
            await asyncio.sleep(0)
            yield one

    async def wait(self):
        await asyncio.Event().wait()
"""


class Driver:
    """What a driver asks of the actors of a real Ray."""

    def __init__(self, folder: str) -> None:
        self.foreign = Foreign()
        self.folder = folder
        self._made = 0
        self._called = 0

    async def make(self, path: str, **options: Any) -> tuple[str, dict[str, Any]]:
        self._made += 1
        actor_id = f"actor-{self._made}"
        made = {"path": path, "options": {"num_cpus": 0, **options}, "args": NOTHING}
        given = {"actorId": actor_id, "workingDir": self.folder, **made}
        return actor_id, await self.foreign.create(given)

    def made(self, path: str, **options: Any) -> str:
        actor_id, answer = asyncio.run(self.make(path, **options))
        assert answer == ok(None)
        return actor_id

    async def find(self, name: str) -> str:
        actor_id = f"found-{name}"
        await self.foreign.find({"actorId": actor_id, "name": name})
        return actor_id

    def call(self, actor_id: str, method: str, *args: Any) -> asyncio.Task[dict[str, Any]]:
        self._called += 1
        sent = {"value": [list(args), {}], "buffers": []}
        given = {"actorId": actor_id, "method": method, "args": sent}
        return asyncio.ensure_future(self.foreign.call({"callId": str(self._called), **given}))

    async def cancel_last(self) -> dict[str, Any]:
        return await self.foreign.cancel({"callId": str(self._called), "recursive": True})


@pytest.fixture(scope="module")
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver on a small Ray, with a folder whose modules this process cannot import."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP)
    (folder / "leaves.py").write_text("import sys\nsys.exit(2)\n")
    (folder / "breaks.py").write_text("import os\nos._exit(3)\n")
    there = os.environ.get("RAY_ADDRESS")
    size = {} if there else {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    ray.init(address=there, namespace="shop", log_to_driver=False, include_dashboard=False, **size)
    brought = upload_working_dir_if_needed({"working_dir": str(folder)}, include_gitignore=True)
    yield Driver(brought["working_dir"])
    ray.shutdown()


def ok(value: Any) -> dict[str, Any]:
    return {"ok": {"value": value, "buffers": []}}


def why(answer: dict[str, Any]) -> tuple[str, str]:
    return answer["failure"]["kind"], answer["failure"]["type"]


@pytest.fixture(scope="module")
def shop(on_ray: Driver) -> str:
    return on_ray.made("shop:Shop", name="corner")


@pytest.fixture(scope="module")
def stall(on_ray: Driver) -> str:
    return on_ray.made("shop:Stall")


def test_generators_of_classes_that_only_the_cluster_can_import(
    on_ray: Driver, shop: str, stall: str
) -> None:
    async def asked() -> None:
        # Another session has made it: nothing is known but its name.
        later = Driver(on_ray.folder)
        found = await later.find("corner")
        for one, of in ((on_ray, shop), (later, found)):
            assert await one.call(of, "upto", 3) == ok([0, 1, 2])
            assert why(await one.call(of, "upto_failing", 1)) == ("thrown", "ValueError")
        sold = [later.call(found, "sell") for _ in range(5)]
        assert await asyncio.gather(*sold) == [ok(count) for count in range(1, 6)]
        assert await on_ray.call(stall, "upto", 2) == ok([0, 1])

    asyncio.run(asked())


def test_what_an_actor_gives_arrives_as_it_is_or_says_why_not(on_ray: Driver, shop: str) -> None:
    async def asked() -> None:
        for text in ("{'$': ['i', '5']}", "[{'a': {'$': []}}]", "'$'"):
            told = await on_ray.call(shop, "back", text)
            assert values.decode(told["ok"]["value"], []) == eval(text)
        assert why(await on_ray.call(shop, "stop")) == ("thrown", "StopIteration")
        odd = await on_ray.call(shop, "odd")
        assert why(odd) == ("thrown", "UnserializableException")
        assert "in odd" in odd["failure"]["traceback"]
        formless = await on_ray.call(shop, "back", "decimal.Decimal(1)")
        assert why(formless) == ("thrown", "TypeError")
        assert "what it returned: the value is a Decimal" in formless["failure"]["message"]
        assert why(await on_ray.call(shop, "__init__")) == ("method", "AttributeError")

    asyncio.run(asked())


def test_a_cancelled_call_is_over_and_its_actor_goes_on(on_ray: Driver, stall: str) -> None:
    async def asked() -> None:
        waiting = on_ray.call(stall, "wait")
        await asyncio.sleep(0)
        assert await on_ray.cancel_last() == ok(None)
        assert why(await waiting) == ("cancelled", "TaskCancelledError")
        assert await on_ray.call(stall, "upto", 1) == ok([0])
        # It has its answer.
        assert await on_ray.cancel_last() == ok(None)

    asyncio.run(asked())


def test_a_module_that_ends_its_process_ends_no_other_actor(on_ray: Driver, shop: str) -> None:
    async def asked() -> None:
        before = (await on_ray.call(shop, "sell"))["ok"]["value"]
        _, left = await on_ray.make("leaves:Shop")
        assert why(left) == ("thrown", "RaylingError")
        assert "leaves exits when it is imported: SystemExit(2)" in left["failure"]["message"]
        _, broken = await on_ray.make("breaks:Shop")
        assert why(broken) == ("died", "ActorDiedError")
        assert await on_ray.call(shop, "sell") == ok(before + 1)
        # The next actor has a new maker.
        [maker] = [one for (_, of), one in on_ray.foreign._makers.items() if of == "shop"]
        ray.kill(maker)
        other, made = await on_ray.make("shop:Shop")
        assert made == ok(None)
        assert await on_ray.call(other, "sell") == ok(1)

    asyncio.run(asked())


NOTHING = {"value": [[], {}], "buffers": []}
