"""Builds the wheel, installs it into a new environment and lints a file with it, away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAD_PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: smoke, path: ci/smoke}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: nowhere, when: "{{ event.name == 'step.done' }}"}]}
"""


def run(*command: str | Path, cwd: Path, expect: int = 0) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NOETLC"))}
    environment["NOETLC_CACHE"] = str(cwd / "cache")
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, text=True, capture_output=True)
    if done.returncode != expect:
        sys.exit(f"{command} ended with {done.returncode}, not {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
        run(sys.executable, *pip, "wheel", "--no-deps", "-w", place, ROOT, cwd=place)
        (wheel,) = place.glob("*.whl")
        venv.create(place / "env", with_pip=True)
        python = place / "env" / "bin" / "python"
        run(python, *pip, "install", "-c", ROOT / "constraints.txt", wheel, cwd=place)
        (place / "bad.yaml").write_text(BAD_PLAYBOOK, encoding="utf-8")
        noetlc = python.with_name("noetlc")
        findings = json.loads(run(noetlc, "lint", "--format", "json", "bad.yaml", cwd=place, expect=1))
        codes = [finding["code"] for finding in findings]
        if "P102" not in codes:
            sys.exit(f"the wheel's linter did not find the unknown step: {codes}")
        built = [path.name for name in ("playbook", "expression") for path in (place / "cache").glob(f"{name}-*.json")]
        if built:
            sys.exit(f"the wheel has no ready parse tables: it built {built}")
        run(python.with_name("noetlvm"), "conformance", "--stage", "run", cwd=place)
        version = run(noetlc, "--version", cwd=place).strip()
        run(python.with_name("noetlvm"), "--version", cwd=place)
        print(f"wheel smoke test: {wheel.name} lints from a clean environment ({version})")


if __name__ == "__main__":
    main()
