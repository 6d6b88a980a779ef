"""Ray's side of `pnpm bench:ray`: runs one row after another, as it is told.

Reads one JSON object per line from stdin, {"row", "warmUpS", "rounds", "roundS"}, and answers each with one line on stdout,
{"rates": [units per second, one for each round]} or {"error": text}. The first line it writes says which versions run. It ends, and Ray
with it, when stdin ends. One unit of each row is what Ray's own microbenchmark calls one (ray_perf.py, Ray 2.58); rows.ts is
the other side and does the same work.
"""

import json
import os
import platform
import sys
import time

# Only answers may reach stdout: whatever Ray prints goes to stderr.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)

import numpy as np  # noqa: E402
import ray  # noqa: E402
from ray.util import placement_group, remove_placement_group  # noqa: E402

OK = b"ok"
HALF_OF_CPUS = max(1, (os.cpu_count() or 2) // 2)


@ray.remote
def small_value():
    return OK


@ray.remote
def put_small(count):
    for _ in range(count):
        ray.put(0)


@ray.remote
def put_big(count, elements):
    for _ in range(count):
        ray.put(np.zeros(elements, dtype=np.int64))


@ray.remote
def refs_inside(count):
    return [ray.put(1) for _ in range(count)]


@ray.remote
def call_all(actors, count):
    ray.get([actors[i % len(actors)].small_value.remote() for i in range(count)])


@ray.remote(num_cpus=0)
class Actor:
    def small_value(self):
        return OK

    def small_value_arg(self, _value):
        return OK

    def submit_tasks(self, count):
        ray.get([small_value.remote() for _ in range(count)])


@ray.remote
class AsyncActor:
    async def small_value(self):
        return OK

    async def small_value_arg(self, _value):
        return OK


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, servers):
        self.servers = servers

    def call_servers(self, count):
        ray.get([server.small_value.remote() for server in self.servers for _ in range(count)])

    def call_servers_with_ref(self, count):
        ref = ray.put(0)
        ray.get([server.small_value_arg.remote(ref) for server in self.servers for _ in range(count)])


class Row:
    """One call of `run` does `units` units; `actors` end with the row."""

    def __init__(self, run, units=1, actors=()):
        self.run = run
        self.units = units
        self.actors = actors


def get_calls():
    ref = ray.put(0)
    return Row(lambda: ray.get(ref))


def put_calls():
    return Row(lambda: ray.put(0))


def multi_put_calls():
    return Row(lambda: ray.get([put_small.remote(100) for _ in range(10)]), 1000)


def put_gigabytes():
    values = np.zeros(100 * 1024 * 1024, dtype=np.int64)
    return Row(lambda: ray.put(values), 0.8)


def multi_put_gigabytes():
    elements = 10 * 1024 * 1024
    return Row(lambda: ray.get([put_big.remote(10, elements) for _ in range(10)]), 8)


def tasks_and_get_batch():
    return Row(lambda: ray.get([small_value.remote() for _ in range(1000)]))


def get_10k_refs():
    ref = refs_inside.remote(10_000)
    ray.get(ref)
    return Row(lambda: ray.get(ref))


def wait_1k_refs():
    def run():
        pending = [small_value.remote() for _ in range(1000)]
        fetch = True
        for _ in range(1000):
            _ready, pending = ray.wait(pending, fetch_local=fetch)
            fetch = False

    return Row(run)


def tasks_sync():
    return Row(lambda: ray.get(small_value.remote()))


def tasks_async():
    return Row(lambda: ray.get([small_value.remote() for _ in range(1000)]), 1000)


def multi_tasks_async():
    actors = [Actor.remote() for _ in range(4)]
    return Row(lambda: ray.get([a.submit_tasks.remote(10_000) for a in actors]), 40_000, actors)


def sync(actor):
    return Row(lambda: ray.get(actor.small_value.remote()), 1, [actor])


def in_flight(actor):
    return Row(lambda: ray.get([actor.small_value.remote() for _ in range(1000)]), 1000, [actor])


def with_args(actor):
    return Row(lambda: ray.get([actor.small_value_arg.remote(i) for i in range(1000)]), 1000, [actor])


