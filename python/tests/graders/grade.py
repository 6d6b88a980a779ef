"""What `grade.ts` does, in Python."""

import asyncio
from typing import Any


async def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Any = None
) -> dict[str, Any]:
    ms = extra_info.get("ms", 0)
    if ms > 0:
        await asyncio.sleep(ms / 1000)
    words = solution_str.split(" ")
    total = 0.0
    for word in words:
        total += int(word[1:]) * 0.1
    return {"score": total / (ground_truth + 0.3), "words": len(words)}
