"""`make demo`: mistakes found before a run, a run that is killed and resumed, and the way of its tokens as a page.

It works on copies in a temporary folder and starts its own server, so it needs no network and can be repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import demo_page
import server

EXAMPLES = Path(__file__).resolve().parent
PAGE = EXAMPLES.parent / "build" / "demo.html"
FINISHED_BEFORE_KILL = 6
AT_ONCE = 2
"""`max_in_flight` of `orders.yaml`: so many charges are under way when the process is killed."""
PATIENCE_SECONDS = 60

Event = dict[str, Any]


class PaymentService:
    """What the demo's server does with a charge: prints it, and delays some until the client is killed."""

    def __init__(self, seconds: float) -> None:
        self.ledger = server.Ledger(self.received)
        self.seconds = seconds
        self.requests: list[demo_page.Request] = []
        """Of charges, in the order of arrival."""
        self.all_under_way = threading.Event()
        self.killed = threading.Event()
        self._printing = threading.Lock()

    def received(self, order: int, is_repeated: bool) -> None:
        begun = time.time()
        with self._printing:
            request = demo_page.Request(order, begun)
            self.requests.append(request)
            count = len(self.requests)
            if is_repeated:
                print(f"    payment service: order {order:>2} is requested again, with the same key", flush=True)
            else:
                print(f"    payment service: order {order:>2} is charged", flush=True)
        if count >= FINISHED_BEFORE_KILL + AT_ONCE:
            self.all_under_way.set()
        if count > FINISHED_BEFORE_KILL:
            self.killed.wait(PATIENCE_SECONDS)
        time.sleep(self.seconds)
        request.ended = time.time()


class Demo:
    """The commands of the demo, run one after another in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {"NOETLVM_DB": str(folder / "demo.db"), "COLUMNS": "80"}

    def show(self, program: str, *arguments: str, expect: int = 0) -> None:
        """Run a command as a user would, and print both."""
        started = self.start(program, *arguments)
        if (code := started.wait()) != expect:
            sys.exit(f"expected exit code {expect}, got {code}")

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        print(f"\n$ {program} {' '.join(arguments)}", flush=True)
        return subprocess.Popen([sys.executable, "-m", program, *arguments], cwd=self.folder, env=self.environment)

    def output(self, program: str, *arguments: str) -> str:
        words = [sys.executable, "-m", program, *arguments]
        done = subprocess.run(words, cwd=self.folder, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout

    def events(self) -> list[Event]:
        return [json.loads(line) for line in self.output("noetlvm", "events", "--json").splitlines()]


def headline(text: str) -> None:
    print(f"\n\n{text}\n{'=' * len(text)}", flush=True)


def find_mistakes(demo: Demo) -> None:
    headline("1. Mistakes are found before anything runs, each with its remedy")
    demo.show("noetlc", "lint", "orders_draft.yaml", expect=1)
    print("\nThe same playbook without mistakes, and complete:")
    demo.show("noetlc", "lint", "orders.yaml")


def survive(demo: Demo, service: PaymentService, port: int) -> float:
    """Kill a run in the middle and resume it; return when it was killed, in seconds since 1970."""
    headline("2. A run survives kill -9")
    print("12 orders are charged by HTTP, 2 at once. The process is killed in between.")
    demo.show("noetlc", "compile", "orders.yaml")
    running = demo.start("noetlvm", "run", "orders.nbc", "--set", f"api_url=http://127.0.0.1:{port}")
    if not service.all_under_way.wait(PATIENCE_SECONDS):
        sys.exit("the run did not get to the charges")
    time.sleep(service.seconds / 2)  # in the middle of these charges, so that the page shows them
    print(f"\n$ kill -9 {running.pid}     # 6 charges are finished, 2 are under way", flush=True)
    running.kill()
    running.wait()
    killed = time.time()
    service.killed.set()
    demo.show("noetlvm", "list")
    demo.show("noetlvm", "resume")
    return killed


def compare(events: list[Event], service: PaymentService) -> None:
    """Print what the log and the payment service say about the run, and fail if an effect or a token is missing."""
    charged = list(service.ledger.charges.values())
    requested = [request.order for request in service.requests]
    enqueued = [event["data"]["token"] for event in events if event["name"] == "token.enqueued"]
    used = [event["data"]["token"] for event in events if event["name"] == "step.scheduled"]
    finished_twice = set(requested[:FINISHED_BEFORE_KILL]) & set(requested[FINISHED_BEFORE_KILL:])
    headline("3. What happened")
    rows = (
        ("orders charged", f"{len(set(charged))} of {server.OPEN_ORDERS}"),
        ("charged twice", str(len(charged) - len(set(charged)))),
        ("finished charges that were requested again", str(len(finished_twice))),
        ("charges under way at the kill, requested again", str(len(service.ledger.repeated))),
        ("tokens that came to a step, that ran one", f"{len(enqueued)}, {len(used)}"),
    )
    for name, value in rows:
        print(f"  {name:<48}  {value}")
    print("\nA request that was under way has no outcome in the log, so it is sent again. It")
    print("has the same Idempotency-Key, by which the service knows it and charges once.")
    if sorted(charged) != list(range(1, server.OPEN_ORDERS + 1)) or finished_twice or sorted(enqueued) != sorted(used):
        sys.exit("an effect is missing or repeated, or a token is lost")


def draw(demo: Demo, events: list[Event], requests: list[demo_page.Request], killed: float, page: Path) -> None:
    headline("4. The way that the tokens took")
    picture = demo.output("noetlc", "graph", "orders.nbc", "--format", "svg")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(demo_page.render(picture, events, requests, killed), encoding="utf-8")
    shown = page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page
    print(f"Open in a browser: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE, help="file to write the page to")
    parser.add_argument("--seconds", type=float, default=0.25, help="how long a charge takes")
    options = parser.parse_args()
    service = PaymentService(options.seconds)
    server.Examples.ledger = service.ledger
    running = server.start()
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(Path(folder))
        for path in EXAMPLES.glob("orders*.yaml"):
            shutil.copy(path, folder)
        find_mistakes(demo)
        killed = survive(demo, service, running.server_port)
        events = demo.events()
        compare(events, service)
        draw(demo, events, service.requests, killed, options.page)
    running.shutdown()


if __name__ == "__main__":
    main()
