.files ["sample.yaml"]

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

.step "start" @"part 1" @1:1
  .settings {"emit": ["step.done"]}
  .admit ( @"part 2"
    BARE "ready"                                 @2:1
    CONST false                                  @2:3
    CONST true                                   @2:5
    FILTER "default" 1 ["boolean"] 0             @2:7      # default(ready, false, true)
    TRUTH                                        @2:9      # truth(default(ready, false, true))
    RETURN                                       @2:11
  )
  .loop "item" width 4 parallel reduce [["page", "max"], ["seen", "extend"]]
    .in ( @"part 0"
      NAME workload                                @3:1
      ATTR "items"                                 @3:3      # workload.items
      REQUIRE "in"                                 @3:5      # workload.items
      RETURN                                       @3:7
    )
  .arc "done" handles_failure @"part 1" @4:1
    .when ( @"part 2"
      NAME event                                   @5:1
      ATTR "error"                                 @5:3      # event.error
      TRUTH                                        @5:5      # truth(event.error)
      RETURN                                       @5:7
    )
    .args ( @"part 0"
      CONST {"from": "start"}                      @6:1
      RETURN                                       @6:3
    )
  .arc "done" @"part 1" @7:1
  .tool ( @"part 2"
  fetch:
    ENTER "fetch"                                @8:1      # task := fetch, attempt := 1
  L1:
    CALL "http" ( @"part 0"
      NAME workload                                @9:1
      ATTR "url"                                   @9:3      # workload.url
      RECORD ["url"]                               @9:5      # {workload.url}
      RETURN                                       @9:7
    ) ( @"part 1"
      CONST {}                                     @10:1
      RETURN                                       @10:3
    )                                            @8:3      # outcome := http(inputs, spec)
    UNLESS ( @"part 2"
      NAME outcome                                 @11:1
      ATTR "status"                                @11:3     # outcome.status
      CONST "error"                                @11:5
      COMPARE ==                                   @11:7     # outcome.status == "error"
      TRUTH                                        @11:9     # truth(outcome.status == "error")
      RETURN                                       @11:11
    ) L2                                         @8:5      # guard ? next : L2
    RETRY 3 linear ( @"part 0"
      CONST 0.5                                    @12:1
      RETURN                                       @12:3
    ) L1                                         @8:7      # attempt < 3 ? wait, L1 : next
    FAIL                                         @8:9      # ∎ failed
  L2:
    PATCH none ( @"part 1"
      CONST {"page": 1}                            @13:1
      RETURN                                       @13:3
    )                                            @8:11     # iter ∪= i, ctx ∪= c
    CONTINUE L3                                  @8:13     # _prev := outcome.result, → L3
  L3:
    END                                          @8:15     # ∎ done
  )

.step "done" @"part 2" @14:1
