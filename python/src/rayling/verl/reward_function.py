"""The file whose path `python -m rayling.verl` prints: verl loads it by that path."""

from rayling.verl import compute_score, start_for_verl

__all__ = ["compute_score"]

# The package may have been imported before, for something else.
start_for_verl()
