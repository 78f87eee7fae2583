"""`driftquilt select` by a metric, against an incumbent, and for machines."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from driftquilt import QuiltClassifier
from driftquilt.cli import webhook
from tests.cli.conftest import SCHEMAS, Drive

ASKED = ["select", "fraud.csv", "--label", "fraud", "--segment-by", "month"]


@pytest.fixture(autouse=True)
def fraud(tmp_path: Path) -> Path:
    """Three months with few positives, and predictions of three models of today.

    In the first month the rule is another one. `oracle` knows the rule, `chance` nothing, and
    `label` has the oracle's answers.
    """
    rng, lines = np.random.default_rng(0), ["a,b,month,oracle,chance,label,fraud"]
    for month in ("march", "april", "may"):
        x = rng.normal(size=(500, 2))
        p = 1 / (1 + np.exp(-(3 * x[:, 0] * (-1 if month == "march" else 1) + x[:, 1] - 4.5)))
        y = rng.random(500) < p
        for row, chance, is_fraud in zip(x, p, y, strict=True):
            answer = "yes" if chance > 0.5 else "no"
            cells = [f"{row[0]:.3f}", f"{row[1]:.3f}", month, f"{chance:.4f}", "0.08", answer]
            lines.append(",".join([*cells, "yes" if is_fraud else "no"]))
    path = tmp_path / "fraud.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def drop(*names: str) -> list[str]:
    return ["--drop", ",".join({"oracle", "chance", "label"} - {*names})]


def methods(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {method["name"]: method for method in document["methods"]}


def test_log_loss_decides_and_other_figures_stand_beside_it(drive: Drive) -> None:
    told = drive(*ASKED, *drop(), "--json").document()
    quilt, everything, _ = told["methods"]
    assert told["metric"] == told["advice"]["metric"] == quilt["score"]["metric"] == "log_loss"
    assert quilt["score"]["value"] == pytest.approx(quilt["quality"]["log_loss"])
    low, high = quilt["score"]["interval"]
    assert low < quilt["score"]["value"] < high
    assert quilt["against_quilt"] is None
    assert everything["against_quilt"]["verdict"] == everything["quilt_is"]
    assert 0.5 < quilt["quality"]["auc"] <= 1
    assert quilt["quality"]["classes"] == ["no", "yes"]
    assert sum(map(sum, quilt["quality"]["confusion"])) == told["n_held_out"] == 150
    assert len(quilt["quality"]["calibration"]) == 10
    assert told["advice"]["reason"] == told["sentences"][2]


def test_the_chosen_metric_comes_first_on_the_screen(drive: Drive) -> None:
    printed = drive(*ASKED, *drop(), "--metric", "roc_auc").stdout
    assert "AUC on 150 held-out rows" in printed
    head = next(line for line in printed.splitlines() if "Quilt is" in line)
    assert re.findall(r"AUC|accuracy|log loss", head) == ["AUC", "accuracy", "log loss"]
    assert re.search(r"^Advice: [a-z-]+\. ", printed, re.MULTILINE)


def test_a_threshold_is_tuned_for_f1_and_used_by_predict(drive: Drive) -> None:
    told = drive(*ASKED, *drop(), "--metric", "f1", "--json").document()
    assert 0 < told["threshold"] < 0.5
    model = QuiltClassifier.load(told["files"]["model"])
    assert model.threshold_ == told["threshold"]
    guessed = drive("predict", told["files"]["model"], "fraud.csv", "--json").document()
    for row in guessed["predictions"][:200]:
        assert row["prediction"] == ("yes" if row["p(yes)"] > told["threshold"] else "no")
    plain = drive(*ASKED, *drop(), "--metric", "roc_auc", "--overwrite", "--json").document()
    assert plain["threshold"] is None


def test_costs_are_a_metric(drive: Drive) -> None:
    costs = ["--cost", "yes,no=9", "--cost", "no,yes=1"]
    told = drive(*ASKED, *drop(), *costs, "--json").document()
    assert (told["metric"], told["threshold"]) == ("cost", pytest.approx(0.1))
    quilt = told["methods"][0]
    (right_no, wrong_yes), (wrong_no, right_yes) = quilt["quality"]["confusion"]
    assert quilt["score"]["value"] == pytest.approx((9 * wrong_no + wrong_yes) / 150)
    assert right_no + right_yes == quilt["n_right"]
    assert quilt["score"]["lower_is_better"] is True


def test_on_a_few_rows_no_method_is_called_better(drive: Drive) -> None:
    asked = [*ASKED, *drop("oracle"), "--incumbent", "oracle", "--holdout", "0.04"]
    told = drive(*asked, "--json").document()
    assert told["n_held_out"] == 20
    _, *others = told["methods"]
    assert {method["quilt_is"] for method in others} == {"too few rows"}
    assert {method["against_quilt"]["verdict"] for method in others} == {"too few rows"}
    assert told["advice"]["action"] == "collect-more"
    assert told["sentences"][1].count("the rows are too few to say which is better") == 3
    page = Path(told["files"]["report"]).read_text()
    assert "to compare log loss with that of" in page
    printed = drive(*asked, "--overwrite").stdout
    assert "too few rows" in printed
    for text in (page, printed, json.dumps(told)):
        assert not re.search("clearly (better|worse)", text)


def test_a_column_that_gives_the_label_away_blocks_the_advice(drive: Drive, fraud: Path) -> None:
    head, *lines = fraud.read_text().splitlines()
    rows = [f"{line},{'closed' if line.endswith('yes') else 'open'}" for line in lines]
    fraud.write_text("\n".join([f"{head},status", *rows]) + "\n")
    asked = [*ASKED, "--exit-code", "--json", "--overwrite"]
    outcome = drive(*asked, *drop())
    told = json.loads(outcome.stdout)
    jsonschema.validate(told, json.loads((SCHEMAS / "select.json").read_text()))
    assert (outcome.code, told["advice"]["action"]) == (14, "check-data")
    assert "--drop status" in told["advice"]["reason"]
    assert "--accept-data" in told["sentences"][2]
    assert [check["column"] for check in told["checks"] if check["blocks"]][-1] == "status"
    assert "Check data." in Path("select-out/report.html").read_text()
    accepted = drive(*asked, *drop(), "--accept-data")
    told = json.loads(accepted.stdout)
    assert told["accept_data"] is True
    assert told["advice"]["action"] in ("promote", "use-all")
    assert any(check["blocks"] for check in told["checks"])
    mended = drive(*asked, "--drop", "oracle,chance,label,status")
    assert mended.code == 11
    assert not any(check["blocks"] for check in json.loads(mended.stdout)["checks"])


@pytest.mark.parametrize(
    ("typed", "setting"),
    [(["balanced"], "balanced"), (["yes=9", "no=2"], {"yes": 9.0, "no": 2.0})],
)
def test_class_weights_reach_the_model_and_leave_its_probabilities(
    drive: Drive, typed: list[str], setting: Any
) -> None:
    options = [part for text in typed for part in ("--class-weight", text)]
    told = drive(*ASKED, *drop(), *options, "--json").document()
    model = QuiltClassifier.load(told["files"]["model"])
    assert model.class_weight == setting
    plain = drive(*ASKED, *drop(), "--overwrite", "--json").document()

    def answers(document: dict[str, Any], method: int) -> int:
        return sum(row[1] for row in document["methods"][method]["quality"]["confusion"])

    for method in range(3):  # all are trained alike
        assert answers(told, method) > answers(plain, method)
    assert told["methods"][0]["quality"]["log_loss"] < 0.5


def test_a_weighed_class_may_be_missing_in_the_current_segment(drive: Drive, fraud: Path) -> None:
    lines = fraud.read_text().splitlines()
    for number in range(1, 200):
        lines[number] = lines[number].rpartition(",")[0] + ",maybe"
    fraud.write_text("\n".join(lines) + "\n")
    told = drive(*ASKED, *drop(), "--class-weight", "maybe=3", "--json").document()
    assert [method["name"] for method in told["methods"]] == ["Quilt", "all data", "current only"]


def test_accuracy_alone_decides_nothing_where_most_labels_are_alike(drive: Drive) -> None:
    told = drive(*ASKED, *drop(), "--metric", "accuracy", "--json").document()
    assert told["metric"] == told["advice"]["metric"] == "log_loss"
    assert any("log loss decides, not accuracy" in note for note in told["warnings"])


@pytest.mark.parametrize("metric", [None, "accuracy", "roc_auc"])
def test_the_report_of_imbalanced_rows_leads_with_the_metric_that_decides(
    drive: Drive, metric: str | None
) -> None:
    asked = [] if metric is None else ["--metric", metric]
    told = drive(*ASKED, *drop(), *asked, "--json").document()
    assert told["advice"]["metric"] == ("roc_auc" if metric == "roc_auc" else "log_loss")
    page = Path(told["files"]["report"]).read_text()
    words = "AUC of Quilt" if metric == "roc_auc" else "log loss of Quilt"
    assert page.index(words) < page.index("accuracy of Quilt")
    loaded = QuiltClassifier.load(told["files"]["model"])
    assert loaded.scoring == ("roc_auc" if metric == "roc_auc" else None)


def test_an_incumbent_of_probabilities_is_one_more_method(drive: Drive) -> None:
    asked = [*ASKED, *drop("oracle"), "--incumbent", "oracle", "--exit-code", "--json"]
    outcome = drive(*asked)
    assert outcome.code == 10
    told = json.loads(outcome.stdout)
    found = methods(told)
    assert list(found) == ["Quilt", "all data", "current only", "incumbent"]
    assert found["incumbent"]["validation"] is None
    assert told["incumbent"] == "oracle"
    assert told["advice"]["action"] == "keep-incumbent"
    assert not next(c for c in told["columns"] if c["name"] == "oracle")["used"]
    model = QuiltClassifier.load(told["files"]["model"])
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_a_model_that_beats_the_incumbent_is_promoted_if_all_data_does_worse(
    drive: Drive, fraud: Path
) -> None:
    asked = [*ASKED, *drop("chance"), "--incumbent", "chance", "--exit-code", "--json"]
    outcome = drive(*asked)
    told = json.loads(outcome.stdout)
    assert (outcome.code, told["advice"]["action"]) == (11, "use-all")
    assert told["methods"][1]["quilt_is"] == "no clear difference"
    assert told["methods"][1]["against_incumbent"]["verdict"] == "better"
    head, *lines = fraud.read_text().splitlines()
    turned = {"yes": "no", "no": "yes"}
    for number in range(1000):  # all of the past is another world
        cells, _, label = lines[number].rpartition(",")
        lines[number] = f"{cells},{turned[label]}"
    fraud.write_text("\n".join([head, *lines]) + "\n")
    outcome = drive(*asked, "--overwrite")
    told = outcome.document()
    assert (outcome.code, told["advice"]["action"]) == (0, "promote")
    quilt = told["methods"][0]
    assert quilt["against_incumbent"]["verdict"] == "better"
    assert "better than the incumbent" in told["advice"]["reason"]


def test_an_incumbent_of_labels_is_compared_by_what_both_have(drive: Drive) -> None:
    told = drive(*ASKED, *drop("label"), "--incumbent", "label", "--json").document()
    old = methods(told)["incumbent"]
    assert old["score"]["value"] is None
    assert old["quality"]["log_loss"] is None
    assert old["against_quilt"]["metric"] == told["advice"]["metric"] == "balanced_accuracy"
    assert any("compared by balanced accuracy" in note for note in told["warnings"])
    page = Path("select-out/report.html").read_text()
    assert "compared by balanced accuracy" in page


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("oracle", lambda _: "", "missing in 150 held-out rows, first in row 1350"),
        ("oracle", lambda _: "1.5", "holds 1.5, which is neither a class"),
        ("label", lambda _: "maybe", "predicts 'maybe', which is not a class of 'fraud'"),
        ("fraud", lambda text: text, "'fraud' is the label"),
        ("orakel", lambda text: text, "no column 'orakel'; did you mean 'oracle'?"),
    ],
)
def test_an_incumbent_that_makes_no_sense_is_refused(
    drive: Drive, fraud: Path, column: str, change: Any, message: str
) -> None:
    head, *lines = fraud.read_text().splitlines()
    names = head.split(",")
    for number in range(1350, 1500):
        cells = lines[number].split(",")
        if column in names:
            at = names.index(column)
            cells[at] = change(cells[at])
        lines[number] = ",".join(cells)
    fraud.write_text("\n".join([head, *lines]) + "\n")
    outcome = drive(*ASKED, "--incumbent", column)
    assert outcome.code == 1
    assert message in outcome.stderr
    assert not Path("select-out").exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--metric", "rocauc"], "did you mean 'roc_auc'"),
        (["--cost", "yes=5"], "--cost is 'yes=5'; it takes TRUTH,ANSWER=COST"),
        (["--cost", "yes,no=much"], "it takes TRUTH,ANSWER=COST"),
        (["--cost", "yess,no=5"], "did you mean 'yes'"),
        (["--cost", "yes,no=5", "--metric", "f1"], "give one of them"),
        (["--class-weight", "yes"], "--class-weight is 'yes'; it takes balanced, or LABEL=WEIGHT"),
        (["--class-weight", "yes=much"], "it takes balanced, or LABEL=WEIGHT"),
        (["--class-weight", "=5"], "it takes balanced, or LABEL=WEIGHT"),
        (["--class-weight", "yes=-1"], "class_weight must be"),
        (["--class-weight", "balanced", "--class-weight", "yes=5"], "--class-weight is 'balanced'"),
        (["--class-weight", "yess=5"], "class_weight names 'yess'; did you mean 'yes'"),
        (["--webhook", "ftp://host/x"], "it takes a URL such as"),
        (["--webhook", "http://h/x", "--webhook-secret-env", "NO_SECRET"], "NO_SECRET is not set"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_any_work(
    drive: Drive, asked: list[str], message: str
) -> None:
    outcome = drive(*ASKED, *asked)
    assert outcome.code == 1
    assert message in outcome.stderr
    assert not Path("select-out").exists()


def test_an_earlier_decision_is_not_overwritten_unless_asked(drive: Drive) -> None:
    assert drive(*ASKED, *drop()).code == 0
    before = Path("select-out/selection.json").read_bytes()
    outcome = drive(*ASKED, *drop())
    assert outcome.code == 1
    assert "select-out holds an earlier outcome" in outcome.stderr
    assert "--overwrite" in outcome.stderr
    assert Path("select-out/selection.json").read_bytes() == before
    assert drive(*ASKED, *drop(), "--overwrite", "--seed", "1").code == 0
    assert Path("select-out/selection.json").read_bytes() != before
    told = drive(*ASKED, *drop(), "--dated", "--json").document()
    assert re.fullmatch(
        r"select-out/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d/model.safetensors", told["files"]["model"]
    )


class Receiver:
    """A server that answers with some codes, one after the other, and then 200."""

    def __init__(self) -> None:
        self.codes, self.received = list[int](), list[tuple[dict[str, str], bytes]]()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append((dict(self.headers), body))
                self.send_response(receiver.codes.pop(0) if receiver.codes else 200)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=private"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhook, "_PAUSES", (0.01, 0.01))
    found = Receiver()
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_a_webhook_gets_the_signed_document_once_it_answers(
    drive: Drive, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    receiver.codes = [503, 429]
    asked = [*ASKED, *drop(), "--webhook", receiver.url, "--webhook-secret-env", "HOOK_SECRET"]
    outcome = drive(*asked, "--json")
    assert outcome.code == 0
    assert len(receiver.received) == 3
    headers, body = receiver.received[-1]
    assert body.decode() == outcome.stdout.strip()
    digest = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers["Driftquilt-Signature"] == f"sha256={digest}"
    assert len({headers["Idempotency-Key"] for headers, _ in receiver.received}) == 1
    assert b"private" not in body
    assert b"s3cret" not in body
    assert drive(*asked, "--overwrite", "--json").code == 0  # another command, so another key
    keys = [headers["Idempotency-Key"] for headers, _ in receiver.received]
    assert drive(*asked, "--overwrite", "--json").code == 0
    assert receiver.received[-1][0]["Idempotency-Key"] == keys[-1] != keys[0]


@pytest.mark.parametrize(("codes", "n_attempts"), [([500] * 9, 3), ([404], 1), ([302], 1)])
def test_a_failed_delivery_has_its_own_code_and_nothing_else_is_lost(
    drive: Drive, receiver: Receiver, codes: list[int], n_attempts: int
) -> None:
    receiver.codes = [*codes]
    outcome = drive(*ASKED, *drop(), f"--webhook={receiver.url}", "--exit-code", "--json")
    assert outcome.code == webhook.UNDELIVERED == 3
    assert len(receiver.received) == n_attempts
    assert f"it answered {codes[0]}" in outcome.stderr
    assert "private" not in outcome.stderr + outcome.stdout
    assert "private" not in Path("select-out/selection.json").read_text()
    assert "private" not in Path("select-out/report.html").read_text()
    assert json.loads(outcome.stdout)["command"] == "select"
    assert Path("select-out/selection.json").exists()


def test_nobody_at_the_address_is_a_failed_delivery(drive: Drive, receiver: Receiver) -> None:
    receiver.server.server_close()
    outcome = drive(*ASKED, *drop(), "--webhook", receiver.url)
    assert outcome.code == 3
    assert "was not delivered" in outcome.stderr


def test_a_decision_of_an_early_version_still_has_advice_and_a_report(drive: Drive) -> None:
    assert drive(*ASKED, *drop()).code == 0
    path = Path("select-out/selection.json")
    record = json.loads(path.read_text())
    for later in ("advice", "metric", "incumbent", "threshold"):
        del record[later]
    del record["constant"]["score"]
    for method in record["methods"]:
        for later in ("score", "against_quilt", "against_incumbent", "quality"):
            del method[later]
    path.write_text(json.dumps(record))
    told = drive("report", "select-out", "--json").document()
    assert len(told["sentences"]) == 3
    page = Path("select-out/report.html").read_text()
    assert "Methods" in page
