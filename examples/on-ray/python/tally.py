"""A class for `examples/on-ray/python-actor.ts`, which knows nothing of TypeScript."""

import statistics


class Tally:
    """Numbers by name, and what they come to."""

    def __init__(self, unit, digits=2):
        self.unit = unit
        self.digits = digits
        self.numbers = {}

    def add(self, name, number):
        self.numbers.setdefault(name, []).append(number)
        return len(self.numbers[name])

    def mean(self, name):
        mean = round(statistics.fmean(self.numbers[name]), self.digits)
        return {"name": name, "mean": mean, "unit": self.unit}
