"""No-op nodes on LangGraph, a checkpoint after each. Usage: python run_langgraph.py JOB FOLDER TASKS EXECUTIONS."""

import json
import sys
import time
from operator import add
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

job, folder, tasks, executions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


class Done(TypedDict):
    done: Annotated[int, add]


def work(_state):
    return {"done": 1}


def chain():
    graph = StateGraph(Done)
    for number in range(tasks):
        graph.add_node(f"work_{number}", work)
        graph.add_edge(f"work_{number - 1}" if number else START, f"work_{number}")
    graph.add_edge(f"work_{tasks - 1}", END)
    return graph


def loop():
    graph = StateGraph(Done)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"done": 0})] * tasks)
    return graph


with SqliteSaver.from_conn_string(f"{folder}/langgraph.db") as saver:
    compiled = {"chain": chain, "loop": loop}[job]().compile(checkpointer=saver)
    saver.setup()
    began = time.perf_counter()
    for number in range(executions):
        settings = {"configurable": {"thread_id": str(number)}, "recursion_limit": tasks + 10}
        assert compiled.invoke({"done": 0}, settings, durability="sync")["done"] == tasks
    print(json.dumps({"seconds": time.perf_counter() - began}))
