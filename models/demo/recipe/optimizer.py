"""Muon for the matrices, Adam for the rest, both over plain dictionaries of tensors.

Muon orthogonalises the momentum of a matrix (five Newton-Schulz steps); stacked experts are a batch of matrices.
The update is scaled to the size of an Adam update, so that one learning rate means the same for all shapes.
"""

from __future__ import annotations

import torch

from weights import Weights, is_norm

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
ADAM_ENDS = ("embed_tokens", "lm_head", ".bias", "mlp.gate", "weights_proj", "indexer.wk", "indexer.wq_b")


def uses_muon(name: str) -> bool:
    return not is_norm(name) and not name.endswith(ADAM_ENDS)


def orthogonal(g: torch.Tensor) -> torch.Tensor:
    """g [batch, out, in] to about the nearest matrix with singular values near 1."""
    a, b, c = NEWTON_SCHULZ
    x = g.to(torch.bfloat16)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        xx = x @ x.mT
        x = a * x + (b * xx + c * xx @ xx) @ x
    return (x.mT if tall else x).float()


class Optimizer:
    def __init__(self, weights: Weights, weight_decay: float) -> None:
        self.weights = weights
        self.weight_decay = weight_decay
        self.steps = 0
        self.first = {name: torch.zeros_like(w) for name, w in weights.items()}
        self.second = {name: torch.zeros_like(w) for name, w in weights.items() if not uses_muon(name)}
        self.groups: dict[tuple[int, ...], list[str]] = {}
        for name, w in weights.items():
            if uses_muon(name):
                self.groups.setdefault(tuple(w.shape[-2:]), []).append(name)

    def state(self) -> dict:
        return {"steps": self.steps, "first": self.first, "second": self.second}

    def load(self, state: dict) -> None:
        self.steps = state["steps"]
        for mine, theirs in ((self.first, state["first"]), (self.second, state["second"])):
            for name in mine:
                mine[name].copy_(theirs[name])

    @torch.no_grad()
    def step(self, muon_lr: float, adam_lr: float) -> None:
        self.steps += 1
        for size, names in self.groups.items():
            self._muon(size, names, muon_lr)
        self._adam(adam_lr)
        for w in self.weights.values():
            w.grad = None

    def _muon(self, size: tuple[int, ...], names: list[str], lr: float) -> None:
        grads = [self.weights[n].grad for n in names]
        moments = [self.first[n] for n in names]
        torch._foreach_lerp_(moments, grads, 0.05)
        mixed = torch._foreach_lerp(grads, moments, 0.95)
        update = orthogonal(torch.cat([m.reshape(-1, *size) for m in mixed]))
        update *= -lr * 0.2 * max(size) ** 0.5
        counts = [self.weights[n].numel() // (size[0] * size[1]) for n in names]
        parts = [u.view_as(self.weights[n]) for u, n in zip(update.split(counts), names)]
        ws = [self.weights[n] for n in names]
        torch._foreach_mul_(ws, 1 - lr * self.weight_decay)
        torch._foreach_add_(ws, parts)

    def _adam(self, lr: float) -> None:
        names = list(self.second)
        ws = [self.weights[n] for n in names if self.weights[n].grad is not None]
        names = [n for n in names if self.weights[n].grad is not None]
        grads = [w.grad for w in ws]
        m, v = [self.first[n] for n in names], [self.second[n] for n in names]
        torch._foreach_lerp_(m, grads, 0.1)
        torch._foreach_mul_(v, 0.95)
        torch._foreach_addcmul_(v, grads, grads, 0.05)
        fix1, fix2 = 1 - 0.9**self.steps, 1 - 0.95**self.steps
        denominator = torch._foreach_sqrt(torch._foreach_div(v, fix2))
        torch._foreach_add_(denominator, 1e-10)
        torch._foreach_addcdiv_(ws, m, denominator, -lr / fix1)
