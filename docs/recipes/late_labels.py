"""Predict now, learn the label when it comes: payments whose fraud is known only days later.

A row that is predicted under a key waits for its label; `learn_one(y=..., key=...)` brings the
two together. Labels may come in any order. Of the rows that wait, at most `max_waiting` are kept,
the oldest is forgotten first, and an event says so. A label that comes after that is refused,
because its row is gone; give the row again with it. When it is known that a label never comes,
`forget(key)` makes room. To ask once more under the same key, after a lost answer, is fine.

Run it as a script.
"""

from __future__ import annotations

import heapq

import numpy as np

from driftquilt import InputError, QuiltClassifier, QuiltStream
from driftquilt.stream.events import DriftFound

N_PAYMENTS, LARGE = 1_000, 40


def main() -> None:
    """Make payments up, tell their labels late, and count what was foreseen."""
    rng = np.random.default_rng(0)
    stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, wait=True, max_waiting=75)
    on_their_way: list[tuple[int, int, bool]] = []  # when the label comes, of whom, what it is
    answers, right, n_refused = {}, [], 0
    for now in range(N_PAYMENTS):
        amount, night = rng.exponential(50), bool(rng.integers(2))
        answers[now] = stream.predict_one({"amount": amount, "night": night}, key=now)
        fraud = bool(amount > LARGE) != (night and now > N_PAYMENTS // 2)
        delay = rng.choice([0, 70, 400], p=[0.1, 0.85, 0.05])
        if not delay:  # called back: nobody will ever look into it
            stream.forget(now)
        else:
            heapq.heappush(on_their_way, (now + int(delay * rng.uniform(0.3, 1.7)), now, fraud))
        while on_their_way and on_their_way[0][0] <= now:
            _, key, label = heapq.heappop(on_their_way)
            try:
                stream.learn_one(y=label, key=key)
            except InputError:  # it came too late
                n_refused += 1
            else:
                right.append(answers.pop(key) == label)
    drifts = [str(event) for event in stream.events if isinstance(event, DriftFound)]
    print("; ".join(drifts))  # noqa: T201
    print(  # noqa: T201
        f"{np.mean(right[100:]):.1%} right; {stream.n_rows} labels learned, {stream.n_waiting} "
        f"awaited, {n_refused} came too late"
    )


if __name__ == "__main__":
    main()
