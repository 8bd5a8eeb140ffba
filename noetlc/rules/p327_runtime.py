from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlvm.limits import PROFILES, RUNTIME, runtime_objection
from noetlvm.nearest import did_you_mean


class Runtime(Rule):
    severity = Severity.WARNING
    summary = "`executor.profile` or `executor.version` is unknown to this runtime."
    why = (
        "`profile: local` runs the iterations of every loop on one worker, unless the loop says `exec: distributed`. "
        "With `distributed`, the default, parallel iterations go to any worker. Any other profile has no effect. "
        f"`version` names the runtime for which a playbook was written, here `{RUNTIME}`. A later version is an "
        "error, because the request would be refused; a version of another runtime is not checked."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: example, path: examples/example}
    - executor: {profile: lokal, version: noetl-runtime/3}
    + executor: {profile: local, version: noetl-runtime/2}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("brief §2.2", "S63")
    stops_compiler = False

    def check(self, model: Model) -> Findings:
        executor = model.playbook.executor
        profile = executor.profile if executor else None
        if profile is not None and profile.text not in PROFILES:
            names = " or ".join(f"`{name}`" for name in PROFILES)
            help = did_you_mean(profile.text, PROFILES) or f"write {names}, or leave it out"
            yield self.finding(profile.span, f"there is no profile `{profile.text}`; it has no effect", help)
        version = executor.version if executor else None
        if version is None:
            return
        objection = runtime_objection(version.value)
        if objection:
            help = f"write `{RUNTIME}` if it runs there too, or leave it out"
            yield self.finding(version.span, objection, help, severity=Severity.ERROR)
        elif not version.text.startswith(RUNTIME.partition("/")[0]):
            help = f"write `{RUNTIME}`, or leave it out"
            yield self.finding(
                version.span, f"`{version.text}` is not a version of this runtime and is not checked", help
            )
