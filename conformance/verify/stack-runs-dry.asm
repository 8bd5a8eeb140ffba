.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (ADD; TRUTH; RETURN)
