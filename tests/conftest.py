"""What all tests share: golden files, and a cache folder of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.chromium import find_chromium
from tests.servers import new_database, postgres_of_run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator


# A busy machine is no defect, and what CI finds anybody must find again: the examples are the same in every run, except
# in `make test-random`, which prints the seed that gives them.
EXAMPLES = "NOETL_EXAMPLES"
"""Variable of the environment that selects examples of Hypothesis: `random`, or fixed ones."""
PROFILE: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **PROFILE)
settings.register_profile("random", derandomize=False, database=None, print_blob=True, **PROFILE)
settings.load_profile("random" if os.environ.get(EXAMPLES) == "random" else "steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="Rewrite golden files; read the difference in review.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file `golden/<name>` beside the test; with `--update`, write it."""
    folder = Path(request.path).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = folder / name
        if request.config.getoption("--update"):
            folder.mkdir(exist_ok=True)
            file.write_bytes(text.encode())
        assert file.read_bytes().decode() == text, f"{file} differs; `pytest --update` rewrites it"

    return compare


@pytest.fixture(autouse=True, scope="session")
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's cache out of the tests, and the tests' results out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOETLC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_of_run(tmp_path_factory) as address:
        yield address


@pytest.fixture(scope="session")
def postgres(postgres_server: str) -> str:
    """A database of this process; what needs one for itself alone makes it with `new_database`."""
    return new_database(postgres_server)


BROWSER_TESTS = "test_page_in_browser.py"
"""Name of the files whose tests need a browser."""
GET_BROWSER = "install Chromium, for example with `apt-get install chromium`"


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run where a browser is required and missing, as in CI."""
    if os.environ.get("NOETL_BROWSER") == "required" and find_chromium() is None:
        raise pytest.UsageError(f"NOETL_BROWSER=required, and there is no browser: {GET_BROWSER}, or unset it")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Add a process to those that there are cores for: a test that waits leaves its core to another."""
    return (yield) + 1


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests that need a browser where there is none; the summary says so."""
    return True if collection_path.name == BROWSER_TESTS and find_chromium() is None else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report which external programs took part, and what was not run without them."""
    passed = terminalreporter.getreports("passed")
    for report in passed:
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
    if find_chromium() is None:
        files = Path(__file__).parent.rglob(BROWSER_TESTS)
        count = sum(file.read_text(encoding="utf-8").count("\ndef test_") for file in files)
        terminalreporter.section("NOT RUN", yellow=True)
        terminalreporter.write_line(f"{count} tests of pages in a browser ({BROWSER_TESTS}): {GET_BROWSER}.")
    elif in_browser := sum(BROWSER_TESTS in report.nodeid for report in passed):
        terminalreporter.write_line(f"browser tests: {in_browser} passed")
