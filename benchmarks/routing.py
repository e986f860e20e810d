"""CPU time of a routing decision and of learning from a call, and 10⁴ calls under way at once."""

import asyncio
import time

from timing import one_core

one_core()

import numpy as np

from tailproof.integrations.routing import Router

ARMS, CALLS, WARM = ["a", "b", "c", "d"], 6000, 2000


def one_by_one() -> tuple[float, float]:
    """Return the microseconds of a decision and of learning, once the memory is full."""
    router, rng = Router(ARMS), np.random.default_rng(0)
    scale = dict(zip(ARMS, (0.5, 0.6, 0.9, 1.5), strict=True))
    chosen = learned = 0.0
    for t in range(WARM + CALLS):
        start = time.process_time()
        call = router.call()
        decided = time.process_time()
        call.tell(scale[call.arm] * float(np.exp(rng.standard_normal())))
        told = time.process_time()
        call.done()
        if t >= WARM:
            chosen += decided - start
            learned += time.process_time() - told
    return 1e6 * chosen / CALLS, 1e6 * learned / CALLS


async def at_once(count: int) -> float:
    """Return the CPU seconds of this many calls that are all under way together."""
    router = Router(ARMS)
    gate = asyncio.Event()

    async def call() -> None:
        async with router.call():
            await gate.wait()

    start = time.process_time()
    tasks = [asyncio.create_task(call()) for _ in range(count)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    return time.process_time() - start


if __name__ == "__main__":
    decision, learning = one_by_one()
    print(f"a decision: {decision:.0f} µs of CPU time (limit 200); learning: {learning:.0f} µs")
    print(f"10 000 calls at once: {asyncio.run(at_once(10_000)):.1f} s of CPU time")
