"""The two forward passes agree; sparse and dense agree where they must; formats survive the round trip."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    import torch
except ImportError:  # the model needs torch; generators and tokenizer are tested without
    raise unittest.SkipTest("torch is not installed") from None

from cached_model import CachedModel, accepted  # noqa: E402
from settings import TINY  # noqa: E402
from training_model import Batch, TrainingModel  # noqa: E402
from weights import fp8_decode, fp8_encode, mxfp4_rounded, new_router_bias, new_weights  # noqa: E402


def wild_weights(seed: int) -> dict:
    weights = new_weights(TINY, seed)
    rng = torch.Generator().manual_seed(seed + 1)
    for name, w in weights.items():
        if name.endswith(("k_norm.bias", "lm_head")):
            w += 0.3 * torch.randn(w.shape, generator=rng)
    return weights


class ForwardPasses(unittest.TestCase):
    def setUp(self) -> None:
        self.weights = wild_weights(3)
        self.biases = {n: 0.1 * torch.randn(b.shape, generator=torch.Generator().manual_seed(5)) for n, b in new_router_bias(TINY).items()}
        self.tokens = torch.randint(0, TINY.vocab, (2, 96), generator=torch.Generator().manual_seed(7))

    def cached_losses(self, sparse: bool, exact: bool = True) -> list[float]:
        model = CachedModel(TINY, self.weights, self.biases, sparse=sparse, exact=exact)
        cache = model.new_cache(2, 100)
        y = model.prefill(self.tokens, cache)
        out = [self.loss(model.logits(y)[:, :-1], self.tokens[:, 1:])]
        positions = torch.arange(95).repeat(2, 1)
        _, state, keys = model.draft_first(self.tokens[:, 1:], y[:, :95], positions, cache)
        for depth in (1, 2, 3):
            out.append(self.loss(model.logits(state)[:, : 95 - depth], self.tokens[:, depth + 1 :]))
            following = self.tokens.roll(-depth - 1, dims=1)[:, :95]
            state = model.draft_next(following, state, positions + depth, keys, cache)
        return out

    @staticmethod
    def loss(logits: torch.Tensor, target: torch.Tensor) -> float:
        return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()))

    def test_training_and_cached_passes_agree(self) -> None:
        for sparse in (False, True):
            model = TrainingModel(TINY, "cpu", compiled=False)
            batch = Batch(self.tokens, torch.ones(self.tokens.shape))
            losses = model.forward(self.weights, self.biases, batch, sparse, 3, None)
            trained = [float(losses.target), *(float(d) for d in losses.drafts)]
            for a, b in zip(trained, self.cached_losses(sparse, exact=False)):
                self.assertAlmostEqual(a, b, delta=2e-3)

    def test_bands_choose_the_top_keys_and_attend_to_no_other(self) -> None:
        rng = torch.Generator().manual_seed(4)
        q, k, gates = (torch.randn(*size, generator=rng) for size in ((2, 96, 2, 8), (2, 96, 8), (2, 96, 2)))
        scores = (torch.einsum("bthd,bsd->bths", q, k).relu() * gates[..., None]).sum(2)
        scores = scores.masked_fill(torch.ones(96, 96, dtype=torch.bool).triu(1), float("-inf"))
        kth = scores.topk(TINY.index_topk, dim=-1).values[..., -1:]
        heads = [torch.randn(2 * 96, 2, 16, generator=rng) for _ in range(3)]
        for band in (96, 32, 40):
            model = TrainingModel(TINY, "cpu", compiled=False, band=band)
            bands = model.choose(q, k, gates)
            whole = torch.cat([torch.nn.functional.pad(b, (0, 96 - b.shape[-1]), value=float("-inf")) for b in bands], dim=2)[:, 0]
            kept = whole == 0
            self.assertEqual(kept.sum(-1)[0].tolist(), [min(i + 1, TINY.index_topk) for i in range(96)])
            self.assertTrue(bool((scores[kept] >= kth.expand_as(scores)[kept]).all()))
            split = [t.unflatten(0, (2, -1)).transpose(1, 2) for t in heads]
            wanted = torch.nn.functional.scaled_dot_product_attention(*split, attn_mask=whole[:, None]).transpose(1, 2).flatten(2).flatten(0, 1)
            self.assertTrue(torch.allclose(model.attend(*heads, 2, bands), wanted, atol=1e-5))

    def test_half_of_the_rows_that_teach_the_indexers_predict_answers(self) -> None:
        weight = torch.full((2, 512), 0.1)
        weight[:, 400:420] = 1.0
        picks = TrainingModel(TINY, "cpu", compiled=False).sampled(weight, 1)
        answers = ((picks >= 399) & (picks < 419)).sum(-1)
        self.assertTrue(bool((answers >= picks.shape[1] // 2).all()))

    def test_sparse_differs_from_dense_past_topk(self) -> None:
        self.assertNotAlmostEqual(self.cached_losses(True)[0], self.cached_losses(False)[0], delta=1e-5)

    def test_decoding_equals_prefill(self) -> None:
        model = CachedModel(TINY, self.weights, self.biases, exact=True)
        whole = model.prefill(self.tokens, model.new_cache(2, 96))
        cache = model.new_cache(2, 96)
        model.prefill(self.tokens[:, :60], cache)
        for i in range(60, 96):
            step = model.rows(self.tokens[:, i : i + 1], torch.full((2, 1), i), cache)
            self.assertTrue(torch.allclose(step[:, 0], whole[:, i], atol=1e-4))


class Formats(unittest.TestCase):
    def test_fp8_keeps_three_bits(self) -> None:
        w = torch.randn(200, 300, generator=torch.Generator().manual_seed(1))
        codes, scales = fp8_encode(w)
        self.assertEqual(tuple(scales.shape), (2, 3))
        self.assertLess(float((fp8_decode(codes, scales) - w).abs().max() / w.abs().max()), 0.04)
        self.assertEqual(float(codes.float().abs().max()), 448.0)

    def test_fp8_of_zeros_has_scale_one(self) -> None:
        self.assertEqual(fp8_encode(torch.zeros(128, 128))[1].item(), 1.0)

    def test_mxfp4_group(self) -> None:
        row = torch.tensor([[0, 0.1, -0.25, 0.26, 0.5, -0.74, 0.75, 0.76, 1, 1.25, -1.25, 1.3, 1.5, 1.75, 2, 2.4,
                             2.5, -2.6, 3, 3.4, 3.5, 3.6, 4, -4.9, 5, 5.1, 6, -6, 0.2, -0.3, 0.9, -1.1]])
        wanted = [0, 0, 0, 0.5, 0.5, -0.5, 1, 1, 1, 1, -1, 1.5, 1.5, 2, 2, 2, 2, -3, 3, 3, 4, 4, 4, -4, 4, 6, 6, -6, 0, -0.5, 1, -1]
        self.assertEqual(mxfp4_rounded(row)[0].tolist(), wanted)


class Accepted(unittest.TestCase):
    def test_counts_the_bonus_token(self) -> None:
        tokens = [1, 2, 3, 4, 5, 6]
        right = [[tokens[i + 2 + k] if i + 2 + k < 6 else 0 for k in range(3)] for i in range(5)]
        self.assertEqual(accepted(right, tokens, 2), (4, 1))
        self.assertEqual(accepted([[0, 0, 0]] * 5, tokens, 2), (3, 3))


if __name__ == "__main__":
    unittest.main()
