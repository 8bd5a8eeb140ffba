.files ["sugar-labels.yaml"]

.playbook "conformance/sugar-labels" "sugar_labels"
  .entry "start"
  .workload {"least": 3}

.step "start" @"step" @6:11
  .loop "item" width 1
    .in (@"loop" @7:17 CONST [1, 2]; RETURN)
  .tool ( @"tool"
    .slots 2
  begin:
    ENTER "begin"                                @9:9      # task := begin, attempt := 1
    CALL "noop" (@"task begin" @9:9 CONST {}; RETURN) (@11:17 CONST {}; RETURN) # outcome := noop(inputs, spec)
    PATCH (@11:79 CONST {"page": 0}; RETURN) none @11:53   # iter ∪= i, ctx ∪= c
    CONTINUE while_1                                       # _prev := outcome.result, → while_1
  while_1:
    MARK "while_1"                               @12:9
    RESET 0                                                # slot0 := 0
  while_1.test:
    MARK "while_1.test"
    UNLESS ( @"while"
      NAME iter                                    @13:21
      ATTR "page"                                  @13:26    # iter.page
      NAME workload                                @13:33
      ATTR "least"                                 @13:42    # workload.least
      COMPARE <                                    @13:31    # iter.page < workload.least
      TRUTH                                        @13:18    # truth(iter.page < workload.least)
      RETURN
    ) while_1.end                                @13:17    # guard ? next : while_1.end
    ROUND 0 10                                   @12:9     # slot0 += 1, slot0 > 10 ? failed
  while_1.do.choose_1.when_1:
    MARK "while_1.do.choose_1.when_1"            @17:19
    UNLESS ( @"choose"
      NAME iter                                    @17:29
      ATTR "item"                                  @17:34    # iter.item
      CONST 1                                      @17:42
      COMPARE ==                                   @17:39    # iter.item == 1
      TRUTH                                        @17:26    # truth(iter.item == 1)
      RETURN
    ) while_1.do.choose_1.else                   @17:25    # guard ? next : while_1.do.choose_1.else
  first:
    ENTER "first"                                @19:23    # task := first, attempt := 1
    CALL "noop" (@"task first" @19:23 CONST {}; RETURN) (@19:23 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L1                                            # error ? L1 : next
    CONTINUE while_1.do.choose_1.when_1.done               # _prev := outcome.result, → while_1.do.choose_1.when_1.done
  L1:
    FAIL                                                   # ∎ failed
  while_1.do.choose_1.when_1.done:
    MARK "while_1.do.choose_1.when_1.done"       @17:19
    GOTO while_1.do.choose_1.end                           # → while_1.do.choose_1.end
  while_1.do.choose_1.else:
    MARK "while_1.do.choose_1.else"              @20:19
  other:
    ENTER "other"                                @22:25    # task := other, attempt := 1
    CALL "noop" (@"task other" @22:25 CONST {}; RETURN) (@22:25 CONST {}; RETURN) # outcome := noop(inputs, spec)
    ON_ERROR L2                                            # error ? L2 : next
    CONTINUE while_1.do.choose_1.end                       # _prev := outcome.result, → while_1.do.choose_1.end
  L2:
    FAIL                                                   # ∎ failed
  while_1.do.choose_1.end:
    MARK "while_1.do.choose_1.end"               @16:15
  count:
    ENTER "count"                                @23:15    # task := count, attempt := 1
    CALL "noop" (@"task count" @23:15 CONST {}; RETURN) (@26:19 CONST {}; RETURN) # outcome := noop(inputs, spec)
    PATCH (
      NAME iter                                    @28:77
      ATTR "page"                                  @28:82    # iter.page
      CONST 1                                      @28:89
      ADD                                          @28:77    # iter.page + 1
      REQUIRE "set_iter.page"                                # iter.page + 1
      RECORD ["page"]                              @28:65    # {iter.page + 1}
      RETURN
    ) none                                       @28:39    # iter ∪= i, ctx ∪= c
    CONTINUE while_1.again                                 # _prev := outcome.result, → while_1.again
  while_1.again:
    MARK "while_1.again"                         @12:9
    GOTO while_1.test                                      # → while_1.test
  while_1.end:
    MARK "while_1.end"
  until_1:
    MARK "until_1"                               @29:9
    RESET 1                                                # slot1 := 0
  until_1.do:
    MARK "until_1.do"
    ROUND 1 10000                                          # slot1 += 1, slot1 > 10000 ? failed
  again:
    ENTER "again"                                @32:15    # task := again, attempt := 1
    CALL "noop" (@"task again" @32:15 CONST {}; RETURN) (@35:19 CONST {}; RETURN) # outcome := noop(inputs, spec)
    PATCH (
      NAME iter                                    @37:77
      ATTR "page"                                  @37:82    # iter.page
      CONST 1                                      @37:89
      ADD                                          @37:77    # iter.page + 1
      REQUIRE "set_iter.page"                                # iter.page + 1
      RECORD ["page"]                              @37:65    # {iter.page + 1}
      RETURN
    ) none                                       @37:39    # iter ∪= i, ctx ∪= c
    CONTINUE until_1.test                                  # _prev := outcome.result, → until_1.test
  until_1.test:
    MARK "until_1.test"                          @29:9
    UNLESS ( @"until"
      NAME iter                                    @30:21
      ATTR "page"                                  @30:26    # iter.page
      CONST 9                                      @30:34
      COMPARE >=                                   @30:31    # iter.page >= 9
      TRUTH                                        @30:18    # truth(iter.page >= 9)
      RETURN
    ) until_1.do                                 @30:17    # guard ? next : until_1.do
  until_1.end:
    MARK "until_1.end"                           @29:9
    END                                                    # ∎ done
  )
