.files ["loop-defaults.yaml"]

.playbook "conformance/loop-defaults" "loop_defaults"
  .entry "start"
  .workload {"cities": ["Oslo", "Bern"], "hotels": ["Ritz"]}

.step "start" @"step" @6:11
  .loop "city" width 1
    .in ( @"loop"
      NAME workload                                @7:21
      ATTR "cities"                                @7:30     # workload.cities
      REQUIRE "in"                                 @7:21     # workload.cities
      RETURN                                       @7:17
    )
  .arc "spread" handles_failure @"arc" @9:28
    .when (
      NAME event                                   @9:46
      ATTR "name"                                  @9:52     # event.name
      CONST "loop.done"                            @9:60
      COMPARE ==                                   @9:57     # event.name == "loop.done"
      TRUTH                                        @9:43     # truth(event.name == "loop.done")
      RETURN
    )
  .tool ( @"tool"
  task_1:
    ENTER "task_1"                               @8:13     # task := task_1, attempt := 1
    CALL "noop" (@"task task_1" @8:11 CONST {}; RETURN) (@8:11 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )

.step "spread" @"step" @10:11
  .loop "city" width 32 parallel distributed
    .in ( @"loop"
      NAME workload                                @12:15
      ATTR "cities"                                @12:24    # workload.cities
      REQUIRE "in"                                 @12:15    # workload.cities
      RETURN                                       @12:11
    )
  .loop "hotel" width 4 parallel reduce [["count", "sum"], ["seen", "append"]]
    .in (
      NAME workload                                @16:17
      ATTR "hotels"                                @16:26    # workload.hotels
      REQUIRE "in"                                 @16:17    # workload.hotels
      RETURN                                       @16:13
    )
  .tool ( @"tool"
  note:
    ENTER "note"                                 @20:9     # task := note, attempt := 1
    CALL "noop" (@"task note" @20:9 CONST {}; RETURN) (@23:13 CONST {}; RETURN) # outcome := noop(inputs, spec)
    PATCH none (
      NAME iter                                    @26:64
      ATTR "parent"                                @26:69    # iter.parent
      ATTR "city"                                  @26:76    # iter.parent.city
      REQUIRE "set_ctx.seen"                       @26:64    # iter.parent.city
      CONST 1                                      @26:93
      RECORD ["seen", "count"]                     @26:52    # {iter.parent.city, 1}
      RETURN
    )                                            @26:27    # iter ∪= i, ctx ∪= c
    CONTINUE L1                                            # _prev := outcome.result, → L1
  L1:
    END                                          @20:9     # ∎ done
  )
