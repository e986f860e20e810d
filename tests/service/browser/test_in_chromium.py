"""The page of a service in a real Chromium: what it shows, to whom, and what it asks of others."""

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pytest
from callers import served
from chromium import Chromium, until

from tailproof import UCB1, CappedMean, Median
from tailproof.live import Agent
from tailproof.live.config import load
from tailproof.live.journal import Journal
from tailproof.service.page.offline import offline_page, summarised
from tailproof.service.server import TOKEN

pytestmark = pytest.mark.browser

BOLD, BROKEN_IN = "<b>x</b>", "<img src=x onerror=\"document.title='broken in'\"> & co"
LOCATIONS = {"red": 10.0, "blue": 14.0, BOLD: 8.0, BROKEN_IN: 6.0}
FILE = """
[service]
journal = "journals"
durable = false

[experiments.shop]
recipe = "auto_filtered(ucb1, repeats=5)"
silence = "lost"
explore = 0.5
control = { arm = "red", share = 0.2 }
wait = "2h"

[experiments.new]
recipe = "auto_filtered(ucb1)"
silence = "lost"
arms = ["red", "blue"]
"""
DRAWN = "['intervals', 'pulls', 'rewards'].every(id => document.querySelector(`#${id} svg`))"
READY = f"!document.getElementById('found').hidden && {DRAWN}"
SECRET = "correct-horse-battery-staple"


class Service:
    """A service with two experiments, in this process."""

    def __init__(self, url: str, app: Any) -> None:
        self.url, self.app = url, app

    def visit(self, visits: int, seed: int = 0) -> None:
        """Make requests to the first experiment, with wild rewards."""
        rng, agent = np.random.default_rng(seed), self.app.state.experiments["shop"].agent
        for _ in range(visits):
            ticket = agent.ask(list(LOCATIONS))
            agent.tell(ticket.id, LOCATIONS[ticket.arm] + float(rng.standard_cauchy()))


@contextmanager
def serving(folder: Path, token: str = "", port: int = 0) -> Iterator[Service]:
    file = folder / "shop.toml"
    file.write_text(FILE)
    config = load(file).at(None, port)
    with patch.dict(os.environ, {TOKEN: token}), served(config) as (url, app):
        yield Service(url, app)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("service")) as found:
        found.visit(800)
        yield found


@pytest.fixture
def browser() -> Iterator[Chromium]:
    with Chromium() as found:
        found.size(1200, 900)
        yield found


@pytest.fixture
def page(browser: Chromium, service: Service) -> Chromium:
    browser.open(f"{service.url}/#/shop")
    browser.wait(READY)
    return browser


def summary(service: Service, name: str = "shop") -> Any:
    return httpx.get(f"{service.url}/experiments/{name}/summary", trust_env=False).json()


def test_it_says_who_leads_and_how_sure_that_is(page: Chromium, service: Service) -> None:
    found = summary(service)
    assert found["lead"] == found["lead"] | {"arm": "blue", "sure": True}
    assert page.text("#lead-words") == found["lead"]["words"]
    assert page.text("#lead-badge") == "sure"
    assert page.text("nav a[aria-current]") == f"shop\n{found['lead']['words']}"
    assert page.run("document.title") == "blue leads shop – tailproof"
    rows = page.run(
        "[...document.querySelectorAll('#arms tbody tr')].map(row => row.cells[0].innerText.trim())"
    )
    assert rows == ["blue", "red", BOLD, BROKEN_IN]
    assert page.text("#recipe") == f"Recipe: {found['recipe']}"
    assert page.text("#tickets dd").startswith(f"{found['tickets']['asked']:,}")


def test_it_says_whether_it_paid_and_what_that_assumes(page: Chromium, service: Service) -> None:
    found = summary(service)
    assert page.text("#pay-words") == found["pay"]["words"]
    assert "the control group (red)" in page.text("#gains h4")
    assert page.text("#exploring") == found["exploring"]["words"]
    assert page.text("#sound") == found["sound"]["words"]
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert "at every look" in page.text("#pay-how")
    command = page.text("#judge").replace("\\\n", "")
    assert shlex.split(command)[:3] == ["tailproof", "judge", "journals/shop.db"]


