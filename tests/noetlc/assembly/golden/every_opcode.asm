.playbook "samples/sample" "sample"
  .entry "start"

.step "start"
  .arc "loop_0"
  .arc "loop_1"
  .arc "loop_2"
  .arc "loop_3"
  .arc "loop_4"
  .arc "loop_5"
  .arc "loop_6"
  .arc "loop_7"
  .arc "loop_8"
  .arc "loop_9"
  .arc "loop_10"
  .arc "loop_11"
  .arc "loop_12"
  .arc "loop_13"
  .tool (
    .slots 1
  while_1:
    MARK "while_1"
    RESET 0                                                # slot0 := 0
  while_1.test:
    MARK "while_1.test"
    UNLESS (NAME ctx; ATTR "more"; TRUTH; RETURN) while_1.end # guard ? next : while_1.end
    ROUND 0 1000                                           # slot0 += 1, slot0 > 1000 ? failed
  work:
    ENTER "work"                                           # task := work, attempt := 1
    UNLESS (NAME ctx; ATTR "seen"; TRUTH; RETURN) L1       # guard ? next : L1
    SKIP while_1.back                                      # → while_1.back
  L1:
    CALL "python" (CONST {"code": "result = 1"}; RETURN) (CONST {"timeout": 3}; RETURN) # outcome := python(inputs, spec)
    ON_ERROR L4                                            # error ? L4 : next
    UNLESS (NAME outcome; ATTR "result"; ATTR "again"; TRUTH; RETURN) L2 # guard ? next : L2
    JUMP_TO work                                           # _prev := outcome.result, → work
  L2:
    UNLESS (NAME outcome; ATTR "result"; ATTR "last"; TRUTH; RETURN) L3 # guard ? next : L3
    PATCH none (NAME _attempt; RECORD ["n"]; RETURN)       # iter ∪= i, ctx ∪= c
    BREAK                                                  # _prev := outcome.result ∎
  L3:
    BIND                                                   # labels[task] := outcome.result
    CONTINUE while_1.back                                  # _prev := outcome.result, → while_1.back
  L4:
    UNLESS (NAME outcome; ATTR "error"; ATTR "kind"; TRUTH; RETURN) L5 # guard ? next : L5
    RETRY 5 exponential none L1                            # attempt < 5 ? wait, L1 : next
  L5:
    FAIL                                                   # ∎ failed
  while_1.back:
    MARK "while_1.back"
    GOTO while_1.test                                      # → while_1.test
  while_1.end:
    MARK "while_1.end"
    END                                                    # ∎ done
  )

.step "loop_0"
  .loop "item" width 1
    .in (
      .slots 1
      CONST 1
      STORE 0                                                # 1 →
      LOCAL 0
      RETURN
    )

.step "loop_1"
  .loop "item" width 1
    .in (NAME ctx; BARE "page"; ITEM; RETURN)

.step "loop_2"
  .loop "item" width 1
    .in (UNDEFINED "x"; CONST 1; CONST null; CONST null; SLICE; RETURN)

.step "loop_3"
  .loop "item" width 1
    .in (LIST 0; CONST 1; APPEND; CONST 2; APPEND; RETURN)

.step "loop_4"
  .loop "item" width 1
    .in (CONST 1; CONST 2; TUPLE 2; RETURN)

.step "loop_5"
  .loop "item" width 1
    .in (CONST 2; RECORD ["k"]; RETURN)

.step "loop_6"
  .loop "item" width 1
    .in (CONST "k"; CONST 2; MAP 1; CONST ["k"]; METHOD "get" 0 [] 1; RETURN)

.step "loop_7"
  .loop "item" width 1
    .in (CONST 3; CALL "range" 1 [] 0; TEST "defined" 0 [] 0; NOT; RETURN)

.step "loop_8"
  .loop "item" width 1
    .in (CONST "a"; METHOD "upper" 0 [] 0; FILTER "length" 0 [] 0; NEG; RETURN)

.step "loop_9"
  .loop "item" width 1
    .in (
      CONST 0
      CONST 1
      CONST 2
      CONST 3
      CONST 4
      CONST 5
      CONST 6
      CONST 7
      ADD                                                    # 6 + 7
      SUB                                                    # 5 - (6 + 7)
      MUL                                                    # 4 * (5 - (6 + 7))
      DIV                                                    # 3 / (4 * (5 - (6 + 7)))
      FLOORDIV                                               # 2 // (3 / (4 * (5 - (6 + 7))))
      MOD                                                    # 1 % (2 // (3 / (4 * (5 - (6 + 7)))))
      POW                                                    # 0 ** (1 % (2 // (3 / (4 * (5 - (6 + 7))))))
      POS                                                    # +(0 ** (1 % (2 // (3 / (4 * (5 - (6 + 7)))))))
      RETURN
    )

.step "loop_10"
  .loop "item" width 1
    .in (CONST "a"; CONST 1.5; CONCAT 2; REQUIRE "url"; RETURN)

.step "loop_11"
  .loop "item" width 1
    .in (
      CONST 1
      BARE "b"
      DUP                                                    # b b
      ROT3                                                   # b 1 b
      COMPARE <                                              # 1 < b
      JUMP_UNLESS L1                                         # 1 < b →
      CONST 3
      COMPARE <                                              # b < 3
      JUMP L2
    L1:
      POP                                                    # … →
      CONST false
    L2:
      TRUTH                                                  # truth(…)
      RETURN
    )

.step "loop_12"
  .loop "item" width 1
    .in (
      BARE "a"
      KEEP_IF L1                                             # a → | a
      BARE "b"
      KEEP_UNLESS L1                                         # b → | b
      CONST 1
      CONST 2
      SWAP                                                   # 2 1
      TUPLE 2                                                # (2, 1)
    L1:
      RETURN
    )

.step "loop_13"
  .loop "item" width 1
    .in (
      .slots 2
      TEXT_BEGIN
      BARE "pairs"
      ITER                                                   # iterator
    L1:
      NEXT L2                                                # … item
      UNPACK 2                                               # item → vₙ … v₁
      STORE 0                                                # … →
      STORE 1                                                # … →
      LOOP 0
      ATTR "index"                                           # loop.index
      EMIT                                                   # loop.index →
      EMIT_CONST ": "
      LOCAL 1
      ATTR "x"                                               # slot1.x
      EMIT                                                   # slot1.x →
      JUMP L1
    L2:
      JUMP_IF L3                                             # … →
      EMIT_CONST "none"
    L3:
      TEXT_END
      RETURN
    )
