# python examples/python/remote_ts/main.py
"""Environments in TypeScript as Ray actors: calls, a stream, an error, a restart, a name."""

from pathlib import Path

import ray

import rayling

Guessing = rayling.remote_ts(
    Path(__file__).with_name("guessing.ts"),
    "Guessing",
    methods=["reset", "step", "crash"],
    streams=["solution"],
    max_concurrency=1,
    max_restarts=1,
)


def play(environment: ray.actor.ActorHandle, seed: int) -> float:
    """Plays one game, and returns its reward."""
    ray.get(environment.reset.remote(seed=seed))
    for guess in environment.solution.remote():
        step = ray.get(environment.step.remote(guess))
        if step["done"]:
            return float(step["reward"])
    raise AssertionError("the solution ends with the right number")


def main() -> None:
    """Plays on four actors."""
    ray.init(num_cpus=4, log_to_driver=False)
    environments = [Guessing.remote(100) for _ in range(4)]
    print([round(play(one, seed), 2) for seed, one in enumerate(environments)])

    try:
        ray.get(environments[0].step.remote(0.5))
    except rayling.TypeScriptError as error:
        print(f"{error.cause.name}: {error.cause.message}")

    try:
        ray.get(environments[1].crash.remote())
    except ray.exceptions.RayActorError:
        print("crashed")
    print("restarted:", ray.get(environments[1].reset.options(max_task_retries=-1).remote(seed=1)))

    shared = Guessing.options(name="shared", get_if_exists=True).remote(10)
    print(ray.get_actor("shared") == shared, ray.get(shared.reset.remote(seed=1)))
    ray.shutdown()


if __name__ == "__main__":
    main()
