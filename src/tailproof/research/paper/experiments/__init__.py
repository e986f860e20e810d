"""Our own experiments, in addition to the figures of the paper."""
