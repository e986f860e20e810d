"""A server with every fault that a client may meet."""

import asyncio
import json
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import Any

__all__ = ["KINDS", "faulty"]

STATUSES = ("302", "401", "404", "408", "418", "429", "500", "503")
GARBAGE = {
    "words": b"hello\r\n\r\n",
    "zeros": bytes(1000),
    "html": b"<html>",
    "list": b"[]",
    "other": b'{"other": 1}',
    "kinds": b'{"ticket": 3, "arm": 4, "propensity": "x"}',
    "deep": b"[" * 100_000,
}
KINDS = (
    *("drip-head", "drip-body", "hang", "reset", "reset-late", "half", "gzip", "flood", "refuse"),
    "swapped",
    *STATUSES,
    *GARBAGE,
)


async def _answer(kind: str, asked: dict[str, Any], writer: StreamWriter) -> None:
    good = {"ticket": asked["ticket"], "arm": "blue", "propensity": 0.5, "status": "kept"}
    if kind == "swapped":
        del good["status" if "reward" in asked else "arm"]
    body, status, more = json.dumps(good).encode(), "200 OK", ""
    if kind in STATUSES:
        status, body, more = f"{kind} Fault", b"{}", "Location: /good\r\n"
    body = GARBAGE.get(kind, body)
    if kind == "gzip":
        more = "Content-Encoding: gzip\r\n"
    length = len(body) + (kind == "half") if kind != "flood" else 1 << 40
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    text = f"{head}{more}\r\n".encode() + body
    if kind in ("words", "zeros"):
        text = GARBAGE[kind]
    if kind in ("hang", "slow"):
        await asyncio.sleep(3600 if kind == "hang" else 0.15)
    if kind.startswith("reset"):
        if kind == "reset-late":
            writer.write(text[:30])
            await writer.drain()
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
        return
    if kind.startswith("drip"):
        fast = text.index(b"\r\n\r\n") + 4 if kind == "drip-body" else 0
        writer.write(text[:fast])
        for byte in text[fast:]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)
        return
    writer.write(text)
    while kind == "flood":
        writer.write(b" " * (1 << 16))
        await writer.drain()
    await writer.drain()


async def _show(path: str, writer: StreamWriter) -> None:
    """Send a browser the client, or an empty page."""
    script = path == "/client.js"
    body = (files("tailproof.service") / "page/assets/client.js").read_bytes() if script else b"<p>"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/{'javascript' if script else 'html'}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


async def _serve(
    reader: StreamReader, writer: StreamWriter, kinds: Sequence[str], bodies: list[Any]
) -> None:
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode():
            if head.startswith("GET"):
                await _show(head.split()[1], writer)
                continue
            length = int(head.lower().partition("content-length:")[2].split()[0])
            token = head.partition("Authorization: ")[2].partition("\r\n")[0]
            body = json.loads(await reader.readexactly(length))
            bodies.append(body | ({"token": token} if token else {}))
            kind = kinds[min(len(bodies), len(kinds)) - 1] if kinds else head.split("/")[1]
            await _answer(kind, body, writer)
            if kind in ("half", "words", "zeros"):
                break
    except (OSError, EOFError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


@contextmanager
def faulty(*kinds: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the URL of a server and a list of the bodies that it gets.

    Its answers are of these kinds, one after the other, the last one again and again; without any,
    the first part of the path names the kind. Every kind but "good" and "slow" is a fault.
    """
    loop, bodies = asyncio.new_event_loop(), list[Any]()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> asyncio.Server:
        serve = partial(_serve, kinds=kinds, bodies=bodies)
        return await asyncio.start_server(serve, "127.0.0.1", 0)

    async def stop() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", bodies
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
