.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .tool (
    ENTER "a"
    CALL "noop" (CONST {}; RETURN) (CONST {}; RETURN)
    PATCH none (CONST 1; CONST 2; MAP 1; RETURN)
    BREAK
  )
