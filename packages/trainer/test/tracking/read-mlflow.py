"""What MLflow's own client reads of the only run of an experiment, as JSON."""

import json
import sys

from mlflow import MlflowClient

client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
[run] = client.search_runs([experiment.experiment_id])
histories = {
    key: [[metric.step, metric.value] for metric in client.get_metric_history(run.info.run_id, key)]
    for key in run.data.metrics
}
[artifact] = client.list_artifacts(run.info.run_id)
with open(client.download_artifacts(run.info.run_id, artifact.path, sys.argv[3])) as file:
    rows = json.load(file)
print(
    json.dumps(
        {
            "name": run.info.run_name,
            "status": run.info.status,
            "params": run.data.params,
            "histories": histories,
            "artifact": artifact.path,
            "rows": rows,
        }
    )
)
