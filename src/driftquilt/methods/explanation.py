"""What became of every past segment, and why: for the person who approves the retraining.

A `Selection` holds the epochs of the winning trial of each fold as arrays, and answers per
segment: kept or not (used in at least one epoch), the share of epochs it was used in, and its
disparity and gain at the first, the best (lowest validation loss) and the last epoch. With
several folds, shares and scores are means over them. Values first; `repr`, the HTML for
notebooks and `explain` only put them into words.

Paper: "Data Segment Selection Analysis" (selected at least once), "Case Study" (the curves).
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import History, Segment
from driftquilt.core.selection import Rule
from driftquilt.errors import InputError, ModelFileError
from driftquilt.search.base import Trial

if TYPE_CHECKING:
    from driftquilt.report.drawing import Drawing

__all__ = ["FoldCurves", "ScoreAt", "SegmentUse", "Selection", "explain_folds", "percent"]


@dataclass(frozen=True, eq=False)
class FoldCurves:
    """The winning trial of one fold, epoch by epoch."""

    disparity_max: float
    best: int
    validation_loss: NDArray[np.float64]  # (E,)
    selected: NDArray[np.bool_]  # (E, S)
    disparity: NDArray[np.float64]  # (E, S)
    gain: NDArray[np.float64]  # (E, S)


class ScoreAt(NamedTuple):
    """A score at three moments of training."""

    first: float
    best: float
    last: float


@dataclass(frozen=True)
class SegmentUse:
    """One past segment: how much of it was used, and its scores."""

    name: Hashable
    n_rows: int
    share: float
    disparity: ScoreAt
    gain: ScoreAt
    why: str = field(repr=False)

    @property
    def kept(self) -> bool:
        """Whether at least one epoch used it."""
        return self.share > 0

    def sentence(self) -> str:
        """The decision in words."""
        fate = f"kept (used in {percent(self.share)} of epochs)" if self.kept else "dropped"
        return f"{self.name} was {fate}: {self.why}."


@dataclass(frozen=True, eq=False)
class Selection(Sequence[SegmentUse]):
    """Every past segment, oldest first; also reached by name with `of`."""

    names: tuple[Hashable, ...]
    n_rows: tuple[int, ...]
    folds: tuple[FoldCurves, ...]
    rule: Rule
    current: Hashable = None
    n_current: int = 0

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[SegmentUse]:
        return (self._use(s) for s in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._use(s) for s in range(len(self))[index]]
        if isinstance(index, str):
            return self.of(index)
        return self._use(range(len(self))[index])

    def of(self, name: Hashable) -> SegmentUse:
        """The segment with this name."""
        if name not in self.names:
            raise InputError(f"no past segment is called {name!r}; there are {list(self.names)!r}")
        return self._use(self.names.index(name))

    def explain(self) -> str:
        """One sentence per past segment."""
        if not self.names:
            return "There is no past segment: the model was trained on the current one alone."
        return "\n".join([f"{self._summary()}.", *(use.sentence() for use in self)])

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """A table with a row per past segment, as a pandas, polars or pyarrow frame."""
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        rows = [_flat(use) for use in self] or [_EMPTY]
        columns = {key: [row[key] for row in rows][: len(self)] for key in rows[0]}
        return nw.from_dict(columns, backend=backend).to_native()

    def plot(self) -> Drawing:
        """A picture for notebooks: each past segment as a patch, and its scores by epoch.

        `.save("quilt.svg")` and `.save("quilt.png")` keep it; the latter takes the extra `report`.
        """
        from driftquilt.report.drawing import draw_selection  # noqa: PLC0415  # it stands above

        return draw_selection(self)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON knows it; names that are not text or numbers become text."""
        return {
            "names": [_plain(name) for name in self.names],
            "n_rows": list(self.n_rows),
            "rule": [self.rule.use_disparity, self.rule.use_gain],
            "current": [_plain(self.current), self.n_current],
            "folds": [_curves_to_json(fold) for fold in self.folds],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Selection:
        try:
            folds = tuple(_curves_from_json(fold) for fold in record["folds"])
            names, n_rows = tuple(record["names"]), tuple(record["n_rows"])
            selection = cls(names, n_rows, folds, Rule(*record["rule"]), *record["current"])
            _check_shapes(selection)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the record of the selection is damaged: {error!r}") from error
        return selection

    def __repr__(self) -> str:
        head = self._summary()
        if not self.names:
            return head
        lines = [f"{'segment':<20} {'rows':>8} {'used':>5} {'disparity':>9} {'gain':>9}"]
        lines += [
            f"{u.name!s:<20.20} {u.n_rows:>8} {percent(u.share):>5} "
            f"{u.disparity.best:>9.3f} {u.gain.best:>+9.4f}"
            for u in self
        ]
        return "\n".join([f"{head} (scores at the best epoch)", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr style='opacity:{1 if u.kept else 0.55}'><td>{html.escape(str(u.name))}</td>"
            f"<td>{u.n_rows}</td><td>{percent(u.share)}</td><td>{u.disparity.best:.3f}</td>"
            f"<td>{u.gain.best:+.4f}</td><td style='text-align:left'>{html.escape(u.why)}</td></tr>"
            for u in self
        )
        return (
            "<table><caption>Past segments, scores at the best epoch</caption>"
            "<thead><tr><th>segment</th><th>rows</th><th>used</th><th>disparity</th>"
            f"<th>gain</th><th>why</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _summary(self) -> str:
        kept = f"{sum(use.kept for use in self)} of {len(self)} past segments kept"
        return f"Trained for {self.current} ({self.n_current} rows): {kept}"

    def _use(self, s: int) -> SegmentUse:
        share = float(np.mean([fold.selected[:, s].mean() for fold in self.folds]))
        return SegmentUse(
            self.names[s],
            self.n_rows[s],
            share,
            _score_at([fold.disparity[:, s] for fold in self.folds], self.folds),
            _score_at([fold.gain[:, s] for fold in self.folds], self.folds),
            _why(self.folds, s, self.rule),
        )


def explain_folds(
    history: History, current: Segment, winners: Sequence[Trial[Any]], rule: Rule
) -> Selection:
    """The selection that the winning trials of all folds made together."""
    names = tuple(segment.name for segment in history)
    n_rows = tuple(len(segment) for segment in history)
    folds = tuple(_curves(winner) for winner in winners)
    return Selection(names, n_rows, folds, rule, current.name, len(current))


def percent(share: float) -> str:
    """A share in whole percent; one above zero never reads as none."""
    return f"{share:.0%}" if share == 0 or share >= 0.005 else "<1%"  # noqa: PLR2004


def _plain(name: Hashable) -> str | int | float | None:
    return name if name is None or isinstance(name, str | int | float) else str(name)


def _curves(trial: Trial[Any]) -> FoldCurves:
    losses = np.array([epoch.validation_loss for epoch in trial.epochs])
    return FoldCurves(
        trial.disparity_max,
        int(np.nanargmin(losses)),
        losses,
        np.array([epoch.selected for epoch in trial.epochs]),
        np.array([epoch.scores.disparity for epoch in trial.epochs]),
        np.array([epoch.scores.gain for epoch in trial.epochs]),
    )


def _curves_to_json(fold: FoldCurves) -> dict[str, Any]:
    return {
        key: value.tolist() if isinstance(value, np.ndarray) else value
        for key, value in vars(fold).items()
    }


def _curves_from_json(record: dict[str, Any]) -> FoldCurves:
    keys = ("validation_loss", "disparity", "gain")
    arrays = {key: np.array(record[key], dtype=np.float64) for key in keys}
    selected = np.array(record["selected"], dtype=bool)
    return FoldCurves(record["disparity_max"], record["best"], selected=selected, **arrays)


def _check_shapes(selection: Selection) -> None:
    """ValueError unless every part speaks of the same segments and epochs."""
    if len(selection.n_rows) != len(selection.names) or not selection.folds:
        raise ValueError("names, n_rows and folds do not belong together")
    for fold in selection.folds:
        shape = (len(fold.validation_loss), len(selection.names))
        if {fold.selected.shape, fold.disparity.shape, fold.gain.shape} != {shape}:
            raise ValueError(f"not every curve has the shape {shape}")
        if fold.best not in range(len(fold.validation_loss)):
            raise ValueError(f"there is no epoch {fold.best!r}")


def _score_at(curves: list[NDArray[np.float64]], folds: Sequence[FoldCurves]) -> ScoreAt:
    moments = [(c[0], c[fold.best], c[-1]) for c, fold in zip(curves, folds, strict=True)]
    return ScoreAt(*(float(value) for value in np.mean(moments, axis=0)))


def _why(folds: Sequence[FoldCurves], s: int, rule: Rule) -> str:
    """What spoke for the segment in the epochs that used it, and against it in the others."""
    used = np.concatenate([fold.selected[:, s] for fold in folds])
    distances = np.concatenate([fold.disparity[:, s] for fold in folds])
    gains = np.concatenate([fold.gain[:, s] for fold in folds])
    bounds = np.concatenate([np.full(len(fold.selected), fold.disparity_max) for fold in folds])
    against = _reasons(distances, gains, bounds, rule)
    if not used.any():
        return f"its gradient {against}"
    agreed = (
        f"in those its gradient agrees with today's (disparity {np.median(distances[used]):.2f}, "
        f"gain {np.median(gains[used]):+.2g})"
    )
    return f"{agreed}, in the others it {against}" if against else agreed


def _reasons(
    distances: NDArray[np.float64],
    gains: NDArray[np.float64],
    bounds: NDArray[np.float64],
    rule: Rule,
) -> str:
    """The tests that were failed, how often, and by how much; empty if none was."""
    reasons = []
    # Put as the rule puts it, so that a score that is not a number fails here too.
    far, away = rule.use_disparity & ~(distances < bounds), rule.use_gain & ~(gains > 0)
    if far.any():
        reasons.append(
            f"is too far from today's in {far.mean():.0%} of epochs (disparity "
            f"{np.median(distances[far]):.2f}, bound {np.median(bounds[far]):.2f})"
        )
    if away.any():
        reasons.append(
            f"points away from today's in {away.mean():.0%} of epochs "
            f"(gain {np.median(gains[away]):+.2g})"
        )
    return " and ".join(reasons)


def _flat(use: SegmentUse) -> dict[str, Any]:
    scores = {
        f"{score}_{moment}": getattr(getattr(use, score), moment)
        for score in ("disparity", "gain")
        for moment in ScoreAt._fields
    }
    return {
        "segment": use.name, "rows": use.n_rows, "kept": use.kept, "share": use.share, **scores,
        "why": use.why,
    }  # fmt: skip


_EMPTY = _flat(SegmentUse("", 0, 0.0, ScoreAt(0, 0, 0), ScoreAt(0, 0, 0), ""))
