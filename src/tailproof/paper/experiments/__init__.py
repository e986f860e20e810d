"""Exhibits of our own, beside the figures of the paper."""
