"""The recipe's model gives what transformers gave for the calm fixture and its draft layer."""

from __future__ import annotations

import dataclasses
import sys
import unittest
from pathlib import Path

RECIPE = Path(__file__).resolve().parents[1]
GOLDEN = RECIPE.parents[2] / "tests" / "golden"
sys.path.insert(0, str(RECIPE))

try:
    import torch
    from safetensors.torch import load_file
except ImportError:
    raise unittest.SkipTest("torch or safetensors is not installed") from None

from cached_model import CachedModel  # noqa: E402
from export import read_shape, read_tensors  # noqa: E402
from reference import chain  # noqa: E402


class Calm(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        base, draft = GOLDEN / "glm-moe-dsa-calm", GOLDEN / "glm-moe-dsa-calm-mtp"
        if not draft.exists():
            raise unittest.SkipTest("the calm fixtures are not here")
        shape = dataclasses.replace(read_shape(base), latent_eps=1e-6)
        stored = load_file(str(base / "model.safetensors")) | load_file(str(draft / "model.safetensors"))
        cls.model = CachedModel(shape, *read_tensors(stored, shape), exact=True)
        cls.target = load_file(str(base / "reference.safetensors"))
        cls.draft = load_file(str(draft / "reference.safetensors"))
        cls.tokens = cls.target["input_ids"].long()[None]

    def near(self, mine: torch.Tensor, theirs: torch.Tensor) -> None:
        self.assertLess(float((mine - theirs).norm() / theirs.norm()), 1e-4)

    def test_logits_and_states(self) -> None:
        n = self.tokens.shape[1]
        hidden: list[torch.Tensor] = []
        cache = self.model.new_cache(1, n)
        y = self.model.rows(self.tokens, torch.arange(n)[None], cache, hidden)
        self.near(self.model.logits(y)[0], self.target["logits"])
        for i, h in enumerate(hidden):
            self.near(h[0], self.target[f"hidden.{i}"])
        u, state, _ = self.model.draft_first(self.tokens[:, 1:], y[:, :-1], torch.arange(n - 1)[None], cache)
        self.near(u[0], self.draft["draft1.u"])
        self.near(self.model.logits(state)[0], self.draft["draft1.logits"])

    def test_chains(self) -> None:
        for p in (30, 120, 300):
            mine = chain(self.model, self.tokens, p)
            self.assertEqual(mine[f"chain.{p}.topk"].tolist(), self.draft[f"chain.{p}.topk"].tolist())
            self.assertEqual(mine[f"chain.{p}.share.tokens"].tolist(), self.draft[f"chain.{p}.share.tokens"][:3].tolist())
            self.near(mine[f"chain.{p}.share.logits"], self.draft[f"chain.{p}.share.logits"][:3])
            self.assertEqual(mine[f"chain.{p}.target"].tolist(), self.draft[f"chain.{p}.target"][:5].tolist())


if __name__ == "__main__":
    unittest.main()