def test_colours_do_not_contradict_names(page: Chromium) -> None:
    drawn = page.run("""Object.fromEntries([...document.querySelectorAll('#arms tbody th')]
        .map(head => [head.innerText.trim(), head.querySelector('.swatch').className]))""")
    assert "hue-red" in drawn["red"]
    assert "hue-blue" in drawn["blue"]
    hues = [name.split()[1] for name in drawn.values()]
    assert len(set(hues)) == len(hues) == 4
    found = page.run("hues(['dark red', 'tired', 'Blue', 'navy', 'x'])")
    assert found[0] == "red"
    assert found[2] == "blue"
    assert not {"red", "blue"} & {found[1], found[3], found[4]}


def click(browser: Chromium, selector: str) -> None:
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def acts(journal: Journal) -> list[str]:
    """Return the kinds of what was done to an experiment."""
    return [one.kind for one in journal.notes() if one.kind != "control"]


def test_buttons_ask_once_more_and_are_written_to_the_journal(
    browser: Chromium, tmp_path: Path
) -> None:
    with serving(tmp_path, SECRET) as service:
        service.visit(100)
        browser.open(f"{service.url}/#/shop")
        browser.wait("!document.getElementById('token-form').hidden")
        browser.run(f"document.getElementById('token').value = {json.dumps(SECRET)}")
        browser.run("document.getElementById('token-form').requestSubmit()")
        browser.wait(READY)
        browser.run("document.getElementById('arm').value = 'blue'")
        pause = "[data-act=pause]"
        click(browser, pause)
        assert browser.text(pause) == "Really pause with blue?"
        journal = service.app.state.experiments["shop"].reader()
        assert acts(journal) == []
        click(browser, pause)
        browser.wait("!document.getElementById('state').hidden")
        assert browser.text("#state") == "Paused: every request gets blue."
        assert acts(journal) == ["fix"]
        for _ in range(2):
            click(browser, "[data-act=resume]")
        browser.wait("document.getElementById('state').hidden")
        browser.run(f"document.getElementById('arm').value = {json.dumps(BOLD)}")
        for _ in range(2):
            click(browser, "[data-act=drop]")
        browser.wait("[...document.getElementById('arm').options].length === 3")
        assert acts(journal) == ["fix", "resume", "drop"]
        browser.run("document.getElementById('arm').value = 'red'")
        for _ in range(2):
            click(browser, "[data-act=drop]")
        browser.wait("document.getElementById('act-words').innerText.startsWith('Not done')")
        click(browser, "#export")
        browser.wait("document.getElementById('act-words').innerText.endsWith('shop.csv.')")
        journal.close()
        refused = [text for text in browser.complaints if "422" not in text and "401" not in text]
        assert refused == []


def test_a_report_is_the_same_page_without_a_service(
    browser: Chromium, service: Service, tmp_path: Path
) -> None:
    journal = service.app.state.experiments["shop"].reader()
    found = summarised(journal, Median(), name="shop")
    journal.close()
    file = tmp_path / "shop.html"
    file.write_text(offline_page(found))
    browser.open(file.as_uri())
    browser.wait(READY)
    assert browser.text("#pay-words") == found["pay"]["words"]
    assert browser.text("#lead-words") == found["lead"]["words"]
    assert browser.run("document.getElementById('acts').hidden")
    assert browser.text("#connection").startswith("As of ")
    assert {url.partition(":")[0] for url in browser.requests} <= {"file", "data", "about"}
    assert browser.complaints == []


