"""The parts of ``degrade.build``."""
