"""A Ray cluster of several nodes on this machine, which a test drives by lines of JSON.

Each line of standard input is a command, and each gets a line of standard output. The cluster ends
with the input.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import ray
from ray.cluster_utils import Cluster

SMALL_STORE = 80 * 1024 * 1024


def say(message):
    print(json.dumps(message), flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@ray.remote(num_cpus=1)
class Holder:
    def pid(self):
        return os.getpid()


@ray.remote(num_cpus=1)
def double(value):
    return 2 * value


@ray.remote(num_cpus=0)
class Counter:
    def __init__(self):
        self.count = 0

    def add(self, by):
        self.count += by
        return self.count


class Commands:
    def __init__(self, nodes, temp):
        self.temp = temp
        self.start(nodes)
        self.holders = []

    def start(self, nodes):
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                **self.shape(nodes[0]),
                "include_dashboard": True,
                "dashboard_port": 0,
                # The address of this cluster is there for its jobs: without it, they would take
                # the newest cluster of the machine.
                "temp_dir": os.path.join(self.temp, "ray"),
                "min_worker_port": 0,
                "max_worker_port": 0,
            },
        )
        for node in nodes[1:]:
            self.cluster.add_node(**self.shape(node))
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.added = [self.cluster.head_node, *self.cluster.worker_nodes]

    def end(self):
        ray.shutdown()
        self.cluster.shutdown()

    def shape(self, node):
        # Another cluster of the machine may have the standard port, and then no job starts here.
        port = {"dashboard_agent_listen_port": free_port()}
        return {"num_cpus": 1, "object_store_memory": SMALL_STORE, **port, **node}

    def url(self):
        return f"http://{self.cluster.head_node.webui_url}"

    def gcs(self):
        return self.cluster.address

    def add(self, node):
        self.added.append(self.cluster.add_node(**self.shape(node)))
        return self.added[-1].node_id

    def kill_raylet(self, index):
        node = self.added[index]
        for info in node.all_processes["raylet"]:
            info.process.send_signal(signal.SIGKILL)
        return node.node_id

    def hold(self, count, options=None):
        made = [Holder.options(**(options or {})).remote() for _ in range(count)]
        self.holders += made
        return ray.get([one.pid.remote() for one in made])

    def hold_later(self, count):
        """Asks for as much, and does not wait."""
        self.holders += [Holder.remote() for _ in range(count)]

    def living_holders(self):
        """How many of them have what they asked for."""
        calls = [one.pid.remote() for one in self.holders]
        ready, _ = (
            ray.wait(calls, num_returns=len(calls), timeout=0.05) if calls else ([], [])
        )
        return len(ready)

    def stop_jobs(self):
        from ray.job_submission import JobSubmissionClient

        client = JobSubmissionClient(self.url())
        for job in client.list_jobs():
            if job.submission_id is not None and str(job.status.value) == "RUNNING":
                client.stop_job(job.submission_id)

    def free(self, count):
        for one in self.holders[:count]:
            ray.kill(one)
        del self.holders[:count]

    def available(self):
        return ray.available_resources()

    def time_tasks(self, count):
        """Seconds that so many tasks of Python take, all at once."""
        start = time.perf_counter()
        values = ray.get([double.remote(one) for one in range(count)])
        assert values[-1] == 2 * (count - 1)
        return time.perf_counter() - start

    def time_calls(self, rounds, in_flight):
        """Seconds that calls of an actor in Python take, so many at a time."""
        counter = Counter.remote()
        ray.get(counter.add.remote(1))
        start = time.perf_counter()
        for _ in range(rounds):
            ray.get([counter.add.remote(1) for _ in range(in_flight)])
        taken = time.perf_counter() - start
        ray.kill(counter)
        return taken

    def nodes(self):
        return [
            {
                "id": n["NodeID"],
                "alive": n["Alive"],
                "cpus": n["Resources"].get("CPU", 0),
            }
            for n in ray.nodes()
        ]

    def groups(self):
        table = ray.util.placement_group_table()
        return [one["state"] for one in table.values() if one["state"] != "REMOVED"]

    def status(self):
        line = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "status",
            "--address",
            self.gcs(),
        ]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    def jobs(self):
        from ray.job_submission import JobSubmissionClient

        return [
            {"id": job.submission_id, "status": str(job.status.value)}
            for job in JobSubmissionClient(self.url()).list_jobs()
        ]

    def run(self, source):
        """Runs Python source; the value of its variable `answer`."""
        scope = {"ray": ray}
        exec(source, scope)
        return scope.get("answer")


class Autoscaled(Commands):
    """A head with Ray's own autoscaler, which starts nodes on this machine.

    `ray.cluster_utils.AutoscalingCluster` ends every Ray of the machine before it starts.
    """

    def __init__(self, nodes, temp, kinds):
        self.kinds = kinds
        super().__init__(nodes, temp)

    def start(self, nodes):
        [head] = nodes
        self.port, self.dashboard = free_port(), free_port()
        here = ray.util.get_node_ip_address()
        config = {
            "cluster_name": "tests",
            "max_workers": 4,
            "provider": {"type": "fake_multinode", "gcs_address": self.gcs()},
            "head_node_type": "ray.head.default",
            "available_node_types": {
                "ray.head.default": {
                    "resources": {"CPU": head["num_cpus"]},
                    "node_config": {},
                    "max_workers": 0,
                },
                **self.kinds,
            },
            "upscaling_speed": 1.0,
            "idle_timeout_minutes": 0.1,
            "auth": {},
            "file_mounts": {},
            "cluster_synced_files": [],
            "file_mounts_sync_continuously": False,
            **{
                f"{name}_commands": []
                for name in (
                    "initialization",
                    "setup",
                    "head_setup",
                    "worker_setup",
                    "head_start_ray",
                    "worker_start_ray",
                )
            },
        }
        path = os.path.join(self.temp, "autoscaling.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        line = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--head",
            "--block",
        ]
        line += [
            f"--autoscaling-config={path}",
            f"--port={self.port}",
            f"--temp-dir={self.temp}/ray",
        ]
        line += [f"--dashboard-port={self.dashboard}", f"--num-cpus={head['num_cpus']}"]
        line += [
            f"--dashboard-agent-listen-port={free_port()}",
            f"--node-ip-address={here}",
        ]
        line += [
            f"--ray-client-server-port={free_port()}",
            f"--object-store-memory={SMALL_STORE}",
        ]
        env = {
            **os.environ,
            "RAY_FAKE_CLUSTER": "1",
            "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        }
        self.process = subprocess.Popen(
            line, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((here, self.port)) == 0:
                    break
            time.sleep(0.2)
        else:
            raise RuntimeError("Ray has ended as it started")
        ray.init(address=self.gcs(), log_to_driver=False)

    def url(self):
        return f"http://127.0.0.1:{self.dashboard}"

    def gcs(self):
        return f"{ray.util.get_node_ip_address()}:{self.port}"

    def end(self):
        ray.shutdown()
        # Nodes that were added are no children of the head.
        mark = f"TMPDIR={self.temp}".encode()
        self.process.terminate()
        self.process.wait()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/environ", "rb") as file:
                    is_ours = mark in file.read().split(b"\0")
                if is_ours and int(name) != os.getpid():
                    os.kill(int(name), signal.SIGKILL)


def main():
    # The entry point of a job finds Python on PATH.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    given = json.loads(sys.argv[1])
    kinds = given.get("nodeTypes")
    if kinds is None:
        commands = Commands(given["nodes"], given["temp"])
    else:
        commands = Autoscaled(given["nodes"], given["temp"], kinds)
    say({"ok": commands.url()})
    try:
        for line in sys.stdin:
            name, *args = json.loads(line)
            try:
                say({"ok": getattr(commands, name)(*args)})
            except Exception as error:
                say({"error": f"{type(error).__name__}: {error}"})
    finally:
        commands.end()


main()
