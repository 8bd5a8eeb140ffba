.files ["gate-and-arcs.yaml"]

.playbook "conformance/gate-and-arcs" "gate_and_arcs"
  .entry "start"

.step "start" inclusive @"step" @5:11
  .arc "guarded" @"arc" @9:17
    .when (
      NAME ctx                                     @10:21
      ATTR "ready"                                 @10:25    # ctx.ready
      TRUTH                                        @10:18    # truth(ctx.ready)
      RETURN
    )
    .args (
      NAME ctx                                     @11:26
      ATTR "n"                                     @11:30    # ctx.n
      REQUIRE "args.n"                             @11:26    # ctx.n
      CONST [1, 2]                                 @11:44
      RECORD ["n", "fixed"]                        @11:17    # {ctx.n, [1, 2]}
      RETURN
    )
  .arc "guarded" @12:17

.step "guarded" drops_denied @"step" @13:11
  .settings {"lifecycle": {"timeout_s": 60}}
  .admit ( @"admit"
    NAME args                                    @19:25
    ATTR "n"                                     @19:30    # args.n
    CONST 3                                      @19:34
    COMPARE >                                    @19:32    # args.n > 3
    TRUTH                                        @19:21    # truth(args.n > 3)
    JUMP_UNLESS L1                                         # truth(args.n > 3) →
    CONST false
    JUMP L3
  L1:
    NAME event                                   @21:25
    ATTR "name"                                  @21:31    # event.name
    CONST "step.done"                            @21:39
    COMPARE ==                                   @21:36    # event.name == "step.done"
    TRUTH                                        @21:21    # truth(event.name == "step.done")
    JUMP_UNLESS L2                                         # truth(event.name == "step.done") →
    CONST true
    JUMP L3
  L2:
    CONST false                                  @17:11
  L3:
    TRUTH                                                  # truth(…)
    RETURN
  )
  .arc "mend" handles_failure @"arc" @29:17
    .when (
      NAME event                                   @30:21
      ATTR "name"                                  @30:27    # event.name
      CONST "step.failed"                          @30:35
      COMPARE ==                                   @30:32    # event.name == "step.failed"
      TRUTH                                        @30:18    # truth(event.name == "step.failed")
      RETURN
    )
  .tool ( @"tool"
  task_1:
    ENTER "task_1"                               @26:13    # task := task_1, attempt := 1
    CALL "noop" (@"task task_1" @26:11 CONST {}; RETURN) (@26:11 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )

.step "mend" @"step" @31:11
  .tool ( @"tool"
  task_1:
    ENTER "task_1"                               @32:13    # task := task_1, attempt := 1
    CALL "noop" (@"task task_1" @32:11 CONST {}; RETURN) (@32:11 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )
