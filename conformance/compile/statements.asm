.files ["statements.yaml"]

.playbook "conformance/statements" "statements"
  .entry "start"
  .workload {"rows": [{"k": "x", "on": true}], "pairs": [[1, 2]]}

.step "start" @"step" @6:11
  .tool ( @"tool"
  show:
    ENTER "show"                                 @8:9      # task := show, attempt := 1
    CALL "noop" ( @"task show"
      .slots 8
      TEXT_BEGIN                                   @10:22
      NAME workload                                @10:28
      ATTR "rows"                                  @10:37    # workload.rows
      JUMP_UNLESS L1                               @10:28    # workload.rows →
      EMIT_CONST "some"                            @10:44
      JUMP L3                                      @10:22
    L1:
      NAME workload                                @10:56
      ATTR "pairs"                                 @10:65    # workload.pairs
      JUMP_UNLESS L2                               @10:56    # workload.pairs →
      EMIT_CONST "pairs"                           @10:73
      JUMP L3                                      @10:48
    L2:
      EMIT_CONST "none"                            @10:88
    L3:
      TEXT_END                                     @10:22
      TEXT_BEGIN                                   @11:22
      NAME workload                                @11:36
      ATTR "rows"                                  @11:45    # workload.rows
      LIST 0                                       @11:53
      STORE 0                                                # [] →
      ITER                                         @11:36    # iterator
    L4:
      NEXT L5                                      @11:29    # … item
      DUP                                          @11:53    # item item
      STORE 1                                                # item →
      STORE 2                                      @11:29    # item →
      LOCAL 2                                      @11:53
      ATTR "on"                                    @11:57    # slot2.on
      JUMP_UNLESS L4                               @11:53    # slot2.on →
      LOCAL 0
      LOCAL 1
      APPEND                                                 # slot0
      STORE 0                                                # slot0 →
      JUMP L4
    L5:
      POP                                                    # … →
      LOCAL 0
      ITER                                         @11:36    # iterator
    L6:
      NEXT L7                                      @11:29    # … item
      STORE 3                                                # item →
      LOOP 0                                       @11:65
      ATTR "index"                                 @11:70    # loop.index
      REQUIRE "filtered"                           @11:65    # loop.index
      EMIT                                                   # loop.index →
      EMIT_CONST ":"                               @11:78
      LOCAL 3                                      @11:82
      ATTR "k"                                     @11:86    # slot3.k
      REQUIRE "filtered"                           @11:82    # slot3.k
      EMIT                                                   # slot3.k →
      EMIT_CONST " "                               @11:90
      JUMP L6                                      @11:22
    L7:
      JUMP_IF L8                                             # … →
      EMIT_CONST "-"                               @11:101
    L8:
      TEXT_END                                     @11:22
      TEXT_BEGIN                                   @12:22
      NAME workload                                @12:37
      ATTR "pairs"                                 @12:46    # workload.pairs
      ITER                                         @12:37    # iterator
    L9:
      NEXT L10                                     @12:29    # … item
      UNPACK 2                                               # item → vₙ … v₁
      STORE 4                                                # … →
      STORE 5                                      @12:32    # … →
      LOCAL 4                                      @12:57
      LOCAL 5                                      @12:61
      ADD                                          @12:57    # slot4 + slot5
      REQUIRE "unpacked"                                     # slot4 + slot5
      EMIT                                                   # slot4 + slot5 →
      JUMP L9                                      @12:22
    L10:
      POP                                                    # … →
      TEXT_END
      TEXT_BEGIN                                   @13:22
      NAME workload                                @13:33
      ATTR "rows"                                  @13:42    # workload.rows
      FILTER "length" 0 [] 0                       @13:49    # length(workload.rows)
      STORE 6                                      @13:29    # length(workload.rows) →
      LOCAL 6                                      @13:64
      CONST 1                                      @13:68
      COMPARE >                                    @13:66    # slot6 > 1
      JUMP_UNLESS L11                              @13:64    # slot6 > 1 →
      CONST 1                                      @13:83
      STORE 6                                      @13:79    # 1 →
    L11:
      LOCAL 6                                      @13:101
      REQUIRE "variable"                                     # slot6
      EMIT                                                   # slot6 →
      TEXT_END                                     @13:22
      TEXT_BEGIN                                   @14:19
      TEXT_BEGIN
      EMIT_CONST "rows: "                          @14:41
      NAME workload                                @14:50
      ATTR "rows"                                  @14:59    # workload.rows
      FILTER "length" 0 [] 0                       @14:66    # length(workload.rows)
      REQUIRE "block"                              @14:50    # length(workload.rows)
      EMIT                                                   # length(workload.rows) →
      TEXT_END                                     @14:19
      FILTER "upper" 0 [] 0                        @14:33    # upper(text)
      STORE 7                                      @14:26    # upper(text) →
      LOCAL 7                                      @14:90
      REQUIRE "block"                                        # slot7
      EMIT                                                   # slot7 →
      TEXT_END                                     @14:19
      RECORD ["branches", "filtered", "unpacked", "variable", "block"] @8:9 # {…, …, …, text, text}
      RETURN
    ) (@8:9 CONST {}; RETURN)                              # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE L2                                            # _prev := outcome.result, → L2
  L1:
    FAIL                                                   # ∎ failed
  L2:
    END                                                    # ∎ done
  )
