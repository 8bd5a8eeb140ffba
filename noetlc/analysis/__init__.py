"""What rules and the compiler know about a playbook: the model, and what follows from it. Nothing here reports."""