def one_to_n(actor_class):
    actors = [actor_class.remote() for _ in range(HALF_OF_CPUS)]
    client = Client.remote(actors)
    return Row(
        lambda: ray.get(client.call_servers.remote(5000)), 5000 * len(actors), [client, *actors]
    )


def n_to_n(actor_class):
    actors = [actor_class.remote() for _ in range(HALF_OF_CPUS)]
    return Row(lambda: ray.get([call_all.remote(actors, 5000) for _ in range(4)]), 20_000, actors)


def n_to_n_with_arg():
    actors = [Actor.remote() for _ in range(HALF_OF_CPUS)]
    clients = [Client.remote([actor]) for actor in actors]
    return Row(
        lambda: ray.get([client.call_servers_with_ref.remote(1000) for client in clients]),
        1000 * len(clients),
        [*clients, *actors],
    )


def placement_groups():
    def run():
        groups = [placement_group([{"custom": 0.001}]) for _ in range(100)]
        for group in groups:
            group.wait(timeout_seconds=30)
        for group in groups:
            remove_placement_group(group)

    return Row(run, 100)


ROWS = {
    "single client get calls": get_calls,
    "single client put calls": put_calls,
    "multi client put calls": multi_put_calls,
    "single client put gigabytes": put_gigabytes,
    "multi client put gigabytes": multi_put_gigabytes,
    "single client tasks and get batch": tasks_and_get_batch,
    "single client get object containing 10k refs": get_10k_refs,
    "single client wait 1k refs": wait_1k_refs,
    "single client tasks sync": tasks_sync,
    "single client tasks async": tasks_async,
    "multi client tasks async": multi_tasks_async,
    "1:1 actor calls sync": lambda: sync(Actor.remote()),
    "1:1 actor calls async": lambda: in_flight(Actor.remote()),
    "1:1 actor calls concurrent": lambda: in_flight(Actor.options(max_concurrency=16).remote()),
    "1:n actor calls async": lambda: one_to_n(Actor),
    "n:n actor calls async": lambda: n_to_n(Actor),
    "n:n actor calls with arg async": n_to_n_with_arg,
    "1:1 async-actor calls sync": lambda: sync(AsyncActor.remote()),
    "1:1 async-actor calls async": lambda: in_flight(AsyncActor.remote()),
    "1:1 async-actor calls with args async": lambda: with_args(AsyncActor.remote()),
    "1:n async-actor calls async": lambda: one_to_n(AsyncActor),
    "n:n async-actor calls async": lambda: n_to_n(AsyncActor),
    "placement group create/removal": placement_groups,
}


def rates_of(row, warm_up_s, rounds, round_s):
    """As rates.ts: a warm-up that is thrown away, then rounds of at least `round_s`, looking at the clock every tenth of a second."""
    started = time.perf_counter()
    count = 0
    while time.perf_counter() - started < warm_up_s:
        row.run()
        count += 1
    step = count // 10 + 1
    rates = []
    for _ in range(rounds):
        started = time.perf_counter()
        count = 0
        while time.perf_counter() - started < round_s:
            for _ in range(step):
                row.run()
            count += step
        rates.append(row.units * count / (time.perf_counter() - started))
    return rates


def measure(order):
    row = ROWS[order["row"]]()
    try:
        return rates_of(row, order["warmUpS"], order["rounds"], order["roundS"])
    finally:
        for actor in row.actors:
            ray.kill(actor)


def answer(value):
    answers.write(json.dumps(value) + "\n")


def main():
    # A cluster of its own, never one that is there already; with the resource that the placement groups ask for.
    ray.init(
        address="local",
        resources={"custom": 100},
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=sys.argv[1],
    )
    try:
        versions = {"ray": ray.__version__, "python": platform.python_version(), "numpy": np.__version__}
        answer({"versions": versions, "rows": list(ROWS)})
        for line in sys.stdin:
            order = json.loads(line)
            try:
                answer({"rates": measure(order)})
            except Exception as error:  # The other side decides what it means.
                answer({"error": f"{type(error).__name__}: {error}"})
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
