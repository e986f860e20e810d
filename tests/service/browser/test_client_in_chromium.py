"""The JavaScript client in a real Chromium."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import Chromium
from faults import KINDS, faulty

pytestmark = pytest.mark.browser


class Page:
    """A page of the server that fails, with clients made in it."""

    def __init__(self, browser: Chromium, url: str) -> None:
        self._browser = browser
        browser.open(url)

    def __call__(self, script: str, path: str = "", **settings: Any) -> Any:
        """Return what the body of an async function gives that has a `client`, and what it logs."""
        given = json.dumps(settings)
        return self._browser.run(f"""(async () => {{
          const {{ Client }} = await import("/client.js"), logged = [];
          const log = (text) => logged.push(text);
          const client = new Client(location.origin + "/{path}", {{ ...{given}, log }});
          {script}
        }})()""")


@pytest.fixture
def browser() -> Iterator[Chromium]:
    with Chromium() as found:
        yield found


def test_ask_and_tell(browser: Chromium) -> None:
    with faulty("503", "good") as (url, bodies):
        page = Page(browser, url)
        ticket = page("return await client.ask('shop', ['red', 'blue'])", token="x", timeout=30_000)
        told = page("return await client.tell('shop', 'v1', Infinity)", timeout=30_000)
        offer = {"red": [1, 0], "blue": [0, 1]}
        page(f"return await client.ask('a/b', {json.dumps(offer)}, 'v2')", timeout=30_000)
    first, again, tell, other = bodies
    assert first == again
    assert first == {"ticket": ticket["ticket"], "offer": ["red", "blue"], "token": "Bearer x"}
    assert (ticket["arm"], ticket["propensity"], ticket["default"]) == ("blue", 0.5, False)
    assert tell == {"ticket": "v1", "reward": "Infinity"}
    assert told == "kept"
    assert other == {"ticket": "v2", "offer": offer}
    assert browser.complaints == []


def test_every_fault_gives_the_default_in_time(browser: Chromium) -> None:
    with faulty() as (url, _):
        page = Page(browser, url)
        for kind in KINDS:
            if kind == "refuse":
                continue  # a page of a server that is gone
            script = """const start = performance.now();
              const ticket = await client.ask('shop', undefined, 'v1');
              const told = await client.tell('shop', 'v1', 1);
              return [ticket, told, logged.length, performance.now() - start];"""
            ticket, told, logged, took = page(script, kind, timeout=100, default="red")
            assert ticket == {"ticket": "default:v1", "arm": "red", "default": True}, kind
            assert told == "failed"
            assert logged in (1, 2)  # the two calls may fail in different ways
            assert took < 2000  # a dripping server takes longer
            script = "return await client.ask('shop').catch((error) => error.message)"
            said = page(script, kind, timeout=100)
            assert "no answer from" in said or "is this a tailproof service" in said
    assert page("return await client.ask('shop')", timeout=100, default="red")["default"]


def test_a_service_that_keeps_failing_is_left_alone_for_a_while(browser: Chromium) -> None:
    with faulty(*["418"] * 6, "good") as (url, bodies):
        page = Page(browser, url)
        script = """
          let now = 0;
          Date.now = () => now;
          const ask = async (times) => {
            const found = [];
            for (let i = 0; i < times; i += 1) found.push((await client.ask('shop')).default);
            return found;
          };
          const found = [await ask(20)];
          for (const time of [1000, 1900, 100]) {
            now += time;
            found.push(await ask(3));
          }
          return [found, logged.length];"""
        found, logged = page(script, timeout=30_000, default="red")
    assert found == [[True] * 20, [True] * 3, [True] * 3, [False] * 3]
    assert len(bodies) == 5 + 1 + 3
    assert logged == 2  # what happens, and that it answers again


def test_an_ask_that_was_given_up_is_cancelled_by_the_next_call(browser: Chromium) -> None:
    with faulty("hang", "good") as (url, bodies):
        script = """for (const ticket of ['v1', 'v2', 'v1']) {
            await client.ask('shop', undefined, ticket, 'user 7');
          }"""
        Page(browser, url)(script, timeout=500, default="red")
    assert [body.get("cancel") for body in bodies] == [None, ["v1"], None]
    assert {body["unit"] for body in bodies} == {"user 7"}


def test_what_cannot_be_right_is_refused(browser: Chromium) -> None:
    with faulty("good") as (url, bodies):
        page = Page(browser, url)
        script = "return await client.tell('shop', 'v1', NaN).catch((error) => error.message)"
        assert page(script, default="red") == "reward must be a number, got NaN"
        with pytest.raises(AssertionError, match="timeout must be a number above 0, got 0"):
            page("", timeout=0)
    assert bodies == []
