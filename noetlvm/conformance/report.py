"""The results of the cases: as text, as JSON, and as JUnit XML for continuous integration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

_SHOWN = 3
"""Problems of one case that the text shows."""
_WIDTH = 400


class CaseResult(NamedTuple):
    stage: str
    id: str
    problems: list[str]
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.problems


class SuiteReport(NamedTuple):
    """The results of all cases that were run, and the rows of the table that no case checks."""

    mode: str
    results: list[CaseResult]
    rows_without_case: list[str]

    @property
    def failed(self) -> list[CaseResult]:
        return [result for result in self.results if not result.passed]

    @property
    def passed(self) -> bool:
        return bool(self.results) and not self.failed and not self.rows_without_case

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "mode": self.mode,
            "passed": len(self.results) - len(self.failed),
            "failed": len(self.failed),
            "rows_without_case": self.rows_without_case,
            "cases": [
                {"stage": one.stage, "id": one.id, "passed": one.passed, "problems": one.problems}
                for one in self.results
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report for people: what failed, and a line for each stage."""
        for result in self.failed:
            yield f"{result.stage}/{result.id} fails"
            for problem in result.problems[:_SHOWN]:
                yield f"    {problem if len(problem) <= _WIDTH else problem[:_WIDTH] + ' …'}"
        for stage in dict.fromkeys(result.stage for result in self.results):
            of_stage = [result for result in self.results if result.stage == stage]
            passed = sum(result.passed for result in of_stage)
            yield f"{stage:8} {passed} of {len(of_stage)} cases pass ({self.mode})"
        if self.rows_without_case:
            yield f"no case checks these rows of requirements.csv: {', '.join(self.rows_without_case)}"

    def junit(self) -> bytes:
        root = ElementTree.Element("testsuites")
        for stage in dict.fromkeys(result.stage for result in self.results):
            root.append(_suite(f"{self.mode}.{stage}", [one for one in self.results if one.stage == stage]))
        if self.rows_without_case:
            problem = f"no case checks {', '.join(self.rows_without_case)}"
            root.append(_suite("requirements", [CaseResult("requirements", "every row has a case", [problem])]))
        ElementTree.indent(root)
        return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(name: str, results: Sequence[CaseResult]) -> ElementTree.Element:
    failures = sum(not result.passed for result in results)
    counts = {"name": name, "tests": str(len(results)), "failures": str(failures)}
    suite = ElementTree.Element("testsuite", counts)
    for result in results:
        attributes = {"classname": name, "name": result.id, "time": f"{result.seconds:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        if not result.passed:
            message = _printable(result.problems[0])
            ElementTree.SubElement(case, "failure", {"message": message}).text = _printable("\n".join(result.problems))
    return suite


def _printable(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)
