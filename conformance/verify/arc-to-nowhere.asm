.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .arc "nowhere"
