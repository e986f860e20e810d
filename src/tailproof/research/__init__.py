"""What measures the rest: the paper's figures, the gauntlet, and the report."""
