"""What became of every past segment, and why: for the person who approves the retraining.

The weight of a past segment is how much of the model was trained on it. A net blends three parts:
one of all data, one of the selected segments, one of the current segment alone:

    weight = part of all data + part of the selected segments * share of its epochs that used it

An epoch of the selected part that used no past segment trained on the current one alone, and is
counted as that part where a model's parts are shown.

Another model (`QuiltSelector`) blends its fits on some training sets, and the weight is the sum of
the shares of the sets that have the segment. A row counts as much in the model as its segment
(`row_weight`, where a current row counts 1), or less where a set is balanced.

A segment is used if its weight is at least half of the mean over past segments, and at least 5 %;
else it is used in part, or below 5 % dropped. Everything that speaks of segments goes by this:
tables, sentences, reports, rows that are written for other models.

A `Selection` holds the epochs of the selected part as arrays, those of the winning trial of each
fold, and answers per segment: its weight, used or not, and its disparity and gain: medians over
these epochs, which is what tables and sentences show, and at the first, the best (lowest
validation loss) and the last epoch. Values first; `repr`, the HTML for notebooks and `explain`
only put them into words.

The epochs that made the selected part are those of each fold up to its best one, whose model is
taken. The share of epochs that used a past segment, and its median scores, are over all of them
together, whichever fold they belong to. Scores at a moment of training, and the bound, are means
over folds.
Folds have their own bounds, so before the median is taken a fold's disparities are scaled by the
mean bound over its own. So a segment that most epochs used has a median disparity below the bound
and a median gain above 0, and one that no epoch used fails at least one of the two tests.

Paper: "Data Segment Selection Analysis" (there: selected at least once in the whole training,
`ever_used`), "Case Study" (the curves).
"""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import History, Segment
from driftquilt.core.training import Rule
from driftquilt.data.labels import read_segments
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.blending import PARTS
from driftquilt.quilt.metrics import figure, metric_words, shown_value
from driftquilt.search.base import Trial
from driftquilt.text import json_safe, plural, quote_name

if TYPE_CHECKING:
    from driftquilt.report.drawing import Drawing

__all__ = [
    "EXPLAINED_SETS",
    "FoldCurves",
    "ScoreAt",
    "SegmentUse",
    "Selection",
    "TriedSet",
    "explain_folds",
    "percent",
    "use_word",
    "which_used",
]

#: What the scores and shares of training sets are.
EXPLAINED_SETS = (
    "The score is that of current rows which a fit on the set was not trained on; a set that did "
    "poorly on the latest of them was not judged by all. The share is how much of the model was "
    "trained on the set."
)
_MAX_NAMED = 3  # segments of a training set
_HARDLY = 0.05  # weight below which a segment counts as dropped
_MOST = 0.5  # of the epochs
_WHOLE = (0.0, 1.0, 0.0)  # the selected segments make all of the model
_PASSED = {  # by whether disparity and gain are tested
    (True, True): "agrees with today's rows and helps",
    (True, False): "agrees with today's rows",
    (False, True): "helps",
}


