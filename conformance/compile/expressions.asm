.files ["expressions.yaml"]

.playbook "conformance/expressions" "expressions"
  .entry "start"
  .workload {"a": 1, "rows": [{"k": "x"}]}

.step "start" @"step" @6:11
  .tool ( @"tool"
  show:
    ENTER "show"                                 @8:9      # task := show, attempt := 1
    CALL "noop" ( @"task show"
      NAME workload                                @10:23
      ATTR "a"                                     @10:32    # workload.a
      REQUIRE "native"                             @10:23    # workload.a
      TEXT_BEGIN                                   @11:18
      EMIT_CONST "a is "
      NAME workload                                @11:26
      ATTR "a"                                     @11:35    # workload.a
      REQUIRE "text"                               @11:26    # workload.a
      EMIT                                                   # workload.a →
      TEXT_END                                     @11:18
      CONST 86400                                  @12:23
      CONST 0                                      @13:22
      NAME workload                                @13:26
      ATTR "a"                                     @13:35    # workload.a
      DUP                                          @13:24    # workload.a workload.a
      ROT3                                                   # workload.a 0 workload.a
      COMPARE <                                              # 0 < workload.a
      KEEP_UNLESS L1                                         # 0 < workload.a → | 0 < workload.a
      CONST 10                                     @13:40
      COMPARE <=                                   @13:37    # workload.a <= 10
      JUMP L2                                      @13:22
    L1:
      SWAP                                                   # … …
      POP                                                    # … →
    L2:
      REQUIRE "chain"                                        # …
      NAME workload                                @14:22
      ATTR "a"                                     @14:31    # workload.a
      KEEP_UNLESS L3                               @14:22    # workload.a → | workload.a
      NAME workload                                @14:41
      ATTR "b"                                     @14:50    # workload.b
      NOT                                          @14:37    # not workload.b
    L3:
      KEEP_IF L4                                   @14:22    # … → | …
      CONST "none"                                 @14:55
    L4:
      REQUIRE "logic"                              @14:22    # …
      NAME workload                                @15:33
      ATTR "rows"                                  @15:42    # workload.rows
      FILTER "length" 0 [] 0                       @15:49    # length(workload.rows)
      CONST 1                                      @15:58
      COMPARE >                                    @15:56    # length(workload.rows) > 1
      JUMP_UNLESS L5                               @15:33    # length(workload.rows) > 1 →
      CONST "many"                                 @15:23
      JUMP L6
    L5:
      CONST "few"                                  @15:65
    L6:
      REQUIRE "choice"                             @15:23    # …
      NAME workload                                @16:23
      ATTR "rows"                                  @16:32    # workload.rows
      CONST 0                                      @16:37
      ITEM                                                   # workload.rows[0]
      ATTR "k"                                     @16:40    # workload.rows[0].k
      NAME workload                                @16:47
      ATTR "rows"                                  @16:56    # workload.rows
      CONST -1                                     @16:61
      ITEM                                                   # workload.rows[-1]
      ATTR "k"                                     @16:65    # workload.rows[-1].k
      CONCAT 2                                     @16:23    # text
      REQUIRE "access"                                       # text
      NAME workload                                @17:22
      ATTR "rows"                                  @17:31    # workload.rows
      CONST 1                                      @17:36
      CONST null
      CONST null
      SLICE                                                  # workload.rows[1:null:null]
      REQUIRE "slice"                              @17:22    # workload.rows[1:null:null]
      NAME workload                                @18:26
      ATTR "rows"                                  @18:35    # workload.rows
      CONST 0                                      @18:40
      ITEM                                                   # workload.rows[0]
      CONST 3                                      @18:52
      CALL "range" 1 [] 0                          @18:46    # range(3)
      FILTER "list" 0 [] 0                         @18:57    # list(range(3))
      CALL "dict" 1 ["n"] 0                        @18:21    # dict(workload.rows[0], list(range(3)))
      REQUIRE "call"                                         # dict(workload.rows[0], list(range(3)))
      NAME workload                                @19:21
      ATTR "a"                                     @19:30    # workload.a
      CONST 3                                      @19:47
      TEST "divisibleby" 1 [] 0                    @19:35    # workload.a is divisibleby(3)
      REQUIRE "test"                               @19:21    # workload.a is divisibleby(3)
      CONST "a,b"                                  @20:23
      CONST ","                                    @20:35
      METHOD "split" 1 [] 0                        @20:23    # "a,b".split(",")
      REQUIRE "method"                                       # "a,b".split(",")
      BARE "rows"                                  @21:21
      REQUIRE "bare"                                         # rows
      CONST {"nested": [1, "two", null]}           @22:20
      RECORD [
        "native",
        "text",
        "folded",
        "chain",
        "logic",
        "choice",
        "access",
        "slice",
        "call",
        "test",
        "method",
        "bare",
        "literal"
      ]                                            @8:9      # {…, …, …, …, …, …, text, workload.rows[1:null:null], dict(w…
      RETURN
    ) (@8:9 CONST {}; RETURN)                              # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )
