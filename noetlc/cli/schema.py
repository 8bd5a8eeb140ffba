"""`noetlc schema`: the language as JSON Schema, for editors."""

from __future__ import annotations

import json
from typing import Annotated

from noetlc.files import write_file
from noetlc.schema import playbook_schema
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import SUCCESS


def schema(
    output: Annotated[str | None, Option(metavar="FILE", help="Write to a file.")] = None,
) -> int:
    """Print the JSON Schema of playbooks, for completion and checks in editors.

    \b
    Examples:
      noetlc schema --output playbook.schema.json
      # then, as the first line of a playbook:
      # yaml-language-server: $schema=./playbook.schema.json
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    write_file(output, (json.dumps(playbook_schema(), indent=2, ensure_ascii=False) + "\n").encode())
    return SUCCESS
