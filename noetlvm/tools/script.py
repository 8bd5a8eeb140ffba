"""Code and SQL that a task reads from a file or an HTTP address: `script: {uri, source: {type, …}}`, or a text.

The compiler reads what is written out and within its reach, and the bundle has the text; the rest is read at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.tools.call import ToolCall
from noetlvm.tools.inputs import InputError

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources

SCRIPT = (
    "A text, or `{uri: …}` of a file or an http(s) address, at most 1 MiB. An address without templates is "
    "read when the playbook is compiled, if possible, and its text is in the bundle; otherwise the task reads it."
)
SCRIPT_BYTES_MAX = 1024 * 1024


class ScriptSource(NamedTuple):
    scheme: str
    """`text`, `file`, `http`, or the type of a source that only a plugin can read."""
    address: str
    """The text itself, a path, or a URL."""
    headers: Mapping[str, Any] = {}


def read_script(script: Any) -> ScriptSource:
    """Return where a script is. Raises InputError."""
    if isinstance(script, str):
        return ScriptSource("text", script)
    if not isinstance(script, Mapping) or not isinstance(script.get("uri"), str):
        raise InputError("`script` must be text or a mapping with `uri`")
    uri, source = script["uri"], script.get("source") or {}
    source = {"type": source} if isinstance(source, str) else source
    if not isinstance(source, Mapping):
        raise InputError("`script.source` must be a mapping with `type`")
    scheme = str(source.get("type") or uri.partition("://")[0] if "://" in uri or source.get("type") else "file")
    if scheme in ("http", "https"):
        base = source.get("endpoint")
        url = uri if "://" in uri else f"{str(base or '').rstrip('/')}/{uri.lstrip('/')}" if base else ""
        if not url:
            raise InputError("`script`: give a whole address as `uri`, or the rest of it as `source.endpoint`")
        return ScriptSource("http", url, source.get("headers") or {})
    return ScriptSource(scheme, uri.removeprefix("file://"))


async def script_text(script: Any, call: ToolCall, resources: Resources) -> str:
    """Return the text of a script. Raises InputError."""
    where = read_script(script)
    if where.scheme == "text":
        return where.address
    if where.scheme == "file":
        return file_text(Path(where.address))
    if where.scheme == "http":
        return await _http_text(where, call, resources)
    raise InputError(f"`script`: nothing here reads `{where.scheme}`; use a file or an http(s) address")


def file_text(path: Path) -> str:
    """Return the text of a script file. Raises InputError."""
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(SCRIPT_BYTES_MAX + 1)
    except OSError as problem:
        raise InputError(f"`script`: {path} cannot be read: {problem.strerror}") from None
    if len(data) > SCRIPT_BYTES_MAX:
        raise InputError(f"`script`: {path} is larger than {SCRIPT_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"`script`: {path} is no UTF-8 text") from None


async def _http_text(where: ScriptSource, call: ToolCall, resources: Resources) -> str:
    from noetlvm.tools import http
    from noetlvm.tools.inputs import prepared

    request = ToolCall("http", {"url": where.address, "headers": dict(where.headers)}, {}, call.key)
    outcome = await http.run(prepared(http.KIND, request), resources)
    if outcome["status"] == "error":
        raise InputError(f"`script`: {outcome['error']['message']}")
    text = outcome["result"]["data"]
    if not isinstance(text, str):
        raise InputError(f"`script`: {where.address} is not text")
    if len(text.encode()) > SCRIPT_BYTES_MAX:
        raise InputError(f"`script`: {where.address} is larger than {SCRIPT_BYTES_MAX} bytes")
    return text
