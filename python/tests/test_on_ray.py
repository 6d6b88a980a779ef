"""What the gateway says to Ray: labels, refusals, places. Sessions on a real cluster are tests of packages/on-ray."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src")]

pytest.importorskip("ray", reason="Ray is not installed")

from rayling.on_ray.cluster import Cluster, Node, meets, selector  # noqa: E402
from rayling.on_ray.gateway import Gateway  # noqa: E402
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
