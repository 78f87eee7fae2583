#!/bin/sh
# A monthly decision by cron: a model goes into use only if the advice is to promote it.
#
#     0 6 1 * *  cd /srv/churn && PATH=/srv/venv/bin:$PATH sh monthly_cron.sh
#
# It reads history.csv, keeps every decision in decisions/, and replaces live/model.safetensors.
# Errors end with a code other than 0, for which cron sends a mail.
set -eu
mkdir -p decisions live
exec 9> decisions/lock
flock -n 9 || { echo "the last run has not ended" >&2; exit 1; }

code=0
driftquilt select history.csv --label churned --segment-by month \
    --out decisions --dated --exit-code --json > decisions/last.json || code=$?
model=$(sed -n 's/.*"files": {"model": "\([^"]*\)".*/\1/p' decisions/last.json)

case $code in
    0) done="promoted" && cp "$model" live/new && mv live/new live/model.safetensors ;;
    10) done="kept the model in use" ;;
    11) done="nothing; train on all data instead" ;;
    12) done="nothing; train on the current month only instead" ;;
    13) done="nothing; collect more labels" ;;
    14) done="nothing; check the data" ;;
    *) exit "$code" ;; # standard error says why
esac
echo "$(date -u +%FT%TZ) $code $done: $model" >> decisions/log.txt
