"""Every number of the recipe: the model's shape, the phases of training, the seeds.

The other files take them from here, so that a change of the demo model is a change of this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

RECIPE = Path(__file__).resolve().parent
MODEL_FOLDER = RECIPE.parent

SEED = 20261201


@dataclass(frozen=True)
class Shape:
    """The model. Letters in comments are those of the GLM-5.2 papers and of config.json."""

    vocab: int = 4608
    hidden: int = 256
    layers: int = 8
    first_dense: int = 2
    dense_width: int = 352
    heads: int = 8
    nope: int = 32
    rope: int = 32
    v_dim: int = 32
    q_rank: int = 96
    kv_rank: int = 128
    experts: int = 24
    experts_per_token: int = 4
    expert_width: int = 96
    routed_scale: float = 2.5
    index_heads: int = 4
    index_dim: int = 64
    index_topk: int = 256
    index_types: tuple[str, ...] = (
        "full", "full", "shared", "full", "shared", "shared", "full", "shared",
    )
    rope_theta: float = 10000.0
    eps: float = 1e-5
    latent_eps: float = 1e-5
    k_norm_eps: float = 1e-6
    max_positions: int = 4096

    @property
    def qk(self) -> int:
        return self.nope + self.rope

    def is_full(self, layer: int) -> bool:
        return layer >= self.layers or self.index_types[layer] == "full"

    def is_dense(self, layer: int) -> bool:
        return layer < self.first_dense


TINY = Shape(
    vocab=4608, hidden=64, layers=4, first_dense=1, dense_width=64, heads=2, nope=16, rope=16,
    v_dim=16, q_rank=32, kv_rank=32, experts=8, experts_per_token=2, expert_width=32,
    index_heads=2, index_dim=32, index_topk=32, index_types=("full", "full", "shared", "full"),
)


@dataclass(frozen=True)
class Phase:
    """A stretch of steps with one row length and one way of attending."""

    name: str
    steps: int
    rows: int
    length: int
    sparse: bool
    index_loss: bool
    mtp_depths: int
    quant: bool
    mix: str


@dataclass(frozen=True)
class Schedule:
    phases: tuple[Phase, ...]
    # (step, share of the peak learning rate), straight lines between.
    rates: tuple[tuple[int, float], ...]
    muon_lr: float = 5e-3
    adam_lr: float = 4e-3
    weight_decay: float = 0.05
    bias_rate: float = 2e-3
    mtp_weights: tuple[float, ...] = (0.3, 0.2, 0.15)
    index_weight: float = 1.0
    # How often, while the indexers learn, needles are looked for in texts of how many tokens.
    probe_every: int = 250
    needle_tokens: int = 4096

    @property
    def steps(self) -> int:
        return sum(phase.steps for phase in self.phases)


# The indexers learn while attention is still dense, first at 1,024, then at 4,096, where attention itself must learn to
# find one key among so many; then the model learns to live with their choice. The end is quantised as it ships.
FULL = Schedule(
    phases=(
        Phase("dense", 2500, 128, 1024, False, False, 1, False, "short"),
        Phase("warm", 350, 128, 1024, False, True, 1, False, "short"),
        Phase("long-warm", 300, 32, 4096, False, True, 1, False, "long"),
        Phase("long", 1050, 32, 4096, True, True, 1, False, "long"),
        Phase("ship", 330, 32, 4096, True, True, 3, True, "long"),
    ),
    rates=((0, 0.01), (100, 1.0), (3150, 1.0), (4530, 0.02)),
)

TOY = Schedule(
    phases=(
        Phase("dense", 6, 4, 128, False, False, 1, False, "short"),
        Phase("warm", 4, 4, 128, False, True, 1, False, "short"),
        Phase("long-warm", 2, 2, 256, False, True, 1, False, "long"),
        Phase("long", 4, 2, 256, True, True, 1, False, "long"),
        Phase("ship", 4, 2, 256, True, True, 3, True, "long"),
    ),
    rates=((0, 0.5), (2, 1.0), (20, 0.1)),
    probe_every=5,
    needle_tokens=512,
)


@dataclass
class Paths:
    """Where a run keeps its pieces; everything under `work` can be rebuilt."""

    work: Path
    corpus: Path | None = None
    tokenizer: Path = field(init=False)
    shards: Path = field(init=False)
    state: Path = field(init=False)
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        self.tokenizer = self.work / "tokenizer.json"
        self.shards = self.work / "shards"
        self.state = self.work / "state.pt"
        self.log = self.work / "log.jsonl"
