"""Insurance loss ratios by line of business, from a file of the package chainladder.

The loss of 1997 over the premium earned, one row for each insurer and accident year: 6 lines of
business, an infinite variance, 6 % zeros. Which line has the smallest median loss ratio?
"""

from importlib.util import find_spec
from pathlib import Path

import pandas
from shared import show_advice

from tailproof import Median


def main() -> None:
    """Read the ratios and replay them."""
    package = find_spec("chainladder")  # only its file is read; the package is not imported
    assert package is not None
    assert package.origin is not None
    table = pandas.read_csv(Path(package.origin).parent / "utils" / "data" / "clrd.csv")
    table = table[(table.DevelopmentYear == 1997) & (table.EarnedPremNet > 0)]
    ratios = (table.IncurLoss / table.EarnedPremNet).to_numpy()
    show_advice("Loss ratios by line of business", ratios, table.LOB, aim=Median(), costs=True)


if __name__ == "__main__":
    main()
