"""What most people would write in an afternoon: FastAPI, pydantic, torch, no guard at all.

The yardstick of `bench_service`: a net of 10-256-2 behind one endpoint that takes rows as lists.
"""

from __future__ import annotations

import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

__all__ = ["app"]

torch.set_num_threads(1)
_net = torch.nn.Sequential(torch.nn.Linear(10, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
app = FastAPI()


class Rows(BaseModel):
    """The request."""

    rows: list[list[float]]


class Probabilities(BaseModel):
    """The answer."""

    labels: list[int]
    probabilities: list[list[float]]


@app.post("/predict")
async def predict(body: Rows) -> Probabilities:
    """Return the net's answer for each row."""
    with torch.inference_mode():
        probabilities = torch.softmax(_net(torch.tensor(body.rows)), dim=1)
    return Probabilities(
        labels=probabilities.argmax(dim=1).tolist(), probabilities=probabilities.tolist()
    )


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
