"""`python -m rayling.on_ray`: serves one TypeScript driver, and ends with it."""

from __future__ import annotations

import argparse
import asyncio
import sys

from rayling.on_ray.serving import DriverGoneError, Listening, serve


def main() -> None:
    """Reads the flags, connects to Ray, and serves the driver until it is gone."""
    flags = argparse.ArgumentParser(prog="python -m rayling.on_ray", description=__doc__)
    flags.add_argument(
        "--token-sha256",
        required=True,
        help="the SHA-256 of the token that the driver shows, in hexadecimal digits",
    )
    flags.add_argument("--namespace", default="", help="the namespace of named actors")
    flags.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        help="seconds without an answer of the driver's machine after which it counts as gone",
    )
    flags.add_argument(
        "--reach",
        choices=["unix", "loopback", "tls"],
        default="loopback",
        help="how the driver reaches this: on this machine, or from another one by TLS",
    )
    given = flags.parse_args()
    listening = Listening(given.token_sha256, given.namespace, given.timeout, given.reach)
    try:
        asyncio.run(serve(listening))
    except DriverGoneError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
