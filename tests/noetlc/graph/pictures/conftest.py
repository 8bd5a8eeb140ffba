"""Tests in a browser need a browser; `test_html.py` tells which there is."""

from __future__ import annotations

from tests.noetlc.graph.pictures.chromium import find_chromium

collect_ignore = [] if find_chromium() else ["test_page_in_browser.py"]
