"""Measure the CPU time of the service for an ask over HTTP, with one worker.

Twenty arms with ten features, a filter of 15 pulls, SQLite without durability; one thread keeps
many connections open. Asks per second by the clock mean something on two idle cores only; on busy
ones read the CPU time.
"""

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = """
[service]
journal = "journals"
durable = false
[experiments.features]
recipe = "filtered(oful(noise_scale=0.45), repeats=15)"
silence = "lost"
[experiments.names]
recipe = "filtered(oful(noise_scale=0.45), repeats=15)"
silence = "lost"
"""


def request(path: str, body: object) -> bytes:
    """Return the bytes of a POST request."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(text) + text


def answered(
    waiting: selectors.BaseSelector, timeout: float | None = None
) -> Iterator[tuple[socket.socket, Any]]:
    """Wait for answers; yield each connection whose answer is complete, and what it says."""
    for key, _ in waiting.select(timeout):
        one, answer = key.fileobj, key.data
        assert isinstance(one, socket.socket)
        answer += one.recv(65536)
        if answer.endswith(b"}"):
            assert answer.startswith(b"HTTP/1.1 200"), bytes(answer)
            said = json.loads(answer.partition(b"\r\n\r\n")[2])
            answer.clear()
            yield one, said


def send(sockets: list[socket.socket], text: bytes, times: int) -> None:
    """Send a request many times; each connection sends again when it has its answer."""
    with selectors.DefaultSelector() as waiting:
        for each in sockets:
            each.sendall(text)
            waiting.register(each, selectors.EVENT_READ, bytearray())
        left, open_ = times - len(sockets), len(sockets)
        while open_:
            for one, _ in answered(waiting):
                left, open_ = left - 1, open_ - (left <= 0)
                if left >= 0:
                    one.sendall(text)
                else:
                    waiting.unregister(one)


def cpu_seconds(process: int) -> float:
    """Return the CPU time of a process so far, as Linux counts it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(service: subprocess.Popen[str], asks: int, connections: int) -> None:
    """Print asks per second and their CPU time, with and without features."""
    assert service.stdout is not None
    port = int(service.stdout.readline().split()[0].rpartition(":")[2])
    rng = np.random.default_rng(0)
    arms = {f"arm {i}": (rng.standard_normal(10) / 4).round(4).tolist() for i in range(20)}
    with ExitStack() as open_:
        sockets = [
            open_.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(connections)
        ]
        for name, offer in {"features": arms, "names": list(arms)}.items():
            text = request(f"/experiments/{name}/ask", {"offer": offer})
            send(sockets, text, 4 * connections)
            start, cpu = time.perf_counter(), cpu_seconds(service.pid)
            send(sockets, text, asks)
            cpu, seconds = cpu_seconds(service.pid) - cpu, time.perf_counter() - start
            print(
                f"{name}: {1e6 * cpu / asks:.0f} µs of CPU per ask, or {asks / cpu:.0f} asks per "
                f"second of CPU; {asks / seconds:.0f} asks/s by the clock (target: at least 1000)",
                flush=True,
            )


def main() -> None:
    """Start a service and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=5000)
    parser.add_argument("--connections", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "shop.toml")
        file.write_text(SETTINGS)
        command = [sys.executable, "-m", "tailproof", "serve", str(file), "--port", "0"]
        with (
            Path(folder, "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as service,
        ):
            try:
                measure(service, given.asks, given.connections)
            finally:
                service.terminate()


if __name__ == "__main__":
    main()
