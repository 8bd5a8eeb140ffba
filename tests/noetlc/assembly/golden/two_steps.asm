.playbook "samples/sample" "sample"
  .metadata {"labels": {"team": "data"}, "version": 2}
  .executor {"profile": "local"}
  .entry "start"
  .final "done"
  .workload {
    "url": "https://example.org",
    "items": [
      1,
      2.5,
      null,
      true,
      -7,
      1180591620717411303424
    ]
  }
  .credential "token" "secret" {"provider": "env"}

.step "start"
  .settings {"emit": ["step.done"]}
  .admit (
    BARE "ready"
    CONST false
    CONST true
    FILTER "default" 1 ["boolean"] 0                       # default(ready, false, true)
    TRUTH                                                  # truth(default(ready, false, true))
    RETURN
  )
  .loop "item" width 4 parallel reduce [["page", "max"], ["seen", "extend"]]
    .in (NAME workload; ATTR "items"; REQUIRE "in"; RETURN)
  .arc "done" handles_failure
    .when (NAME event; ATTR "error"; TRUTH; RETURN)
    .args (CONST {"from": "start"}; RETURN)
  .arc "done"
  .tool (
  fetch:
    ENTER "fetch"                                          # task := fetch, attempt := 1
  L1:
    CALL "http" (NAME workload; ATTR "url"; RECORD ["url"]; RETURN) (CONST {}; RETURN) # outcome := http(inputs, spec)
    UNLESS (NAME outcome; ATTR "status"; CONST "error"; COMPARE ==; TRUTH; RETURN) L2 # guard ? next : L2
    RETRY 3 linear (CONST 0.5; RETURN) L1                  # attempt < 3 ? wait, L1 : next
    FAIL                                                   # ∎ failed
  L2:
    PATCH none (CONST {"page": 1}; RETURN)                 # iter ∪= i, ctx ∪= c
    CONTINUE L3                                            # _prev := outcome.result, → L3
  L3:
    END                                                    # ∎ done
  )

.step "done"
