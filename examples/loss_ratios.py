"""Insurance loss ratios by line of business, from the file that comes with chainladder.

The loss of 1997 over the premium earned, one row for each insurer and accident year: 6 lines, an
infinite variance, 6 % zeros. Which line has the smallest median loss ratio?
"""

from importlib.util import find_spec
from pathlib import Path

import pandas
from story import tell

from tailproof import Median


def main() -> None:
    """Read the ratios and replay them."""
    package = find_spec("chainladder")  # its file is enough: the package itself is not run
    assert package is not None
    assert package.origin is not None
    table = pandas.read_csv(Path(package.origin).parent / "utils" / "data" / "clrd.csv")
    table = table[(table.DevelopmentYear == 1997) & (table.EarnedPremNet > 0)]
    ratios = (table.IncurLoss / table.EarnedPremNet).to_numpy()
    tell("Loss ratios by line of business", ratios, table.LOB, aim=Median(), costs=True)


if __name__ == "__main__":
    main()
