"""A monthly decision in Prefect: a model goes into use only if the advice is to promote it.

`python monthly_prefect.py` decides once, with `serve` it decides on the first of every month. It
reads history.csv, keeps every decision in decisions/, and replaces live/model.safetensors.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from prefect import flow, get_run_logger, task

SELECT = "driftquilt select history.csv --label churned --segment-by month --out decisions"
ADVICE = (0, 10, 11, 12, 13, 14)  # exit codes; others are errors


@task
def decide():
    command = [*SELECT.split(), "--dated", "--exit-code", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in ADVICE:
        done.check_returncode()
    return json.loads(done.stdout)


@task
def promote(model):
    live = Path("live", "model.safetensors")
    live.parent.mkdir(exist_ok=True)
    shutil.copy(model, live.with_suffix(".new"))
    live.with_suffix(".new").replace(live)  # whole or not at all


@flow
def monthly_decision():
    document = decide()
    advice = document["advice"]
    if advice["action"] == "promote":
        promote(document["files"]["model"])
    get_run_logger().info("%s: %s", advice["action"], advice["reason"])
    return advice["action"]


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        monthly_decision.serve(name="monthly", cron="0 6 1 * *", limit=1)
    else:
        monthly_decision()
