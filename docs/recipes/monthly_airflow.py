"""A monthly decision in Airflow: a model goes into use only if the advice is to promote it.

Put the file into the folder of DAGs. It reads history.csv in HOME, keeps every decision in
decisions/, and replaces live/model.safetensors.
"""

import json
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

from airflow.sdk import dag, task

HOME = Path(os.environ.get("CHURN_HOME", "/srv/churn"))
SELECT = "driftquilt select history.csv --label churned --segment-by month --out decisions"
ADVICE = (0, 10, 11, 12, 13, 14)  # exit codes; others are errors


@dag(schedule="0 6 1 * *", start_date=datetime(2024, 1, 1), catchup=False, max_active_runs=1)
def monthly_decision():
    @task(multiple_outputs=False)
    def decide():
        command = [*SELECT.split(), "--dated", "--exit-code", "--json"]
        done = subprocess.run(command, cwd=HOME, stdout=subprocess.PIPE, check=False)
        if done.returncode not in ADVICE:
            done.check_returncode()
        document = json.loads(done.stdout)
        return {**document["advice"], "model": document["files"]["model"]}

    @task.branch
    def branch(decision):
        return "promote" if decision["action"] == "promote" else "report"

    @task
    def promote(decision):
        live = HOME / "live" / "model.safetensors"
        live.parent.mkdir(exist_ok=True)
        shutil.copy(HOME / decision["model"], live.with_suffix(".new"))
        live.with_suffix(".new").replace(live)  # whole or not at all

    @task
    def report(decision):
        print(f"{decision['action']}: {decision['reason']}")

    decision = decide()
    branch(decision) >> [promote(decision), report(decision)]


monthly = monthly_decision()

if __name__ == "__main__":
    monthly.test()