def test_a_shop_reads_each_arm_on_a_phone_without_scrolling_a_table(
    browser: Chromium, tmp_path: Path
) -> None:
    now = [1.7e9]
    agent = Agent(
        UCB1(), ":memory:", wait=60, silence=0.0, control=("old", 0.5), clock=lambda: now[0]
    )
    for visit in range(900):
        now[0] += 1
        ticket = agent.ask(["old", "new"], unit=f"unit {visit % 700}")
        if visit % (9 if ticket.arm == "old" else 3) == 0:
            agent.tell(ticket.id, 10.0 + visit % 7)
    now[0] += 200
    agent.tick()
    agent.tell("nobody", 5.0)
    found = summarised(agent.journal, CappedMean(0.99), name="shop")
    file = tmp_path / "shop.html"
    file.write_text(offline_page(found))
    browser.size(390, 844)
    browser.open(file.as_uri())
    browser.wait("document.querySelector('#intervals svg') !== null")
    cells = browser.run("""[...document.querySelectorAll('#arms tbody tr')].map(row =>
        Object.fromEntries([...row.cells].map(x => [x.dataset.name ?? 'arm', x.innerText])))""")
    new = next(row for row in cells if row["arm"] == "new")
    arm = next(row for row in found["arms"] if row["name"] == "new")
    assert list(new) == [
        "arm", "visits", "customers", "conversion", "basket", "revenue per customer",
        "capped, per customer", "lift over old, capped",
    ]  # fmt: skip
    assert new["customers"] == f"{arm['customers']:,}"
    assert new["conversion"] == f"{100 * arm['conversion']:.3g} %"
    assert new["lift over old, capped"].startswith("+")
    wide = "[...document.querySelectorAll('.wide')].filter(x => x.scrollWidth > x.clientWidth + 1)"
    assert browser.run(f"{wide}.map(x => x.innerText)") == []
    assert "Unknown\n1" in browser.text("#tickets")
    assert browser.complaints == []


def test_charts_are_drawn_and_said_in_tables(page: Chromium, service: Service) -> None:
    for chart, least in {"intervals": 4, "pulls": 4, "rewards": 8}.items():
        script = f"""[...document.querySelectorAll('#{chart} .drawn *')]
            .filter(part => part.getBoundingClientRect().width > 0).length"""
        assert page.run(script) >= least
        inside = f"""(() => {{
            const box = document.querySelector('#{chart}').getBoundingClientRect();
            const drawn = document.querySelector('#{chart} svg').getBoundingClientRect();
            return drawn.height > 50 && drawn.height <= box.height && drawn.width <= box.width;
        }})()"""
        assert page.run(inside)
    history = summary(service)["history"]
    for chart in ("pulls", "rewards"):
        rows = page.run(f"document.querySelectorAll('#{chart}-table tbody tr').length")
        assert rows == len(history["ends"]) > 5
    labels = page.run("[...document.querySelectorAll('#rewards .ytick')].map(x => x.textContent)")
    assert len(labels) >= 4  # the scale has marks


def test_an_empty_experiment_is_shown_kindly_and_its_lines_work(
    browser: Chromium, tmp_path: Path
) -> None:
    with serving(tmp_path) as service:
        browser.open(f"{service.url}/#/new")
        browser.wait("!document.getElementById('empty').hidden")
        assert browser.text("#empty-heading") == "No request yet"
        assert browser.run("document.getElementById('found').hidden")
        for act in ("ask", "tell"):
            line = browser.text(f"#curl-{act}").replace("\\\n", "")
            curl, url, _, kind, _, body = shlex.split(line)
            assert curl == "curl"
            headers = dict([kind.split(": ")])
            answer = httpx.post(url, content=body, headers=headers, trust_env=False)
            assert answer.status_code == 200, answer.text
        browser.wait("!document.getElementById('found').hidden")
        browser.wait("document.querySelector('#tickets div:nth-child(2) dd').innerText[0] === '1'")
        assert browser.run("document.getElementById('empty').hidden")
        assert browser.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page: Chromium, scheme: str) -> None:
    page.prefer(scheme)
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    brightness = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0]")
    assert (int(brightness) > 127) == (scheme == "light")
    assert len(page.run(CONTRASTS)) > 50
    # charts are drawn again in the colours of the scheme, a moment later
    page.wait(f"{CONTRASTS}.every(([, ratio]) => ratio >= 4.5)")


