.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (CONST "os"; CALL "__import__" 1 [] 0; TRUTH; RETURN)
