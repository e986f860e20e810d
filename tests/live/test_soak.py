"""Ten minutes of a service at work: no answer is missing, nothing is lost, memory stays flat."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from servers import running

from tailproof.live import Agent, SQLite
from tailproof.live.config import load
from tailproof.service import Client

_SETTINGS = """
[service]
journal = "journals"
durable = false
[experiments.shop]
recipe = "auto_filtered(ucb1(bonus=0.7))"
silence = "lost"
arms = ["red", "blue", "green"]
wait = "20s"
explore = 0.05
"""
_THREADS = 4


def resident(process: int) -> float:
    """Return the memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_ten_minutes(tmp_path: Path) -> None:
    """Visitors ask, tell late and sometimes never; now and then somebody looks at the page.

    ``TAILPROOF_SOAK`` is another number of seconds. Memory may grow by 10 % after its first fifth.
    """
    seconds = float(os.environ.get("TAILPROOF_SOAK", "600"))
    file = tmp_path / "shop.toml"
    file.write_text(_SETTINGS)
    statuses: dict[str, int] = {}
    failures: list[BaseException] = []
    asked, lock, sizes = [0] * _THREADS, threading.Lock(), list[float]()

    def visit(thread: int, url: str, end: float) -> None:
        rng, waiting = np.random.default_rng(thread), list[str]()
        try:
            with Client(url, timeout=30) as client:
                while time.monotonic() < end:
                    waiting.append(client.ask("shop").id)
                    asked[thread] += 1
                    if len(waiting) > 50:
                        ticket = waiting.pop(int(rng.integers(50)))
                        if rng.random() < 0.9:
                            status = client.tell("shop", ticket, float(rng.standard_cauchy()))
                            with lock:
                                statuses[status] = statuses.get(status, 0) + 1
        except BaseException as error:
            failures.append(error)

    with running(file) as (process, url):
        end = time.monotonic() + seconds
        crew = [threading.Thread(target=visit, args=(i, url, end)) for i in range(_THREADS)]
        for one in crew:
            one.start()
        while any(one.is_alive() for one in crew):
            time.sleep(seconds / 50)
            sizes.append(resident(process.pid))
        process.terminate()
        assert process.wait(30) in (0, -signal.SIGTERM)  # a server may end by the signal it obeyed
    assert not failures
    assert statuses.keys() <= {"kept", "late"}
    settled = sizes[len(sizes) // 5 :]
    assert max(settled) < 1.1 * settled[0], sizes
    (settings,) = load(file).experiments.values()
    with Agent(settings.policy, SQLite(tmp_path / "journals" / "shop.db")) as agent:
        ((tickets,),) = agent.journal.execute("SELECT COUNT(*) FROM request")
        ((told,),) = agent.journal.execute("SELECT COUNT(*) FROM event")
        assert (tickets, told) == (sum(asked), sum(statuses.values()))
        assert agent.verify().ok
    print(f"{tickets} tickets in {seconds:g} s; memory {settled[0]:.0f} to {settled[-1]:.0f} MB")