CONTRASTS = """(() => {
  const light = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const size = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const behind = place => {
    for (let at = place; at; at = at.parentElement) {
      const c = parts(getComputedStyle(at).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
  };
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const place = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
    if (!text || !place.checkVisibility()) continue;
    const style = getComputedStyle(place);
    const ink = place.closest('svg') ? style.fill : style.color;
    const [low, high] = [size(parts(ink)), size(behind(place))].sort((a, b) => a - b);
    found.push([text, (high + 0.05) / (low + 0.05)]);
  }
  return found;
})()"""


def test_a_phone_needs_no_scrolling_sideways(browser: Chromium, service: Service) -> None:
    browser.open(f"{service.url}/#/shop")
    browser.wait(READY)
    for name in ("new", "shop"):  # from a wide window, by way of one without charts
        browser.run(f"location.hash = '#/{name}'")
        browser.wait(f"document.getElementById('name').innerText === '{name}'")
        browser.size(390, 844)
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        browser.wait(f"document.getElementById('found').hidden === {json.dumps(name == 'new')}")
        browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        beyond = browser.run("""[...document.querySelectorAll('body *')]
            .filter(x => x.checkVisibility() && !x.closest('.wide > *, .skip'))
            .filter(x => x.getBoundingClientRect().right > 390).map(x => x.outerHTML)""")
        assert beyond == []
        assert browser.send("Page.getLayoutMetrics")["cssContentSize"]["width"] == 390


def test_everything_is_reached_with_the_keyboard_and_seen(page: Chromium) -> None:
    page.run("window.scrollTo(0, 0); document.activeElement.blur()")
    seen = []
    for _ in range(30):
        page.press("Tab")
        place = page.run("""(() => {
          const at = document.activeElement, style = getComputedStyle(at);
          const every = [...document.querySelectorAll('*')];
          return at === document.body ? null : {
            words: at.innerText || at.id, place: every.indexOf(at), href: at.getAttribute('href'),
            seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
          };
        })()""")
        if place is None:
            break
        seen.append(place)
    assert seen[0]["words"] == "Skip to the experiment"
    assert [one["href"] for one in seen[1:3]] == ["#/shop", "#/new"]
    assert len(seen) >= 7
    assert [one["place"] for one in seen] == sorted(one["place"] for one in seen)
    assert all(one["seen"] for one in seen)
    page.run("document.querySelector('a[href=\"#/new\"]').focus()")
    page.press("Enter")
    page.wait("document.getElementById('name').innerText === 'new'")
    page.wait("document.activeElement.id === 'experiment'")


def test_a_screen_reader_finds_its_way(page: Chromium) -> None:
    page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    seen = [node for node in nodes if not node.get("ignored")]
    names: dict[str, list[str]] = {}
    for node in seen:
        name = node.get("name", {}).get("value", "")
        names.setdefault(node["role"]["value"], []).append(name)
    assert names["main"] == ["shop"]
    assert names["navigation"] == ["Experiments"]
    for landmark in ("banner", "contentinfo", "status"):
        assert landmark in names
    assert "Arms, best first" in names["table"]
    assert all(names["table"])
    questions = [
        "Did it pay?",
        "Who leads?",
        "What did exploring cost?",
        "Is the data sound?",
    ]
    asked = [name for name in names["heading"] if name.endswith("?")]
    assert asked == questions
    assert all(names["region"])
    levels = page.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].filter(x => x.checkVisibility())"
        ".map(x => Number(x.tagName[1]))"
    )
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    focusable = [
        node
        for node in seen
        if any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", []))
    ]
    named = ("link", "region", "DisclosureTriangle")
    assert all(node["name"]["value"] for node in focusable if node["role"]["value"] in named)


def test_names_are_texts_and_nothing_else(page: Chromium) -> None:
    assert page.run("document.querySelectorAll('main b, main img').length") == 0
    assert page.run("document.title") == "blue leads shop – tailproof"
    rows = page.run("[...document.querySelectorAll('#arms tbody th')].map(x => x.innerText.trim())")
    assert {BOLD, BROKEN_IN} < set(rows)
    labels = page.run("[...document.querySelectorAll('#intervals .ytick')].map(x => x.textContent)")
    assert {BOLD, BROKEN_IN[:23] + "…"} < set(labels)
    legend = page.run("document.querySelector('#rewards').previousElementSibling.innerText")
    assert {BOLD, BROKEN_IN} < set(legend.split("\n"))


