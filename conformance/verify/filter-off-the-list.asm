.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (CONST "x"; CONST "__class__"; FILTER "attr" 1 [] 0; TRUTH; RETURN)
