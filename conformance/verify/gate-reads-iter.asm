.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .admit (NAME iter; TRUTH; RETURN)
