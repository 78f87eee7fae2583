"""A monthly decision in Dagster: a model goes into use only if the advice is to promote it.

`dagster dev -f monthly_dagster.py` has the job and its schedule; `python monthly_dagster.py`
decides once. It reads history.csv, keeps every decision in decisions/, and replaces
live/model.safetensors.
"""

import json
import shutil
import subprocess
from pathlib import Path

from dagster import Definitions, Out, Output, ScheduleDefinition, job, op

SELECT = "driftquilt select history.csv --label churned --segment-by month --out decisions"
ADVICE = (0, 10, 11, 12, 13, 14)  # exit codes; others are errors


@op(out={"better": Out(is_required=False), "other": Out(is_required=False)})
def decide(context):
    command = [*SELECT.split(), "--dated", "--exit-code", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in ADVICE:
        done.check_returncode()
    document = json.loads(done.stdout)
    context.log.info(document["advice"]["reason"])
    branch = "better" if document["advice"]["action"] == "promote" else "other"
    yield Output(document, branch, metadata={"action": document["advice"]["action"]})


@op
def promote(document):
    live = Path("live", "model.safetensors")
    live.parent.mkdir(exist_ok=True)
    shutil.copy(document["files"]["model"], live.with_suffix(".new"))
    live.with_suffix(".new").replace(live)  # whole or not at all


@op
def report(context, document):
    context.log.warning(f"not promoted: {document['advice']['action']}")


@job
def monthly_decision():
    better, other = decide()
    promote(better)
    report(other)


monthly = ScheduleDefinition(job=monthly_decision, cron_schedule="0 6 1 * *")
defs = Definitions(jobs=[monthly_decision], schedules=[monthly])

if __name__ == "__main__":
    monthly_decision.execute_in_process()
