"""The page of a server, for a browser: static files, and pictures of nets. All data comes from the API."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request, Response

from noetlvm.bridge import net_picture, picture_style
from noetlvm.bytecode.verify.verifier import load
from noetlvm.service.access import requires
from noetlvm.service.models import PlaybookPath
from noetlvm.service.playbooks_api import driver_of
from noetlvm.service.problems import ProblemError, documented

page_router = APIRouter(include_in_schema=False)
pictures_router = APIRouter(tags=["playbooks"])

STEPS_DRAWN_MAX = 1_000
"""Of a larger net, `noetlc graph --format html` draws an overview."""
SVG = "image/svg+xml"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""A script that a playbook might bring in does not run, and nothing leaves for another host."""


@page_router.get("/")
def get_page() -> Response:
    """Return the page; it gets a token from the user or from the fragment of its address."""
    return Response(_asset("page.html"), media_type="text/html", headers=_HEADERS)


@page_router.get("/page.js")
def get_script() -> Response:
    """Return the script of the page."""
    return Response(_asset("page.js"), media_type="text/javascript", headers=_HEADERS)


@page_router.get("/page.css")
def get_style() -> Response:
    """Return the style of the page and of the pictures in it."""
    return Response(picture_style() + _asset("page.css"), media_type="text/css", headers=_HEADERS)


def _asset(name: str) -> str:
    return files("noetlvm.service").joinpath("page", name).read_text(encoding="utf-8")


@pictures_router.get(
    "/bundles/{bundle}/picture",
    response_class=Response,
    dependencies=[requires("read")],
    responses={200: {"content": {SVG: {}}}, **documented(404, 422)},
)
def get_picture(request: Request, bundle: str, path: PlaybookPath) -> Any:
    """Return the net of a playbook in a bundle as SVG: a box for each step, with its name as `data-key`."""
    data = driver_of(request).store.bundle(bundle)
    if data is None:
        raise ProblemError(404, f"there is no bundle {bundle}")
    program = load(data)
    if path not in [playbook.path for playbook in program.playbooks]:
        raise ProblemError(404, f"the bundle has no playbook `{path}`")
    drawn = net_picture(program, path, STEPS_DRAWN_MAX)
    if drawn is None:
        raise ProblemError(422, f"the net has more than {STEPS_DRAWN_MAX:,} steps; draw it with `noetlc graph`")
    return Response(drawn, media_type=SVG, headers=_HEADERS)
