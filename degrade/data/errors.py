"""What can be wrong with a source: one row of it, or all of it."""

from __future__ import annotations


class RowError(ValueError):
    """One row cannot be used; the message is the reason, and whoever reads rows adds file and index."""


class SourceError(ValueError):
    """A source as a whole cannot be used; the message names the file and what is wanted."""
