"""Our own experiments, beside the figures of the paper."""
