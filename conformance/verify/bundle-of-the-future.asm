.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .tool (
  a:
    ENTER "a"
    CALL "noop" (CONST {}; RETURN) (CONST {}; RETURN)
    ON_ERROR L1
    CONTINUE L2
  L1:
    FAIL
  L2:
    END
  )
