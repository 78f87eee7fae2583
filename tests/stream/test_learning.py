"""What a stream knows can be packed at any row, and goes on bit for bit where it was unpacked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load, save

from driftquilt.data.frame import Frame, Label, Row
from driftquilt.detectors.named import make_detector
from driftquilt.learners.mlp import MLP
from driftquilt.stream.experts.evidence import Evidence
from driftquilt.stream.experts.nets import Champion, OnlineNet
from driftquilt.stream.learning import ONLINE, Learning
from tests.stream.streams import estimator, rows

Packed = tuple[dict[str, NDArray[Any]], dict[str, Any]]
SMALL = MLP(hidden_units=6, learning_rate=0.05)

values = st.none() | st.floats(-1e3, 1e3)
any_rows = st.fixed_dictionaries(
    {}, optional={"a": values, "b": values, "c": st.none() | st.sampled_from(["x", "y"])}
)
coded = st.lists(st.tuples(any_rows, st.integers(0, 3)), min_size=1, max_size=25)


def ask(net: OnlineNet, row: Row) -> NDArray[np.float32]:
    """Probabilities of the classes so far."""
    probabilities = np.zeros((1, net.n_classes), dtype=np.float32)
    if net.n_classes:
        net.expert.add(Frame.of_row(row), 1.0, probabilities)
    answer: NDArray[np.float32] = probabilities[0]
    return answer


def through_files(packed: Packed) -> Packed:
    """What comes back from safetensors and JSON."""
    tensors, record = packed
    return load(save(tensors)), json.loads(json.dumps(record))


def in_order(some: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Classes counted in order of appearance."""
    codes: dict[int, int] = {}
    return [(row, codes.setdefault(code, len(codes))) for row, code in some]


@settings(max_examples=40)
@given(coded, st.integers(0, 25))
def test_a_net_unpacked_at_any_row_goes_on_exactly(some: list[tuple[Row, int]], cut: int) -> None:
    some = in_order(some)
    net = OnlineNet(SMALL, seed=0)
    for row, code in some[:cut]:
        net.learn(Frame.of_row(row), code)
    twin = OnlineNet(SMALL, seed=0)
    twin.unpack(*through_files(net.pack()))
    for row, code in [*some[cut:], *some]:
        assert ask(net, row).tobytes() == ask(twin, row).tobytes()
        assert (
            net.learn(Frame.of_row(row), code).tobytes()
            == twin.learn(Frame.of_row(row), code).tobytes()
        )
    assert net.n_classes == twin.n_classes == 1 + max(code for _, code in some)


@settings(max_examples=40)
@given(coded)
def test_learning_gives_the_probabilities_that_a_prediction_would_have(
    some: list[tuple[Row, int]],
) -> None:
    net = OnlineNet(SMALL, seed=0)
    for row, code in in_order(some):
        before = ask(net, row)
        answer = net.learn(Frame.of_row(row), code)
        np.testing.assert_allclose(answer, before, rtol=1e-4, atol=1e-6)
        assert len(before) == 0 or abs(float(before.sum()) - 1) < 1e-4


def test_rows_without_columns_teach_the_frequency_of_classes() -> None:
    net = OnlineNet(SMALL, seed=0)
    for turn in range(300):
        net.learn(Frame.of_row({}), int(turn % 4 == 3))
    assert ask(net, {}).argmax() == 0
    assert ask(net, {"new": 1.0}).argmax() == 0


def test_a_single_class_is_certain() -> None:
    net = OnlineNet(SMALL, seed=0)
    for _ in range(5):
        net.learn(Frame.of_row({"a": 1.0}), 0)
    assert ask(net, {"a": 2.0}).tolist() == [1.0]


def test_one_wild_value_does_not_ruin_a_net() -> None:
    def n_right(wild: float | None) -> int:
        net, right = OnlineNet(MLP(learning_rate=0.01), seed=0), 0
        for turn, (x, y) in enumerate(in_order([(x, len(y)) for x, y in rows(140)])):
            answer = net.learn(Frame.of_row({"a": x["a"], "b": x["b"]}), y)
            right += len(answer) > 1 and int(answer.argmax()) == y
            if wild is not None and turn in (40, 41, 42):
                net.learn(
                    Frame.of_row({"rare": wild if turn == 42 else float(turn), "b": x["b"]}), 1
                )
        assert np.isfinite(net.pack()[0]["theta"]).all()
        return right

    assert n_right(1e38) > 0.9 * n_right(None)