def test_nothing_is_asked_of_another_host(page: Chromium, service: Service) -> None:
    page.run(f"location.hash = '#/new'; fetch({json.dumps(service.url + '/experiments')})")
    page.wait("!document.getElementById('empty').hidden")
    assert len(page.requests) > 5
    strange = [url for url in page.requests if not url.startswith((f"{service.url}/", "data:"))]
    assert strange == []
    assert page.complaints == []
    policy = httpx.get(service.url, trust_env=False).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    refused = page.run("fetch('http://127.0.0.1:9/').then(() => 'went', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in text for text in page.complaints)


def test_it_refreshes_by_itself_and_rests_when_hidden(page: Chromium, service: Service) -> None:
    asked = "document.querySelector('#tickets dd').firstChild.data"
    before = page.run(asked)
    service.visit(50, seed=1)
    page.wait(f"{asked} !== {json.dumps(before)}")
    hide = """(value => {
      Object.defineProperty(document, 'hidden', { value, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    })"""
    page.run(f"{hide}(true)")
    page.run("new Promise(done => setTimeout(done, 500))")
    count = len(page.requests)
    page.run("new Promise(done => setTimeout(done, 4000))")
    assert len(page.requests) == count
    page.run(f"{hide}(false)")
    until(lambda: page.run("1") and len(page.requests) > count, "it looks again")


def test_a_journal_that_is_being_read_or_cannot_be_is_said(page: Chromium) -> None:
    assert page.run("document.getElementById('reading').hidden")
    page.run("globalThis.kept = latest; show({ ...kept, read: 0.4, at: null })")
    assert page.text("#reading").startswith("Reading the journal: 40 % so far.")
    page.run("show({ ...kept, now: kept.at + 600 })")
    assert page.text("#reading").startswith("The journal cannot be read at the moment")
    page.wait("document.getElementById('reading').hidden")


def test_a_lost_connection_is_said_calmly_and_found_again(
    browser: Chromium, tmp_path: Path
) -> None:
    with serving(tmp_path) as service:
        service.visit(100)
        browser.open(service.url)
        browser.wait(READY)
        words = browser.text("#lead-words")
        port = int(service.url.rpartition(":")[2])
    browser.wait("document.getElementById('connection').innerText.includes('No connection')")
    assert "Showing data from" in browser.text("#connection")
    assert browser.text("#announcement").startswith("No connection")
    assert browser.text("#lead-words") == words
    with serving(tmp_path, port=port):
        browser.wait("document.getElementById('connection').innerText.includes('Up to date')")
        assert browser.text("#announcement") == "The connection is back."


def test_a_token_is_asked_for_once(browser: Chromium, tmp_path: Path) -> None:
    def give(token: str) -> None:
        browser.wait("!document.getElementById('token-form').hidden")
        browser.run(f"document.getElementById('token').value = {json.dumps(token)}")
        browser.run("document.getElementById('token-form').requestSubmit()")

    with serving(tmp_path, token=SECRET) as service:
        browser.open(service.url)
        browser.wait("document.activeElement.id === 'token'")
        give("another-token-of-some-length")
        browser.wait("document.getElementById('token-words').innerText.startsWith('That is not')")
        give(SECRET)
        browser.wait("!document.getElementById('experiment').hidden")
        assert browser.run("document.getElementById('token-form').hidden")
        browser.open(service.url)
        browser.wait("!document.getElementById('experiment').hidden")
        assert browser.run("document.getElementById('token-form').hidden")
        assert not any(SECRET in url for url in browser.requests)
        browser.run("location.hash = '#/new'")
        browser.wait("document.getElementById('curl-ask').textContent.includes('$TAILPROOF_TOKEN')")
