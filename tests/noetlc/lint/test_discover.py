from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from noetlc.lint.discover import Target, discover

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "b.yaml",
        "a.yml",
        "notes.txt",
        "deep/c.yaml",
        ".git/d.yaml",
        ".venv/e.yaml",
        "node_modules/f.yaml",
        "build/g.yaml",
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paths_of(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [target.path for target in discover(paths, exclude, ".").targets]


def test_a_folder_gives_its_yaml_in_order_without_hidden_and_installed_folders(tree: Path) -> None:
    assert paths_of(".") == ["a.yml", "b.yaml", "build/g.yaml", "deep/c.yaml"]


def test_excluded_files_and_folders_are_left_out(tree: Path) -> None:
    assert paths_of(".", exclude=("build", "*.yml")) == ["b.yaml", "deep/c.yaml"]


def test_a_named_file_is_taken_whatever_it_is_called_and_excluded(tree: Path) -> None:
    found = discover(["notes.txt", "build/g.yaml"], ("build",), ".")
    assert found.targets == (Target("notes.txt", named=True), Target("build/g.yaml", named=True))


def test_a_glob_is_expanded_and_its_files_must_be_playbooks(tree: Path) -> None:
    found = discover(["**/*.yaml"], (), ".")
    assert found.targets == tuple(Target(path, named=False) for path in ("b.yaml", "build/g.yaml", "deep/c.yaml",
                                                                         "node_modules/f.yaml"))  # fmt: skip


def test_a_file_that_is_called_like_a_glob_is_that_file(tree: Path) -> None:
    (tree / "[b].yaml").write_text("")
    assert discover(["[b].yaml"], (), ".").targets == (Target("[b].yaml", named=True),)


def test_a_file_is_taken_once_and_naming_it_counts(tree: Path) -> None:
    found = discover([".", "./b.yaml", str(tree / "a.yml")], (), ".")
    assert sorted((target.path, target.named) for target in found.targets if target.named) == [
        (str(tree / "a.yml"), True),
        ("b.yaml", True),
    ]
    assert len(found.targets) == 4


def test_what_is_not_there_is_said(tree: Path) -> None:
    found = discover(["nowhere.yaml", "x*.yaml", "b.yaml"], (), ".")
    assert found.problems == ("nowhere.yaml: no such file or folder", "x*.yaml: no file matches")
    assert [target.path for target in found.targets] == ["b.yaml"]


def test_an_empty_folder_is_no_problem(tmp_path: Path) -> None:
    assert discover([str(tmp_path)], (), ".") == discover([], (), ".")


def test_a_link_to_a_parent_folder_is_not_followed(tree: Path) -> None:
    (tree / "deep" / "up").symlink_to(tree)
    assert paths_of("deep") == ["deep/c.yaml"]
