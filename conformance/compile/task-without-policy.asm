.files ["task-without-policy.yaml"]

.playbook "conformance/task-without-policy" "task_without_policy"
  .entry "start"

.step "start" @"step" @5:11
  .tool ( @"tool"
  fetch:
    ENTER "fetch"                                @7:9      # task := fetch, attempt := 1
    CALL "http" (@"task fetch" @7:9 CONST {"url": "https://example.com"}; RETURN) (
      CONST {"timeout": {"connect": 10, "read": 60}, "follow_redirects": false, "verify_tls": true} @7:9
      RETURN
    )                                                      # outcome := http(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE keep                                          # _prev := outcome.result, → keep
  L1:
    FAIL                                                   # ∎ failed
  keep:
    ENTER "keep"                                 @8:9      # task := keep, attempt := 1
    CALL "noop" (@"task keep" @8:9 CONST {}; RETURN) (@8:9 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L2                                            # error ? L2 : next
    CONTINUE L3                                            # _prev := outcome.result, → L3
  L2:
    FAIL                                                   # ∎ failed
  L3:
    END                                                    # ∎ done
  )
