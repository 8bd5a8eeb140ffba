"""The page of a server and its pictures, as HTTP; `tests/whole/service` has tests in a browser."""

from __future__ import annotations

import re

import pytest

from noetlvm.service import page_api
from tests.noetlvm.service.conftest import HELLO, Service

YAML = {"Content-Type": "application/yaml"}


def registered(service: Service, data: bytes = HELLO) -> str:
    answer = service.http.post("/api/v1/playbooks", content=data, headers=service.as_("run") | YAML)
    return str(answer.json()["bundle"])


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")]
)
def test_static_files_need_no_token_and_allow_no_other_origin(service: Service, path: str, kind: str) -> None:
    answer = service.http.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|<style|style=|onclick=", answer.text)


def test_nothing_that_is_served_loads_scripts_from_another_host(service: Service) -> None:
    assert service.http.get("/openapi.json").status_code == 200
    for path in ("/docs", "/redoc"):
        assert service.http.get(path).status_code == 404


def test_a_picture_has_a_box_for_each_step(service: Service) -> None:
    bundle = registered(service)
    url = f"/api/v1/bundles/{bundle}/picture"
    answer = service.http.get(url, params={"path": "tests/hello"}, headers=service.as_("read"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert re.findall('class="box[^>]*data-key="([^"]*)"', answer.text) == ["start", "end"]


def test_a_picture_needs_the_scope_read_and_something_to_draw(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"/api/v1/bundles/{registered(service)}/picture"
    assert service.http.get(url, params={"path": "tests/hello"}).status_code == 401
    assert service.http.get(url, params={"path": "tests/hello"}, headers=service.as_("worker")).status_code == 403
    assert service.http.get(url, params={"path": "tests/other"}, headers=service.as_("read")).status_code == 404
    other = service.http.get("/api/v1/bundles/none/picture", params={"path": "x"}, headers=service.as_("read"))
    assert other.status_code == 404
    monkeypatch.setattr(page_api, "STEPS_DRAWN_MAX", 1)
    large = service.http.get(url, params={"path": "tests/hello"}, headers=service.as_("read"))
    assert (large.status_code, "more than 1 steps" in large.json()["detail"]) == (422, True)
