"""The page of a real server in a real browser: sign in, start a playbook, watch it end, and control it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from noetlvm.client import Client
from tests.chromium import Chromium, find_chromium
from tests.whole.service.processes import cluster

HOSTILE = "<img src=x onerror=document.title='gone'>"
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: pages, path: tests/pages }
workload: { gone: false }
workflow:
  - step: start
    loop: { in: [1, 2, 3], iterator: number, spec: { mode: parallel } }
    tool: { kind: noop }
    next: { arcs: [{ step: check, when: "{{ event.name == 'loop.done' }}" }] }
  - step: check
    tool:
      kind: shell
      command: [printf, "%s", "HOSTILE"]
      spec:
        policy:
          rules:
            - when: "{{ workload.gone }}"
              then: { do: fail }
            - else: { then: { do: continue, set_ctx: { text: "{{ outcome.result.stdout }}" } } }
""".replace("HOSTILE", HOSTILE)

ENDED = "document.documentElement.dataset.ready === 'ended'"


class Page(NamedTuple):
    """A browser at the page of a server."""

    browser: Chromium
    client: Client
    url: str
    token: str

    def open(self, fragment: str) -> None:
        self.browser.send("Page.navigate", url="about:blank")
        self.browser.send("Page.navigate", url=f"{self.url}/{fragment}")
        self.until("document.readyState === 'complete' && location.protocol === 'http:'")

    def until(self, condition: str) -> None:
        """Wait until a condition holds in the page."""
        look = f"const look = () => {condition} ? done(true) : setTimeout(look, 20); look();"
        assert self.browser.evaluate(f"new Promise(done => {{ {look} }})")

    def text(self) -> str:
        return str(self.browser.evaluate("document.querySelector('main').textContent"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder: Path = tmp_path_factory.mktemp("page")
    store = f"sqlite:{folder / 'page.db'}"
    with (
        cluster(store, folder, workers=1) as made,
        Chromium(find_chromium() or "") as browser,
        made.client() as client,
    ):
        client.register(PLAYBOOK.encode())
        yield Page(browser, client, made.servers[0].url, made.token)


def ended(page: Page, payload: dict[str, Any]) -> str:
    id = page.client.start(path="tests/pages", payload=payload)
    page.open(f"#token={page.token}")
    page.browser.evaluate(f"location.hash = {json.dumps(f'#/executions/{id}')}")
    page.until(ENDED)
    return id


def test_without_a_token_the_page_requests_one_and_a_wrong_one_is_refused(page: Page) -> None:
    page.open("")
    page.browser.evaluate("sessionStorage.clear()")
    page.open("")
    page.until("document.querySelector('#token')")
    page.browser.evaluate("document.querySelector('#token').value = 'wrong'")
    page.browser.click("form button")
    page.until("document.querySelector('#token')?.value === ''")


def test_a_playbook_is_started_and_shown_until_it_ends(page: Page) -> None:
    page.open(f"#token={page.token}")
    page.until("location.hash === '#/executions'")
    page.browser.click("nav a[href='#/playbooks']")
    page.until("document.querySelector('td button')")
    page.browser.click("td button")
    page.until("document.querySelector('#payload')")
    page.browser.click("form button")
    page.until(ENDED)
    text = page.text()
    assert "tests/pages success" in text
    assert "3 ok, 0 failed of 3" in text
    assert page.browser.evaluate("[...document.querySelectorAll('.box.is-done')].map(box => box.dataset.key)") == [
        "start",
        "check",
    ]


def test_text_of_a_playbook_is_shown_as_text(page: Page) -> None:
    ended(page, {})
    assert HOSTILE in page.text()
    assert page.browser.evaluate("document.querySelectorAll('img').length") == 0
    assert page.browser.evaluate("document.title") == "noetlvm"


def test_a_failed_execution_is_shown_with_its_failure_and_can_be_retried(page: Page) -> None:
    id = ended(page, {"gone": True})
    assert page.browser.evaluate("document.querySelector('.box.is-failed').dataset.key") == "check"
    assert "Failures" in page.text()
    page.browser.click("main .bar button")
    page.until(f"location.hash !== {json.dumps(f'#/executions/{id}')}")
    page.until(ENDED)
    newest = page.client.executions()["executions"][0]
    assert page.browser.evaluate("location.hash") == f"#/executions/{newest['execution_id']}"


def test_the_page_calls_no_other_host_and_logs_nothing(page: Page) -> None:
    ended(page, {})
    complaints = [one for one in page.browser.complaints() if "401" not in json.dumps(one)]
    assert [one for one in complaints if not str(one).startswith((page.url, "about:"))] == []
