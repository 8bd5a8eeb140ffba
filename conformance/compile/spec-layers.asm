.files ["spec-layers.yaml"]

.playbook "conformance/spec-layers" "spec_layers"
  .entry "start"

.step "start" @"step" @9:11
  .loop "page" width 1
    .in (@"loop" @12:11 CONST [1, 2]; RETURN)
  .tool ( @"tool"
  fetch:
    ENTER "fetch"                                @16:9     # task := fetch, attempt := 1
    CALL "http" ( @"task fetch"
      TEXT_BEGIN                                   @18:17
      EMIT_CONST "https://example.com/"
      NAME iter                                    @18:40
      ATTR "page"                                  @18:45    # iter.page
      REQUIRE "url"                                @18:40    # iter.page
      EMIT                                                   # iter.page →
      TEXT_END                                     @18:17
      RECORD ["url"]                               @16:9     # {text}
      RETURN
    ) (
      CONST {
        "timeout": {
          "connect": 9,
          "read": 30
        },
        "follow_redirects": false,
        "verify_tls": true,
        "tags": [
          "step"
        ],
        "retries": 2
      }                                            @20:13
      RETURN
    )                                                      # outcome := http(inputs, spec)
    UNLESS (
      NAME outcome                                 @23:29
      ATTR "status"                                @23:37    # outcome.status
      CONST "error"                                @23:47
      COMPARE ==                                   @23:44    # outcome.status == "error"
      TRUTH                                        @23:26    # truth(outcome.status == "error")
      RETURN
    ) L1                                         @23:25    # guard ? next : L1
    FAIL                                         @24:25    # ∎ failed
  L1:
    CONTINUE L2                                  @26:27    # _prev := outcome.result, → L2
  L2:
    END                                          @16:9     # ∎ done
  )
