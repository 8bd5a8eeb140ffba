"""From the canonical form to a program: templates to stack code, tasks to pipelines, steps to the net.

Nothing here reads a file, prints or decides whether a playbook is right: what comes in has been linted. Nothing here
handles bytes either; those are `noetlvm.bytecode`'s.
"""
