# python examples/python/open/main.py
"""A TypeScript class in a child process: NumPy arrays in and out, a stream, errors, asyncio."""

import asyncio
import logging
from pathlib import Path

import numpy as np

import rayling

MODULE = Path(__file__).with_name("similarity.ts")


def main() -> None:
    """Calls that block."""
    numbers = np.random.default_rng(7)
    references = numbers.standard_normal((100, 32), dtype=np.float32)
    with rayling.open(MODULE, "Similarity", references) as similarity:
        print(similarity.score(references[:3]))
        print([round(score, 2) for score in similarity.stream(-references[:3])])
        try:
            similarity.score(numbers.standard_normal((1, 16), dtype=np.float32))
        except rayling.TypeScriptError as error:
            print(str(error).splitlines()[0])
    asyncio.run(at_once(references))


async def at_once(references: np.ndarray) -> None:
    """Calls for asyncio, many at a time."""
    async with rayling.open_async(MODULE, "Similarity", references) as similarity:
        parts = np.array_split(references, 10)
        scores = await asyncio.gather(*[similarity.score(part) for part in parts])
        print(f"{sum(len(one) for one in scores)} scores, mean {np.concatenate(scores).mean():.2f}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    main()
