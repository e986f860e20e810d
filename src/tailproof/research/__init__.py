"""Measurements of the library: the paper's figures, the gauntlet, and the report."""
