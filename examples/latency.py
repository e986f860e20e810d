"""Latency of requests, measured here and now: the aim is a small 95 % quantile.

Four servers on this computer answer over the loopback interface. Three do more and more work; the
fourth does almost none, except for one request in four, which takes longer than any other. It has
the smallest median, so a tool for medians would choose it; but the slow requests matter.
"""

import random
import socket
import threading
import time

import numpy as np
from shared import show_advice

from tailproof import Quantile

REQUESTS = 2000
WORK = {
    "lean": (6_000, 0.0, 1),
    "steady": (12_000, 0.0, 1),
    "busy": (20_000, 0.0, 1),
    "moody": (100, 0.25, 600),
}
"""Steps of work for a request; the share of slow requests; how many times more they take."""


def serve(listener: socket.socket, steps: int, often: float, times: int) -> None:
    """Answer each byte after some work."""
    connection, _ = listener.accept()
    with connection:
        while connection.recv(1):
            moody = random.random() < often
            sum(range(steps * (times if moody else 1)))
            connection.sendall(b".")


def measure(name: str) -> list[float]:
    """Return the milliseconds that each request to a server takes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, *WORK[name]), daemon=True).start()
        with socket.create_connection(listener.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found = []
            for _ in range(REQUESTS):
                start = time.perf_counter()
                client.sendall(b"?")
                client.recv(1)
                found.append(1000 * (time.perf_counter() - start))
    return found


def main() -> None:
    """Measure the servers and replay the latencies."""
    latencies = np.concatenate([measure(name) for name in WORK])
    arms = np.repeat(list(WORK), REQUESTS)
    show_advice("Latency by server, milliseconds", latencies, arms, aim=Quantile(0.95), costs=True)


if __name__ == "__main__":
    main()
