"""What customers of a music shop spend after their first order: CDNOW, 1997, from lifetimes.

23 570 customers, by the number of CDs in their first order; the reward is what a customer spends in
the four weeks after it. Five in six spend nothing, some a hundred times as much as others, so every
median is zero. Which kind of first order should an advertisement go for?
"""

from importlib.util import find_spec
from pathlib import Path

import pandas
from shared import show_advice

from tailproof import CappedMean

WEEKS = 4


def main() -> None:
    """Read the orders, add up what follows the first one, and replay it."""
    package = find_spec("lifetimes")  # only its file is read; the package is not imported
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "datasets" / "CDNOW_master.txt"
    names = ["customer", "day", "discs", "dollars"]
    orders = pandas.read_csv(path, sep=r"\s+", names=names, header=0, dtype={"day": str})
    orders["day"] = pandas.to_datetime(orders.day, format="%Y%m%d")
    orders = orders.groupby(["customer", "day"], as_index=False).sum()
    first = orders.groupby("customer").first()
    orders["age"] = (orders.day - orders.customer.map(first.day)).dt.days
    later = orders[orders.age.between(1, 7 * WEEKS)].groupby("customer").dollars.sum()
    spent = later.reindex(first.index, fill_value=0.0).to_numpy()
    arms = [f"{min(n, 4)} or more" if n >= 4 else f"{n}" for n in first.discs]
    show_advice("Revenue after a first order", spent, arms, aim=CappedMean(0.99), costs=False)


if __name__ == "__main__":
    main()
