"""What the real TensorBoard reads in a folder of event files, as JSON."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
accumulator.Reload()
tags = accumulator.Tags()
scalars = {
    tag: [[event.step, event.value] for event in accumulator.Scalars(tag)]
    for tag in tags["scalars"]
}
texts = {
    tag: [
        [event.step, [part.decode() for part in event.tensor_proto.string_val]]
        for event in accumulator.Tensors(tag)
    ]
    for tag in tags["tensors"]
}
json.dump({"scalars": scalars, "texts": texts}, sys.stdout)
