.files ["empty-step.yaml"]

.playbook "conformance/empty-step" "empty_step"
  .entry "start"

.step "start" @"step" @5:11
