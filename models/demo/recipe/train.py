"""Trains in pieces: each piece resumes from `state.pt`, stops at its time limit, and leaves the state behind."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Callable

import torch

from optimizer import Optimizer
from settings import Phase, Schedule, Shape
from training_model import Batch, Losses, TrainingModel
from weights import Weights, compute_weights, new_router_bias, new_weights

Source = Callable[[Phase, int], Batch]
Probe = Callable[[Weights, Weights], dict]


def phase_at(schedule: Schedule, step: int) -> Phase:
    for phase in schedule.phases:
        if step < phase.steps:
            return phase
        step -= phase.steps
    return schedule.phases[-1]


def rate_at(schedule: Schedule, step: int) -> float:
    """The share of the peak learning rate at a step."""
    for (x0, y0), (x1, y1) in zip(schedule.rates, schedule.rates[1:]):
        if step < x1:
            return y0 + (y1 - y0) * (step - x0) / (x1 - x0)
    return schedule.rates[-1][1]


def quant_at(phase: Phase, step: int) -> str:
    """In a quantised phase the shipped FP8 layout, and every fourth step MXFP4 experts."""
    if not phase.quant:
        return "none"
    return "mxfp4" if step % 4 == 3 else "fp8"


class Trainer:
    def __init__(self, shape: Shape, schedule: Schedule, seed: int, device: str, compiled: bool) -> None:
        self.shape, self.schedule, self.device = shape, schedule, device
        self.step = 0
        self.seconds = 0.0
        self.tokens = 0
        self.weights = {n: w.to(device).requires_grad_() for n, w in new_weights(shape, seed).items()}
        self.biases = {n: b.to(device) for n, b in new_router_bias(shape).items()}
        self.optimizer = Optimizer(self.weights, schedule.weight_decay)
        self.model = TrainingModel(shape, device, compiled)

    def save(self, path: Path) -> None:
        state = {
            "step": self.step, "seconds": self.seconds, "tokens": self.tokens, "optimizer": self.optimizer.state(),
            "weights": {n: w.detach() for n, w in self.weights.items()}, "biases": self.biases,
        }
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.step, self.seconds, self.tokens = state["step"], state["seconds"], state["tokens"]
        self.load_values(state["weights"], state["biases"])
        self.optimizer.load(state["optimizer"])

    @torch.no_grad()
    def load_values(self, weights: Weights, biases: Weights) -> None:
        for name, w in self.weights.items():
            w.copy_(weights[name])
        for name, b in self.biases.items():
            b.copy_(biases[name])

    def run_step(self, batch: Batch) -> Losses:
        schedule, phase = self.schedule, phase_at(self.schedule, self.step)
        dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        used = compute_weights(self.weights, dtype, quant_at(phase, self.step))
        index_seed = self.step if phase.index_loss else None
        losses = self.model.forward(used, self.biases, batch, phase.sparse, phase.mtp_depths, index_seed)
        total = losses.target + schedule.index_weight * losses.index
        for weight, loss in zip(schedule.mtp_weights, losses.drafts):
            total = total + weight * loss
        total.backward()
        rate = rate_at(schedule, self.step)
        self.optimizer.step(schedule.muon_lr * rate, schedule.adam_lr * rate)
        self.balance(losses.loads, schedule.bias_rate * max(rate, 0.5))
        self.step += 1
        self.tokens += batch.tokens.numel()
        return losses

    @torch.no_grad()
    def balance(self, loads: dict[int, torch.Tensor], rate: float) -> None:
        """Raises the bias of experts with too little work, lowers it for those with too much."""
        for layer, load in loads.items():
            mean = load.float().mean()
            bias = self.biases[f"layers.{layer}.mlp.gate.e_score_correction_bias"]
            bias += rate * ((mean - load) / mean).clamp(-1, 1)


def log_line(trainer: Trainer, losses: Losses, grown: float) -> dict:
    busiest = max((float(l.max() / l.float().mean()) for l in losses.loads.values()), default=0.0)
    least = min((float(l.min() / l.float().mean()) for l in losses.loads.values()), default=0.0)
    return {
        "step": trainer.step, "phase": phase_at(trainer.schedule, trainer.step - 1).name,
        "tokens": trainer.tokens, "seconds": round(trainer.seconds + grown, 1),
        "loss": round(losses.target.item(), 4), "drafts": [round(d.item(), 4) for d in losses.drafts],
        "index": round(losses.index.item(), 4), "busiest": round(busiest, 2), "least": round(least, 2),
    }


def write_line(log: Path, line: dict) -> None:
    print(json.dumps(line), flush=True)
    with log.open("a") as f:
        f.write(json.dumps(line) + "\n")


def probe_line(trainer: Trainer, probe: Probe) -> dict:
    """Needles and the indexers' choice with the weights as they would ship."""
    return {"step": trainer.step, "probe": probe(compute_weights(trainer.weights, torch.float32, "fp8"), trainer.biases)}


def train_piece(trainer: Trainer, source: Source, probe: Probe, state: Path, log: Path, limit_s: float) -> bool:
    """Trains until the schedule ends (true) or the time is up (false); saves either way."""
    start = time.monotonic()
    schedule = trainer.schedule
    while trainer.step < schedule.steps and time.monotonic() - start < limit_s:
        phase = phase_at(schedule, trainer.step)
        losses = trainer.run_step(source(phase, trainer.step))
        if trainer.step % 20 == 0 or trainer.step < 3:
            write_line(log, log_line(trainer, losses, time.monotonic() - start))
        if phase.index_loss and (trainer.step % schedule.probe_every == 0 or trainer.step == schedule.steps):
            write_line(log, probe_line(trainer, probe))
    trainer.seconds += time.monotonic() - start
    trainer.save(state)
    return trainer.step >= trainer.schedule.steps
