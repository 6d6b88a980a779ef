"""`python -m rayling`, and the command `rayling`: the command line of the npm package `rayling`."""

from __future__ import annotations

import os
import sys

from rayling.errors import RaylingError
from rayling.runtime import command


def main() -> None:
    """Runs the command line in place of this process."""
    try:
        line = command("cli/main", *sys.argv[1:])
    except RaylingError as error:
        sys.exit(str(error))
    os.execv(line[0], line)


if __name__ == "__main__":
    main()
