.files ["workbook.yaml"]

.playbook "conformance/workbook" "workbook"
  .entry "start"
  .workload {"table": "log"}

.step "start" @"step" @11:11
  .tool ( @"tool"
  store:
    MARK "store"                                 @13:9
  store.check:
    ENTER "store.check"                          @8:9      # task := store.check, attempt := 1
    CALL "noop" (@"workbook save" @8:9 CONST {}; RETURN) (@8:9 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE store.insert                                  # _prev := outcome.result, → store.insert
  L1:
    FAIL                                                   # ∎ failed
  store.insert:
    ENTER "store.insert"                         @9:9      # task := store.insert, attempt := 1
    CALL "noop" (
      NAME workload                                @13:65
      ATTR "table"                                 @13:74    # workload.table
      REQUIRE "into"                               @13:65    # workload.table
      NAME args                                    @9:68
      ATTR "limit"                                 @9:73     # args.limit
      REQUIRE "limit"                              @9:68     # args.limit
      RECORD ["into", "limit"]                     @9:9      # {workload.table, args.limit}
      RETURN
    ) (@9:9 CONST {}; RETURN)                              # outcome := noop(inputs, spec)
    ON_ERROR L2                                            # error ? L2 : next
    CONTINUE L3                                            # _prev := outcome.result, → L3
  L2:
    FAIL                                                   # ∎ failed
  L3:
    END                                                    # ∎ done
  )
