"""The score function that verl loads: it waits as the judge of the other contestants does.

The score is one more than the milliseconds it waits: a score of 0 is what verl leaves where no score arrives.
"""

import asyncio


async def compute_score(data_source, solution_str, ground_truth, extra_info):
    await asyncio.sleep(ground_truth / 1000)
    return ground_truth + 1
