"""A script beside its playbook."""


def main(n: int) -> dict[str, object]:
    return {"n": n + 1, "braces": "{{ n }}"}