def champion(n_rows: int) -> tuple[Champion, list[Label]]:
    """A classifier of the first rows, whose classes are those of the stream so far."""
    some = rows(n_rows)
    table = {name: [x[name] for x, _ in some] for name in ("a", "b", "city")}
    labels: list[Label] = [*dict.fromkeys(y for _, y in some)]
    clf = estimator(max_epochs=60, hidden_units=16).fit(table, [y for _, y in some])
    return Champion(clf, 1, labels), labels


def learning(detector: Any = "adwin") -> Learning:
    made = Evidence(rows=50) if detector == "experts" else make_detector(detector, 3)
    return Learning(made, seed=5, n_recent=20)


@pytest.mark.parametrize(
    "detector", ["experts", "adwin", "kswin", "ddm", {"kind": "hdddm"}, "never"]
)
@pytest.mark.parametrize("cut", [0, 1, 17, 60, 110])
def test_learning_unpacked_at_any_row_goes_on_exactly(detector: Any, cut: int) -> None:
    some = rows(170)
    one, twin = learning(detector), learning(detector)
    for at, (x, y) in enumerate(some[:cut]):
        one.learn(x, y)
        if at == 50:
            one.crown(champion(40)[0])
    models = {} if one.champion is None else {1: champion(40)[0]}
    twin.unpack(*through_files(one.pack()), models, max(models, default=None))
    for x, y in some[cut:]:
        assert one.predict(x).tobytes() == twin.predict(x).tobytes()
        assert one.learn(x, y) == twin.learn(x, y)
    assert json.dumps(one.pack()[1]) == json.dumps(twin.pack()[1])
    assert one.recent_loss == twin.recent_loss


def share_of_the_model(one: Learning) -> float:
    """What the newest model has to say, as it was trained and as it learns on, beside the net."""
    weights = one.mixture.weights
    return 1 - weights[ONLINE] / sum(weights[name] for name in (ONLINE, "newest", "model 1"))


def test_the_better_model_has_the_say() -> None:
    good, labels = champion(140)
    for swap, has_say in ((False, True), (True, False)):
        one = learning("never")
        for label in labels:
            one.learn({}, label)
        one.crown(good)
        assert 0.4 < share_of_the_model(one) < 0.6
        for x, y in rows(140, seed=9)[:40]:
            other = labels[1 - labels.index(y)]
            one.learn(x, other if swap else y)  # labels turned round: all it knows is wrong
        assert (share_of_the_model(one) > 0.9) == has_say
        assert (share_of_the_model(one) < 0.1) == (not has_say)


def test_a_class_that_the_champion_never_saw_is_learned_online() -> None:
    one = learning("never")
    for x, y in rows(120):
        one.learn(x, y)
    one.crown(champion(120)[0])
    for turn in range(200):
        one.learn({"a": 9.0 + turn % 2, "b": 0.5, "city": "Oslo"}, "maybe")
        x, y = rows(120)[turn % 120]
        one.learn(x, y)
    assert one.classes == [*dict.fromkeys(y for _, y in rows(120)), "maybe"]
    answer = one.predict({"a": 9.5, "b": 0.5, "city": "Oslo"})
    assert answer.shape == (3,)
    assert answer.argmax() == 2
    assert abs(float(answer.sum()) - 1) < 1e-4


def test_a_prediction_changes_nothing() -> None:
    one = learning()
    for x, y in rows(60):
        one.learn(x, y)
    one.crown(champion(40)[0])
    before = json.dumps(one.pack()[1]), {n: t.tobytes() for n, t in one.pack()[0].items()}
    for x, _ in rows(30, seed=4):
        one.predict(x)
    one.predict({"new": 5.0, "city": "Bonn"})
    assert before == (json.dumps(one.pack()[1]), {n: t.tobytes() for n, t in one.pack()[0].items()})


def test_one_wild_row_does_not_ruin_the_champion() -> None:
    one = learning("never")
    for x, y in rows(60):
        one.learn(x, y)
    one.crown(champion(60)[0])
    for label in ("yes", "no"):
        one.learn({"a": 1e38, "b": -1e38}, label)
    for x, y in rows(140)[60:]:
        one.learn(x, y)
    assert all(np.isfinite(tensor).all() for tensor in one.pack()[0].values())
    assert np.isfinite(one.predict(rows(1)[0][0])).all()
