"""Takes the inbox as trackio's server does, and prints what its own client reads of a project."""

import json
import sys

import trackio
from trackio import fragments
from trackio.sqlite_storage import SQLiteStorage

taken = fragments.import_inbox_dir()
[run] = trackio.Api().runs(sys.argv[1])
rows = SQLiteStorage.get_logs(sys.argv[1], run.name, run_id=run.id)
traces = SQLiteStorage.get_traces(sys.argv[1], run.name, run_id=run.id)
print(
    json.dumps(
        {
            "taken": taken,
            "left": [str(path) for path in fragments.local_inbox_dir().rglob("*.jsonl")],
            "name": run.name,
            "config": run.config,
            "rows": rows,
            "traces": traces,
        }
    )
)
