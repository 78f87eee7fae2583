"""Stopping by the validation loss alone; torch's scheduler is the oracle of the plateau."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.training import EarlyStopping, Plateau

# Few different values, so that ties, near-ties and long plateaus are frequent.
near = st.sampled_from([1.0, 0.99995, 0.9999, 0.99985, 0.999, 0.5, 0.49996, 0.0])
losses = st.lists(near | st.floats(0, 2) | st.sampled_from([math.nan, math.inf]), max_size=80)


@given(losses, st.integers(0, 8))
def test_plateau_agrees_with_torch_after_every_epoch(of: list[float], patience: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        # eps=0: torch would stop cutting at a rate of 1e-8, which no training gets to.
        optimizer, factor=0.1, patience=patience, threshold=1e-4, eps=0.0
    )  # fmt: skip
    plateau = Plateau(patience=patience)
    for loss in of:
        scheduler.step(loss)
        plateau = plateau.after(loss)
        assert plateau.rate == optimizer.param_groups[0]["lr"]
        assert plateau.waited == scheduler.num_bad_epochs


@given(losses, st.integers(1, 8))
def test_training_is_over_after_patience_epochs_in_a_row_without_progress(
    of: list[float], patience: int
) -> None:
    stopping, best, waited = EarlyStopping(patience=patience), math.inf, 0
    for loss in of:
        stopping = stopping.after(loss)
        if loss < best - 1e-4:
            best, waited = loss, 0
        else:
            waited += 1
        assert stopping.over == (waited >= patience)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_steady_loss_stops_after_one_epoch_more_than_patience(patience: int) -> None:
    states = itertools.accumulate(
        itertools.repeat(0.5), lambda state, loss: state.after(loss),
        initial=EarlyStopping(patience=patience),
    )  # fmt: skip
    assert next(n for n, state in enumerate(states) if state.over) == patience + 1


@pytest.mark.parametrize("state", [EarlyStopping(patience=1), Plateau(patience=0)])
def test_the_next_state_leaves_the_old_one_as_it_was(state: EarlyStopping | Plateau) -> None:
    before = vars(state).copy()
    assert state.after(0.5) != state
    assert vars(state) == before


def test_losses_that_are_not_numbers_count_as_no_progress() -> None:
    stopping = EarlyStopping(patience=2).after(math.nan).after(math.nan)
    assert stopping.over
    assert stopping.best == math.inf
