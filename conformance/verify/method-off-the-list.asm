.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (CONST "x"; METHOD "__subclasses__" 0 [] 0; TRUTH; RETURN)
