import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from noetlc.analysis.model import TaskView
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from noetlc.syntax.scalar_offsets import span_in_file
from noetlc.syntax.span import Span
from noetlvm.language.tool_kinds import find_kind

_PASSWORD_KEY = re.compile(r"(?:.*_)?(?:password|passwd|pwd|passphrase)")
_CREDENTIAL_KEY = re.compile(
    r"(?:.*_)?(?:token|secret|api_?key|(?:access|account|private|secret|signing|encryption)_?key|authorization)"
)
_PAGING_KEY = re.compile(
    r"(?:.*_)?(?:page|pagination|next|prev|sync|delta|continuation|cursor|resume|start|stop|end|idempotency)_token"
)
"""Tokens that are not credentials: page tokens."""

_SCHEME = re.compile(r"(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)
_STAND_IN = re.compile(
    r"""
      [\W_]* | [xX]+ | none | null                          # nothing, blanks, `***`, `xxxx`
    | <.*> | \$.* | %\{.*\} | \[.*\]                        # `<token>`, `$TOKEN`, `${TOKEN}`
    | [A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+                         # the name of an environment variable
    | [a-z0-9_.-]*(?:/[a-z0-9_.-]+)+                        # a path
    | (?:[a-z][a-z0-9+.-]*://|arn:|env:|file:|vault:)\S+    # a reference to where the secret is
    """,
    re.VERBOSE | re.DOTALL,
)

_SHAPES = re.compile(
    r"""(?<![\w-])(?:
      (?P<aws>A[KS]IA[0-9A-Z]{16}\b)
    | (?P<github>gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_\w{22,})
    | (?P<gitlab>glpat-[\w-]{20,})
    | (?P<slack>xox[abeoprs]-[A-Za-z0-9-]{10,})
    | (?P<stripe>[rs]k_live_[A-Za-z0-9]{16,})
    | (?P<openai>sk-(?=[\w-]*\d)[\w-]{20,})
    | (?P<google>AIza[\w-]{35})
    | (?P<npm>npm_[A-Za-z0-9]{36})
    | (?P<jwt>eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})
    | (?P<bearer>[Bb]earer[ ](?=[\w.~+/=-]*\d)[\w.~+/=-]{16,})
    | (?P<key>-----BEGIN[ ][A-Z ]{0,30}PRIVATE[ ]KEY-----)
    )
    | ://(?P<url>[^\s/:@{}<>$*'"]{1,128}:(?![xX*]+@)[^\s/@{}<>$*'"]{1,256})@
    """,
    re.VERBOSE,
)
_TITLES = {
    "aws": "an AWS access key",
    "github": "a GitHub token",
    "gitlab": "a GitLab token",
    "slack": "a Slack token",
    "stripe": "a Stripe key",
    "openai": "an API key",
    "google": "a Google API key",
    "npm": "an npm token",
    "jwt": "a signed token (JWT)",
    "bearer": "a bearer token",
    "key": "a private key",
    "url": "a user name and password in a URL",
}
"""Each shape of a credential that can be recognised, by the name of its group."""


class _Literal(NamedTuple):
    """A value as it is written, and its key; no key where the key has no meaning."""

    key: str
    scalar: Scalar


class LiteralCredential(Rule):
    severity = Severity.WARNING
    summary = "A password, token or key is written into the playbook."
    why = (
        "A playbook is copied into the catalogue, into version control and into bundles. Everyone who can read one of "
        "them has the credential, and rotating it means changing the playbook."
    )
    example = """
    - - step: load
    -   tool:
    -     - orders:
    -         kind: postgres
    -         host: db.example.com
    -         user: loader
    -         password: s3cr3t-and-long
    -         command: SELECT * FROM orders
    + apiVersion: noetl.io/v2
    + kind: Playbook
    + metadata: {name: load, path: shop/load}
    + keychain:
    +   - {name: pg_main, kind: postgres_credential}
    + workflow:
    +   - step: load
    +     tool:
    +       - orders: {kind: postgres, auth: pg_main, command: SELECT * FROM orders}
    """
    covers = ("S44", "brief §2.2", "step spec §2.1")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for key, scalar in _literals(model):
            text = scalar.text
            shape = _SHAPES.search(text) if isinstance(scalar.value, str) else None
            if shape and shape.lastgroup:
                at = span_in_file(model.source.text, scalar, Span(*shape.span(shape.lastgroup)))
                yield self._finding(at, f"{_TITLES[shape.lastgroup]} is written into the playbook")
            elif _is_credential(key, scalar) and text not in model.credentials:
                yield self._finding(scalar.span, f"the value of `{key}` is a credential written into the playbook")

    def _finding(self, span: Span, message: str) -> Finding:
        help = "declare it in `keychain` and give the task `auth: <name>`, or read `{{ keychain.<name> }}` in a header"
        return self.finding(span, message, help)


def _is_credential(key: str, scalar: Scalar) -> bool:
    """Return whether a value can be nothing but a credential, by its key."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_")
    if _PASSWORD_KEY.fullmatch(name):
        if isinstance(scalar.value, int) and not isinstance(scalar.value, bool):
            return True
    elif not _CREDENTIAL_KEY.fullmatch(name) or _PAGING_KEY.fullmatch(name):
        return False
    if not isinstance(scalar.value, str) or scalar.is_template:
        return False
    return not _STAND_IN.fullmatch(_SCHEME.sub("", scalar.text, count=1).strip())


def _literals(model: Model) -> Iterator[_Literal]:
    """Yield every value of the playbook that is data, with its key."""
    playbook = model.playbook
    yield from _under(playbook.workload.entries if playbook.workload else ())
    for credential in playbook.keychain or ():
        # A provider's `secret` is where it looks, not what it finds.
        yield from _under(credential.extra, frozenset({"secret"}))
    spec = playbook.executor_spec
    yield from _under(spec.extra if spec else ())
    for view in model.tasks:
        yield from _under(view.task.extra, _declared_as_open(view))
        yield from _under(view.task.settings)


def _declared_as_open(view: TaskView) -> frozenset[str]:
    """Return the inputs that the kind declares as not secret, whatever their names are."""
    kind = find_kind(view.kind) if view.kind else None
    return frozenset(item.name for item in kind.inputs if not item.takes_secret) if kind else frozenset()


def _under(entries: Iterable[MappingEntry], unsuspected: frozenset[str] = frozenset()) -> Iterator[_Literal]:
    waiting: list[tuple[str, Node]] = [
        ("" if entry.key.text in unsuspected else entry.key.text, entry.value) for entry in entries
    ]
    waiting.reverse()
    while waiting:
        key, node = waiting.pop()
        if isinstance(node, Mapping):
            waiting.extend((entry.key.text, entry.value) for entry in reversed(node.entries))
        elif isinstance(node, Sequence):
            waiting.extend((key, item) for item in reversed(node.items))
        else:
            yield _Literal(key, node)
