from noetlc.net.source import Precedence, source_net
from noetlc.rules.p215_unresolved_name import can_have_run
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity


class BareName(Rule):
    severity = Severity.NOTE
    summary = "A name is written without its namespace."
    why = (
        "A bare name is looked up in `args`, `ctx`, `iter` and `workload`, then among the steps. If another step "
        "starts to write such a key, this template reads a different value. This is a warning if a step of that name "
        "may be meant."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: { name: example, path: examples/example }
      workload: { api_url: "https://example.com" }
      workflow:
        - step: start
    -     tool: { kind: http, url: "{{ api_url }}/items" }
    +     tool: { kind: http, url: "{{ workload.api_url }}/items" }
    """
    covers = ("formal §3.3", "S11")

    def check(self, model: Model) -> Findings:
        order: Precedence | None = None
        for reading in model.readings:
            site = reading.site
            for use in reading.names.uses:
                found = [] if reading.is_visible(use.name) else model.definitions.namespaces_of(use.name, site)
                if not found:
                    continue
                place = model.place(site, use.node.span)
                explicit = f"{found[0]}.{use.name}"
                if found[0] == "workload" and use.name in model.steps_by_name:
                    order = order or Precedence(source_net(model))
                    if can_have_run(order, site, use.name):
                        yield self.finding(
                            place,
                            f"`{use.name}` here reads `{explicit}`, not the result of step `{use.name}`",
                            f"write `{explicit}`, or rename the step to read its result",
                            severity=Severity.WARNING,
                        )
                        continue
                others = f"; `{found[1]}.{use.name}` is there as well" if len(found) > 1 else ""
                fix = Fix(f"write `{explicit}`", (Edit(place, explicit),), safe=False)
                yield self.finding(
                    place, f"`{use.name}` here reads `{explicit}`{others}", f"write `{explicit}`", fix=fix
                )
