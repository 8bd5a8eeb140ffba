.files ["task-policy.yaml"]

.playbook "conformance/task-policy" "task_policy"
  .entry "start"

.step "start" @"step" @5:11
  .tool ( @"tool"
  fetch:
    ENTER "fetch"                                @7:9      # task := fetch, attempt := 1
  L1:
    UNLESS ( @"task fetch"
      NAME ctx                                     @13:29
      ATTR "done"                                  @13:33    # ctx.done
      TRUTH                                        @13:26    # truth(ctx.done)
      RETURN
    ) L2                                         @13:25    # guard ? next : L2
    SKIP L6                                      @13:19    # → L6
  L2:
    CALL "http" (
      TEXT_BEGIN                                   @9:17
      EMIT_CONST "https://example.com/"
      NAME ctx                                     @9:40
      ATTR "page"                                  @9:44     # ctx.page
      CONST 1                                      @9:59
      FILTER "default" 1 [] 0                      @9:51     # default(ctx.page, 1)
      REQUIRE "url"                                @9:40     # default(ctx.page, 1)
      EMIT                                                   # default(ctx.page, 1) →
      TEXT_END                                     @9:17
      RECORD ["url"]                               @7:9      # {text}
      RETURN
    ) (
      CONST {"timeout": {"connect": 10, "read": 60}, "follow_redirects": false, "verify_tls": true} @11:13
      RETURN
    )                                            @7:9      # outcome := http(inputs, spec)
    UNLESS (
      NAME outcome                                 @15:29
      ATTR "status"                                @15:37    # outcome.status
      CONST "error"                                @15:47
      COMPARE ==                                   @15:44    # outcome.status == "error"
      KEEP_UNLESS L1                               @15:29    # outcome.status == "error" → | outcome.status == "error"
      NAME outcome                                 @15:59
      ATTR "http"                                  @15:67    # outcome.http
      ATTR "status"                                @15:72    # outcome.http.status
      CONST [429, 503]                             @15:82
      COMPARE in                                   @15:79    # outcome.http.status in [429, 503]
    L1:
      TRUTH                                        @15:26    # truth(…)
      RETURN
    ) L3                                         @15:25    # guard ? next : L3
    RETRY 4 exponential (@16:80 CONST 0.5; RETURN) L1 @16:25 # attempt < 4 ? wait, L1 : next
    FAIL                                                   # ∎ failed
  L3:
    UNLESS (
      NAME outcome                                 @17:29
      ATTR "status"                                @17:37    # outcome.status
      CONST "error"                                @17:47
      COMPARE ==                                   @17:44    # outcome.status == "error"
      TRUTH                                        @17:26    # truth(outcome.status == "error")
      RETURN
    ) L4                                         @17:25    # guard ? next : L4
    FAIL                                         @18:25    # ∎ failed
  L4:
    UNLESS (
      NAME outcome                                 @19:29
      ATTR "result"                                @19:37    # outcome.result
      ATTR "data"                                  @19:44    # outcome.result.data
      ATTR "more"                                  @19:49    # outcome.result.data.more
      TRUTH                                        @19:26    # truth(outcome.result.data.more)
      RETURN
    ) L5                                         @19:25    # guard ? next : L5
    PATCH none (
      NAME ctx                                     @20:69
      ATTR "page"                                  @20:73    # ctx.page
      CONST 1                                      @20:80
      ADD                                          @20:69    # ctx.page + 1
      REQUIRE "set_ctx.page"                                 # ctx.page + 1
      RECORD ["page"]                              @20:57    # {ctx.page + 1}
      RETURN
    )                                            @20:25    # iter ∪= i, ctx ∪= c
    JUMP_TO fetch                                          # _prev := outcome.result, → fetch
  L5:
    PATCH none (@22:49 CONST {"done": true}; RETURN) @22:27 # iter ∪= i, ctx ∪= c
    BREAK                                                  # _prev := outcome.result ∎
  L6:
    END                                          @7:9      # ∎ done
  )
