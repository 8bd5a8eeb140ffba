.files ["surroundings.yaml"]

.playbook "conformance/surroundings" "surroundings" no_next_is_error
  .executor {
    "profile": "local",
    "version": "noetl-runtime/1",
    "spec": {
      "policy": {
        "limits": {
          "max_transitions": 50
        }
      }
    }
  }
  .entry "second"
  .final "last"
  .workload {"b": 1, "a": {"z": [true, null, 1.5, "x"]}}
  .credential "api" "bearer" {"variable": "API_TOKEN"}

.step "first" @"step" @16:11

.step "second" @"step" @17:11
  .arc "first" handles_failure @"arc" @19:28
    .when (
      NAME event                                   @19:45
      ATTR "name"                                  @19:51    # event.name
      CONST "step.done"                            @19:59
      COMPARE ==                                   @19:56    # event.name == "step.done"
      TRUTH                                        @19:42    # truth(event.name == "step.done")
      RETURN
    )
  .tool ( @"tool"
  task_1:
    ENTER "task_1"                               @18:13    # task := task_1, attempt := 1
    CALL "http" ( @"task task_1"
      CONST {"url": "https://example.com", "auth": "api"} @18:11
      RETURN
    ) (
      CONST {"timeout": {"connect": 10, "read": 60}, "follow_redirects": false, "verify_tls": true} @18:11
      RETURN
    )                                                      # outcome := http(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )

.step "last" @"step" @20:11