@dataclass(frozen=True, eq=False)
class FoldCurves:
    """The winning trial of one fold, epoch by epoch."""

    disparity_max: float
    best: int
    validation_loss: NDArray[np.float64]  # (E,)
    selected: NDArray[np.bool_]  # (E, S)
    disparity: NDArray[np.float64]  # (E, S)
    gain: NDArray[np.float64]  # (E, S)

    @property
    def n_made(self) -> int:
        """Epochs up to the best one."""
        return self.best + 1

    @classmethod
    def of(cls, trial: Trial[Any]) -> FoldCurves:
        """Return the curves of a trial."""
        losses = np.array([epoch.validation_loss for epoch in trial.epochs])
        return cls(
            trial.disparity_max,
            int(np.nanargmin(losses)),
            losses,
            np.array([epoch.selected for epoch in trial.epochs]),
            np.array([epoch.scores.disparity for epoch in trial.epochs]),
            np.array([epoch.scores.gain for epoch in trial.epochs]),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> FoldCurves:
        """Read what `to_json` returned; damage raises what numpy or the look-up raises."""
        keys = ("validation_loss", "disparity", "gain")
        arrays = {key: np.array(record[key], dtype=np.float64) for key in keys}
        selected = np.array(record["selected"], dtype=bool)
        return cls(record["disparity_max"], record["best"], selected=selected, **arrays)


class TriedSet(NamedTuple):
    """A training set that was judged, in a line.

    It has the current rows and those of the `n_segments` best past segments, or the last ones if
    it is `recent`, `n_rows` in all. If it is `balanced`, current rows count up to half of the
    total; if it `has_age`, the age of a row's segment is one more column. `score` is that of the
    `n_judged` held-out rows, higher being better; `share` is how much of the model was trained on
    it.
    """

    n_segments: int
    balanced: bool
    n_rows: int
    n_judged: int
    score: float
    share: float
    recent: bool = False
    has_age: bool = False

    def segments(self, ranking: Sequence[int]) -> frozenset[int]:
        """Return the past segments of the set; `ranking` has all of them, the best first."""
        if self.recent:
            return frozenset(range(len(ranking) - self.n_segments, len(ranking)))
        return frozenset(ranking[: self.n_segments])

    @classmethod
    def from_json(cls, line: Sequence[Any]) -> TriedSet:
        """Read a line from JSON, where a score that is not defined is null."""
        one = cls(*line)
        return one._replace(score=math.nan if one.score is None else one.score)

    def words(self, n_past: int, names: str = "") -> str:
        """Return what the set is, in words, of so many past segments.

        >>> TriedSet(3, False, 900, 40, -0.2, 0.5).words(12)
        'the best 3 segments and the current rows'
        >>> TriedSet(12, True, 900, 40, -0.2, 0.5).words(12)
        'all data balanced with the current rows'
        """
        if not self.n_segments:
            return "the current rows alone"
        if self.n_segments < n_past:
            number = "" if self.n_segments == 1 else f" {self.n_segments}"
            noun = f"segment{'s' if number else ''}{f' ({names})' if names else ''}"
            which = f"last{number} {noun}" if self.recent else f"best{number} {noun}"
            return f"the {which} and the current rows"
        if self.has_age:
            return "all data with the age of each segment"
        return "all data balanced with the current rows" if self.balanced else "all data"


class ScoreAt(NamedTuple):
    """A score at three moments of training, and its median over the epochs that made the model."""

    first: float
    best: float
    last: float
    median: float


class _EpochShares(NamedTuple):
    """Shares of the epochs that made the model: used a segment, found it too far, or away."""

    used: float
    too_far: float
    away: float


def _score_at(folds: Sequence[FoldCurves], score: Literal["disparity", "gain"], s: int) -> ScoreAt:
    """Return a score of segment `s`."""
    curves = [(getattr(fold, score)[:, s], fold.best) for fold in folds]
    moments = np.mean([(curve[0], curve[best], curve[-1]) for curve, best in curves], axis=0)
    scales = _scales(folds) if score == "disparity" else [1.0] * len(folds)
    made = [curve[: best + 1] * scale for (curve, best), scale in zip(curves, scales, strict=True)]
    return ScoreAt(*(float(value) for value in (*moments, np.median(np.concatenate(made)))))


def _scales(folds: Sequence[FoldCurves]) -> list[float]:
    """Return what each fold's bound has to be multiplied by to become the mean one."""
    if len({fold.disparity_max for fold in folds}) == 1:
        return [1.0] * len(folds)
    return [_scale_to(_mean_bound(folds), fold.disparity_max) for fold in folds]


def _scale_to(mean: float, bound: float) -> float:
    """Return the factor from a bound to the mean; 1 if it passes none or all (0, infinity)."""
    return mean / bound if 0 < bound < math.inf and math.isfinite(mean) else 1.0


def _epoch_shares(folds: Sequence[FoldCurves], s: int, rule: Rule) -> _EpochShares:
    """Return how often segment `s` passed and failed the tests of `rule`."""
    # Put as the rule puts it, so that a score that is not a number fails here too.
    epochs = [
        (
            fold.selected[: fold.n_made, s],
            rule.use_disparity & ~(fold.disparity[: fold.n_made, s] < fold.disparity_max),
            rule.use_gain & ~(fold.gain[: fold.n_made, s] > 0),
        )
        for fold in folds
    ]
    return _EpochShares(*(float(np.concatenate(part).mean()) for part in zip(*epochs, strict=True)))


def _mean_bound(folds: Sequence[FoldCurves]) -> float:
    """Return the bound found, averaged over folds; not a number if there is none."""
    return float(np.mean([fold.disparity_max for fold in folds])) if folds else float("nan")


@dataclass(frozen=True)
class SegmentUse:
    """One past segment: how much of it was used, and its scores.

    `weight` is how much of the model was trained on it; `used` whether that is at least half of
    what past segments have on average. `row_weight` is what one of its rows counts in the model,
    where a current row counts 1. `share` is that of the epochs which trained the selected part on
    it; `too_far` and `away` are the shares of them in which it failed the test of disparity, of
    gain. `rank` is its place in the order by which training sets were made, 1 being the best, where
    another model than the net chose among sets.
    """

    name: Hashable
    n_rows: int
    weight: float
    used: bool
    share: float
    disparity: ScoreAt
    gain: ScoreAt
    too_far: float
    away: float
    reason: str = field(repr=False)
    figures: str = field(repr=False)
    row_weight: float = 0.0
    rank: int | None = None

    @property
    def why(self) -> str:
        """The reason, with the figures behind it."""
        return f"{self.reason} ({self.figures})"

    @property
    def word(self) -> str:
        """The decision in a word or three."""
        return use_word(self.weight, used=self.used)

    @property
    def fate(self) -> str:
        """The same, and why a dropped segment is: which test it failed most, if it failed."""
        if self.word != "dropped" or self.rank is not None:
            return self.word
        if self.share > _MOST:
            return "dropped: no need"
        return "dropped: differs" if self.too_far >= self.away else "dropped: no help"

    def sentence(self) -> str:
        """Return the decision in words."""
        weight = f" (weight {percent(self.weight)})" if self.weight else ""
        return f"{quote_name(self.name)} was {self.word}{weight}: {self.why}."


@dataclass(frozen=True, eq=False)
class Selection(Sequence[SegmentUse]):
    """Every past segment, oldest first; also reached by name with `of`.

    `blend` is how much of the model comes from all data, from the selected segments, and from the
    current one alone. Where another model (`QuiltSelector`) chose among training sets, `sets` are
    these, with their scores by `metric`, and `weights` what a row of each segment counts in it;
    else weights follow from the blend and the epochs.
    """

    names: tuple[Hashable, ...]
    n_rows: tuple[int, ...]
    folds: tuple[FoldCurves, ...]
    rule: Rule
    current: Hashable = None
    n_current: int = 0
    blend: tuple[float, float, float] = _WHOLE
    weights: tuple[float, ...] | None = None
    sets: tuple[TriedSet, ...] = ()
    metric: str = ""

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[SegmentUse]:
        return iter(self[:])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            shares = [_epoch_shares(self.folds, s, self.rule) for s in range(len(self))]
            used = which_used([self._weight(s, share) for s, share in enumerate(shares)])
            uses = [self._use(s, *of) for s, of in enumerate(zip(shares, used, strict=True))]
            return uses[index]
        if isinstance(index, str):
            return self.of(index)
        return self[:][index]

    @property
    def parts(self) -> dict[str, float]:
        """What the model is made of: all data, selected segments, the current one alone.

        Where no past segment was selected, the selected part is the current segment alone.
        """
        all_data, selected, alone = self.blend
        empty = selected * self._empty_share()
        shares = all_data, selected - empty, min(alone + empty, 1.0)  # a blend may round above 1
        return dict(zip(PARTS, shares, strict=True))

    @property
    def disparity_max(self) -> float:
        """The bound found, averaged over folds."""
        return _mean_bound(self.folds)

    @cached_property
    def ranking(self) -> list[int]:
        """The past segments by number, the most selected first, then by disparity."""
        shares = [_epoch_shares(self.folds, s, self.rule).used for s in range(len(self))]
        medians = [_score_at(self.folds, "disparity", s).median for s in range(len(self))]
        return sorted(range(len(self)), key=lambda s: (-shares[s], medians[s]))

    def ever_used(self) -> list[Hashable]:
        """Segments that at least one epoch of the whole training used, as the paper counts them."""
        used = np.any([fold.selected.any(axis=0) for fold in self.folds], axis=0)
        return [name for name, ever in zip(self.names, used.tolist(), strict=True) if ever]

    def of(self, name: Hashable) -> SegmentUse:
        """Return the segment with this name."""
        if name not in self.names:
            raise InputError(f"no past segment is called {name!r}; there are {list(self.names)!r}")
        use: SegmentUse = self[:][self.names.index(name)]
        return use

    def row_weights(self, segments: Any) -> NDArray[np.float64]:
        """Return what each row counts in the model, by the segment that it belongs to.

        A current row counts 1, a past row the row weight of its segment: a `sample_weight` for any
        other model.
        """
        names, codes = read_segments(segments, len(segments))
        known = {use.name: use.row_weight for use in self} | {self.current: 1.0}
        if unknown := [name for name in names if name not in known]:
            raise InputError(f"no segment is called {unknown[0]!r}; there are {list(known)!r}")
        weights: NDArray[np.float64] = np.array([known[name] for name in names])[codes]
        return weights

    def explain(self) -> str:
        """One sentence per past segment."""
        if not self.names:
            return "There is no past segment: the model was trained on the current one alone."
        return "\n".join([f"{self._summary()}.", *(use.sentence() for use in self)])

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return a table with a row per past segment, as a pandas, polars or pyarrow frame."""
        rows = [_flat(use) for use in self] or [_EMPTY]
        columns = {key: [row[key] for row in rows][: len(self)] for key in rows[0]}
        return nw.from_dict(columns, backend=backend).to_native()

    def plot(self) -> Drawing:
        """Return a picture for notebooks: each past segment as a patch, and its scores by epoch.

        `.save("quilt.svg")` and `.save("quilt.png")` keep it; the latter takes the extra `report`.
        """
        from driftquilt.report.drawing import draw_selection  # noqa: PLC0415  # it stands above

        return draw_selection(self)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON knows it; names that are not text or numbers become text."""
        return {
            "names": [_json_name(name) for name in self.names],
            "n_rows": list(self.n_rows),
            "rule": [self.rule.use_disparity, self.rule.use_gain],
            "current": [_json_name(self.current), self.n_current],
            "blend": list(self.blend),
            **({} if self.weights is None else {"weights": list(self.weights)}),
            **({"sets": json_safe(self.sets), "metric": self.metric} if self.sets else {}),
            "folds": [fold.to_json() for fold in self.folds],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Selection:
        try:
            folds = tuple(FoldCurves.from_json(fold) for fold in record["folds"])
            names, n_rows = tuple(record["names"]), tuple(record["n_rows"])
            all_data, selected, alone = map(float, record.get("blend", _WHOLE))
            blend = (all_data, selected, alone)
            rule, (current, n_current) = Rule(*record["rule"]), record["current"]
            weights = tuple(map(float, record["weights"])) if "weights" in record else None
            selection = cls(names, n_rows, folds, rule, current, n_current, blend, weights)
            sets = tuple(TriedSet.from_json(line) for line in record.get("sets", ()))
            selection = replace(selection, sets=sets, metric=str(record.get("metric", "")))
            _check_shapes(selection)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"the record of the selection is damaged: {error!r}") from error
        return selection

    def __repr__(self) -> str:
        head = self._summary()
        if not self.names:
            return head
        lines = [f"{'segment':<20} {'rows':>8} {'weight':>6} {'disparity':>9} {'gain':>9}"]
        lines += [
            f"{u.name!s:<20.20} {u.n_rows:>8} {percent(u.weight):>6} "
            f"{u.disparity.median:>9.3f} {u.gain.median:>+9.4f}"
            for u in self
        ]
        return "\n".join([f"{head} ({self._scores_note()})", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr style='opacity:{1 if u.used else 0.55}'><td>{html.escape(str(u.name))}</td>"
            f"<td>{u.n_rows}</td><td>{percent(u.weight)}</td><td>{u.disparity.median:.3f}</td>"
            f"<td>{u.gain.median:+.4f}</td>"
            f"<td style='text-align:left'>{html.escape(u.why)}</td></tr>"
            for u in self
        )
        return (
            f"<table><caption>Past segments ({self._scores_note()})</caption>"
            "<thead><tr><th>segment</th><th>rows</th><th>weight</th><th>disparity</th>"
            f"<th>gain</th><th>why</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _summary(self) -> str:
        n_used = sum(use.used for use in self)
        past = f"{n_used} of {plural(len(self), 'past segment')} used"
        is_blend = self.blend != _WHOLE or bool(self.sets)
        made = f"; {self.composition()}" if self.names and is_blend else ""
        current = quote_name(self.current)
        return f"Trained for {current} ({plural(self.n_current, 'row')}): {past}{made}"

    def composition(self) -> str:
        """Return what the model is made of: "the model is 61% the selected segments, ..."."""
        current = quote_name(self.current)
        if not self.names:
            return f"the model is {current} alone"
        if self.sets:
            return f"the model is trained {', '.join(self._name_chosen())}"
        words = ("all data", "the selected segments", f"{current} alone")
        made = sorted(zip(self.parts.values(), words, strict=True), key=lambda part: -part[0])
        return "the model is " + ", ".join(f"{percent(w)} {word}" for w, word in made if w > 0)

    @cached_property
    def _members(self) -> dict[TriedSet, frozenset[int]]:
        """The past segments of each training set, by number."""
        return {one: one.segments(self.ranking) for one in self.sets}

    def _name_chosen(self, having: int | None = None) -> list[str]:
        """Return the words for the sets in the model, of those that have a segment."""
        chosen = sorted((one for one in self.sets if one.share > 0), key=lambda one: -one.share)
        return [
            f"{percent(one.share)} on {self.name_set(one)}"
            for one in chosen
            if having is None or having in self._members[one]
        ]

    def name_set(self, one: TriedSet) -> str:
        """Return the words for a set, with the names of the segments if they are few."""
        names = [quote_name(self.names[s]) for s in sorted(one.segments(self.ranking))]
        is_part = 0 < len(names) < len(self) and len(names) <= _MAX_NAMED
        return one.words(len(self), ", ".join(names) if is_part else "")

    def _scores_note(self) -> str:
        if self.sets:
            return "disparity and gain are those of the net that ranked the segments"
        return f"scores are medians over epochs, the bound is {self.disparity_max:.2f}"

    def _weight(self, s: int, shares: _EpochShares) -> float:
        """Return how much of the model was trained on a segment."""
        if self.sets:
            return sum(one.share for one, members in self._members.items() if s in members)
        if self.weights is not None:
            return self.weights[s]
        all_data, selected, _ = self.blend
        return all_data + selected * shares.used

    def _use(self, s: int, shares: _EpochShares, used: bool) -> SegmentUse:
        disparity, gain = _score_at(self.folds, "disparity", s), _score_at(self.folds, "gain", s)
        bound = f", bound {self.disparity_max:.2f}" if self.rule.use_disparity else ""
        figures = f"median disparity {disparity.median:.2f}{bound}, median gain {gain.median:+.2g}"
        weight, rank, reason = self._weight(s, shares), None, self._reason(s, shares)
        if self.sets:
            rank = self.ranking.index(s) + 1
            reason, figures = self._judge(s, rank, is_dropped=weight < _HARDLY)
        return SegmentUse(
            self.names[s],
            self.n_rows[s],
            weight,
            used,
            shares.used,
            disparity,
            gain,
            shares.too_far,
            shares.away,
            reason,
            figures,
            weight if self.weights is None else self.weights[s],
            rank,
        )

    def _empty_share(self) -> float:
        """Return the share of the epochs that made the selected part without a past segment."""
        if self.weights is not None or not self.folds:
            return 0.0
        made = [fold.selected[: fold.n_made].any(axis=1) for fold in self.folds]
        return 1.0 - float(np.concatenate(made).mean())

    def _reason(self, s: int, shares: _EpochShares) -> str:
        """Return what gave the segment its weight: its scores, or the weight of other parts."""
        all_data, selected, _ = self.blend
        is_dropped = self._weight(s, shares) < _HARDLY
        scores = _describe_tests(shares, self.rule, is_dropped=is_dropped)
        if is_dropped and shares.used > _MOST:
            alone = percent(self.parts["current"])
            return (
                f"{quote_name(self.current)} alone makes up {alone} of the model, though {scores}"
            )
        if not is_dropped and shares.used < 1 and all_data > selected * shares.used:
            joined = "and" if shares.used else "though"
            return f"all data makes up {percent(all_data)} of the model, {joined} {scores}"
        return scores

    def _judge(self, s: int, rank: int, *, is_dropped: bool) -> tuple[str, str]:
        """Return why the model uses a segment or not, and the scores of sets behind it."""
        most, place = max(one.n_judged for one in self.sets), f"rank {rank} of {len(self)}"
        scores: dict[bool, list[float]] = {True: [], False: []}
        for one, members in self._members.items():
            if one.n_judged == most and not math.isnan(one.score):
                scores[s in members].append(one.score)
        if not scores[True] or not scores[False]:
            only = "no set without it did well enough to be judged to the end"
            return "the chosen sets lack it" if is_dropped else only, place
        best, without = max(scores[True]), max(scores[False])
        shown = [figure(self.metric, shown_value(self.metric, one)) for one in (best, without)]
        figures = f"{metric_words(self.metric)} {shown[0]} with it, {shown[1]} without; {place}"
        if is_dropped == (best > without):  # the blend as a whole decided
            chosen = "no set of the blend has it" if is_dropped else self._name_chosen(s)[0]
            return chosen if is_dropped else f"the model is trained {chosen}", figures
        word = "better" if best > without else "worse" if best < without else "no better"
        return f"held-out current rows are predicted {word} with it", figures


def explain_folds(
    history: History,
    current: Segment,
    winners: Sequence[Trial[Any]],
    rule: Rule,
    blend: Iterable[float] = _WHOLE,
) -> Selection:
    """Return the selection that the winning trials of all folds made together."""
    all_data, selected, alone = map(float, blend)
    names = tuple(segment.name for segment in history)
    n_rows = tuple(len(segment) for segment in history)
    folds = tuple(FoldCurves.of(winner) for winner in winners)
    made_of = (all_data, selected, alone)
    return Selection(names, n_rows, folds, rule, current.name, len(current), made_of)


def which_used(weights: Sequence[float]) -> list[bool]:
    """Return which segments count as used: from half of the mean weight on, and from 5 %.

    >>> which_used([0.02, 0.7, 0.1, 0.5])
    [False, True, False, True]
    """
    bound = max(_HARDLY, float(np.mean(weights)) / 2) if weights else _HARDLY
    return [weight >= bound for weight in weights]


def use_word(weight: float, *, used: bool) -> str:
    """Return what became of a segment of this weight, in a word or three."""
    if used:
        return "used"
    return "used in part" if weight >= _HARDLY else "dropped"


def percent(share: float) -> str:
    """Return a share in whole percent; one above zero never reads as none."""
    return f"{share:.0%}" if share == 0 or share >= 0.005 else "<1%"  # noqa: PLR2004


def _json_name(name: Hashable) -> Any:
    return json_safe(str(name) if isinstance(name, tuple) else name)


def _check_shapes(selection: Selection) -> None:
    """ValueError unless every part speaks of the same segments and epochs."""
    lengths = {len(selection.n_rows), len(selection.weights or selection.names)}
    if lengths != {len(selection.names)} or (selection.names and not selection.folds):
        raise ValueError("names, n_rows and folds do not belong together")
    for fold in selection.folds:
        shape = (len(fold.validation_loss), len(selection.names))
        if {fold.selected.shape, fold.disparity.shape, fold.gain.shape} != {shape}:
            raise ValueError(f"not every curve has the shape {shape}")
        if fold.best not in range(len(fold.validation_loss)):
            raise ValueError(f"there is no epoch {fold.best!r}")


def _describe_tests(shares: _EpochShares, rule: Rule, *, is_dropped: bool) -> str:
    """Return what spoke for the segment, or of one that is dropped what spoke against it."""
    if not (rule.use_disparity or rule.use_gain):
        return "both tests are switched off"
    if shares.used > (_MOST if is_dropped else 0):
        words = _PASSED[rule.use_disparity, rule.use_gain]
        return f"it {words} {_describe_epochs(shares.used)}"
    away = "never helps" if shares.away == 1 else f"does not help {_describe_epochs(shares.away)}"
    failed = [
        (shares.too_far, f"disagrees with today's rows {_describe_epochs(shares.too_far)}"),
        (shares.away, away),
    ]
    failed.sort(key=lambda one: -one[0])
    return f"it {' and '.join(words for share, words in failed if share)}"


def _describe_epochs(share: float) -> str:
    return f"in {'every epoch' if share == 1 else f'{percent(share)} of epochs'}"


def _flat(use: SegmentUse) -> dict[str, Any]:
    scores = {
        f"{score}_{moment}": getattr(getattr(use, score), moment)
        for score in ("disparity", "gain")
        for moment in ScoreAt._fields
    }
    return {
        "segment": use.name, "rows": use.n_rows, "used": use.used, "weight": use.weight,
        "share": use.share, **scores,
        "why": use.why,
    }  # fmt: skip


_EMPTY = _flat(
    SegmentUse("", 0, 0.0, False, 0.0, ScoreAt(0, 0, 0, 0), ScoreAt(0, 0, 0, 0), 0.0, 0.0, "", "")
)
