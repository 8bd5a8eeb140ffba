"""No-op actions on Burr, the state saved after each. Usage: python run_burr.py JOB FOLDER TASKS EXECUTIONS."""

import json
import sys
import time

from burr.core import ApplicationBuilder, State, action, expr
from burr.core.persistence import SQLitePersister

folder, tasks, executions = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
persister = SQLitePersister(db_path=f"{folder}/burr.db", connect_kwargs={"check_same_thread": False})
persister.initialize()


@action(reads=["done"], writes=["done"])
def work(state: State) -> State:
    return state.update(done=state["done"] + 1)


@action(reads=[], writes=[])
def end(state: State) -> State:
    return state


def application(number: int):
    return (
        ApplicationBuilder()
        .with_actions(work, end)
        .with_transitions(("work", "work", expr(f"done < {tasks}")), ("work", "end"))
        .with_state(done=0)
        .with_entrypoint("work")
        .with_identifiers(app_id=str(number))
        .with_state_persister(persister)
        .build()
    )


applications = [application(number) for number in range(executions)]
began = time.perf_counter()
for each in applications:
    each.run(halt_before=["end"])
print(json.dumps({"seconds": time.perf_counter() - began}))
