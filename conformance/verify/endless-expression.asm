.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (
  L1:
    CONST 1
    JUMP_IF L1
    CONST true
    TRUTH
    RETURN
  )
