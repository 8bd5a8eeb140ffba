from noetlc.analysis.inputs import rewrite
from noetlc.analysis.placement import entry_of, result_store
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Mapping, Node, Scalar
from noetlvm.language.placement import RESULT_STORES
from noetlvm.nearest import nearest


class ResultStoreSetting(Rule):
    severity = Severity.ERROR
    summary = "`executor.spec.result.store` does not name a known result store."
    why = "Large results go to this store. A server refuses a playbook that names a store which it does not offer."
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: shop/load}
      executor:
    -   spec: {result: {store: {kind: nats_objects}}}
    +   spec: {result: {store: {kind: nats_object, bucket: results}}}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("S46", "brief §2.2")

    def check(self, model: Model) -> Findings:
        store = result_store(model.playbook)
        if store is None:
            return
        kind = entry_of(store, "kind")
        if not isinstance(store, Mapping) or not isinstance(kind, Scalar):
            kinds = ", ".join(f"`{name}`" for name in RESULT_STORES)
            message = "`executor.spec.result` names the store of large results with `store: {kind: …}`"
            yield self.finding(store.span, message, f"the kinds are {kinds}")
            return
        if kind.text not in RESULT_STORES:
            meant = nearest(kind.text, sorted(RESULT_STORES))
            help = f"did you mean `{meant}`?" if meant else f"the kinds are {', '.join(RESULT_STORES)}"
            yield self.finding(kind.span, f"there is no result store `{kind.text}`", help, fix=rewrite(kind, meant))
            return
        yield from self._check_options(store, kind)

    def _check_options(self, store: Mapping, kind: Scalar) -> Findings:
        known = ("kind", *RESULT_STORES[kind.text])
        for entry in store.entries:
            if entry.key.text not in known:
                message = f"the store `{kind.text}` has no setting `{entry.key.text}`"
                yield self.finding(entry.key.span, message, f"it has {', '.join(f'`{name}`' for name in known)}")
            elif not _is_plain_text(entry.value):
                message = f"`{entry.key.text}` of a store must be plain text"
                yield self.finding(entry.value.span, message, "write text without a template")


def _is_plain_text(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and not node.is_template
