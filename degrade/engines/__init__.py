"""Where a build runs."""
