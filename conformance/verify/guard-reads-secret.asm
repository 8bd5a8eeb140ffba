.playbook "demo/case" "case"
  .entry "start"

.step "start"
  .arc "start"
    .when (NAME keychain; TRUTH; RETURN)
