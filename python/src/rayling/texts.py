"""Texts that every encoding has."""

from __future__ import annotations

__all__ = ["well_formed"]


def well_formed(text: str) -> str:
    """Returns the text with U+FFFD for each half of a surrogate pair whose other half is missing.

    JavaScript cuts texts between the halves, and UTF-8 has no bytes for one: Ray's workers, which
    write the text of an error in UTF-8, would die of it.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
