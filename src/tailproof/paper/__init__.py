"""Experiments: one file each, with settings, a `run` and a `draw`."""
