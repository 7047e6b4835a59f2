"""The checkpoint in Hugging Face's layout, FP8 as section 6.2 of the specification has it, and the way back."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from settings import Shape
from tokenizer import SPECIAL
from weights import STACKED, Weights, fp8_decode, fp8_encode, is_quantised, weight_shapes

EXPERT_PARTS = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}


def hub_name(name: str) -> str:
    """`layers.0.self_attn.q_a_proj` -> `model.layers.0.self_attn.q_a_proj.weight`"""
    if name == "lm_head":
        return "lm_head.weight"
    return f"model.{name}" if name.endswith(".bias") else f"model.{name}.weight"


def unstacked(weights: Weights) -> Weights:
    """One matrix a name: experts taken apart."""
    out = {}
    for name, w in weights.items():
        if not name.endswith(STACKED):
            out[name] = w
            continue
        stem, part = name.rsplit(".", 1)
        for e in range(w.shape[0]):
            out[f"{stem}.{e}.{EXPERT_PARTS[part]}"] = w[e]
    return out


def shipped_tensors(weights: Weights, biases: Weights) -> Weights:
    """FP8 of the bf16 source, as a quantiser that reads `source/` would write it."""
    out = {}
    for name, w in unstacked(weights).items():
        w = w.detach().cpu().to(torch.bfloat16).float()
        if not is_quantised(name):
            out[hub_name(name)] = w.to(torch.bfloat16).contiguous()
            continue
        codes, scales = fp8_encode(w)
        out[hub_name(name)] = codes.contiguous()
        out[hub_name(name) + "_scale_inv"] = scales.contiguous()
    for name, b in biases.items():
        out[f"model.{name}"] = b.detach().float().cpu().contiguous()
    return out


def bf16_tensors(weights: Weights, biases: Weights) -> Weights:
    """The source of the shipped file, for quantisers; not committed."""
    out = {hub_name(n): w.detach().float().cpu().to(torch.bfloat16).contiguous() for n, w in unstacked(weights).items()}
    return out | {f"model.{n}": b.detach().float().cpu().contiguous() for n, b in biases.items()}


def read_shipped(path: Path, shape: Shape, device: str = "cpu") -> tuple[Weights, Weights]:
    return read_tensors(load_file(str(path)), shape, device)


def read_tensors(stored: Weights, shape: Shape, device: str = "cpu") -> tuple[Weights, Weights]:
    """(weights dequantised to float32 under the recipe's names, router biases)"""

    def tensor(name: str) -> torch.Tensor:
        key = hub_name(name)
        scale = stored.get(key + "_scale_inv")
        w = stored[key].float() if scale is None else fp8_decode(stored[key], scale)
        return w.to(device)

    weights = {}
    for name, size in weight_shapes(shape).items():
        if name.endswith(STACKED):
            stem, part = name.rsplit(".", 1)
            weights[name] = torch.stack([tensor(f"{stem}.{e}.{EXPERT_PARTS[part]}") for e in range(size[0])])
        else:
            weights[name] = tensor(name)
    biases = {k.removeprefix("model."): v.to(device) for k, v in stored.items() if k.endswith("e_score_correction_bias")}
    return weights, biases


def read_shape(folder: Path) -> Shape:
    """The shape that a written `config.json` tells."""
    c = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Shape(
        vocab=c["vocab_size"], hidden=c["hidden_size"], layers=c["num_hidden_layers"], first_dense=c["first_k_dense_replace"],
        dense_width=c["intermediate_size"], heads=c["num_attention_heads"], nope=c["qk_nope_head_dim"], rope=c["qk_rope_head_dim"],
        v_dim=c["v_head_dim"], q_rank=c["q_lora_rank"], kv_rank=c["kv_lora_rank"], experts=c["n_routed_experts"],
        experts_per_token=c["num_experts_per_tok"], expert_width=c["moe_intermediate_size"], index_heads=c["index_n_heads"],
        index_dim=c["index_head_dim"], index_topk=c["index_topk"], index_types=tuple(c["indexer_types"]),
        rope_theta=c["rope_parameters"]["rope_theta"], max_positions=c["max_position_embeddings"],
    )


# Files beside the weights ---------------------------------------------------------------------------------------


def token_id(shape: Shape, token: str) -> int:
    return shape.vocab - len(SPECIAL) + SPECIAL.index(token)


def stop_ids(shape: Shape) -> list[int]:
    return [token_id(shape, t) for t in ("<|endoftext|>", "<|user|>", "<|observation|>")]


def not_converted(shape: Shape) -> list[str]:
    out = ["lm_head", "model.embed_tokens", "model.norm"]
    for name in weight_shapes(shape):
        if name.startswith("layers.") and not is_quantised(name):
            out.append(f"model.{name}".replace("indexer.weights_proj", "indexers_proj").replace(".self_attn.indexer.indexers_proj", ".self_attn.indexers_proj"))
    out += [f"model.layers.{i}.mlp.gate.e_score_correction_bias" for i in range(shape.layers + 1) if not shape.is_dense(i)]
    return sorted(out)


def config(shape: Shape, fp8: bool) -> dict:
    stops = stop_ids(shape)
    out = {
        "architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None,
        "dtype": "bfloat16", "eos_token_id": stops, "first_k_dense_replace": shape.first_dense, "head_dim": shape.rope,
        "hidden_act": "silu", "hidden_size": shape.hidden, "index_head_dim": shape.index_dim, "index_n_heads": shape.index_heads,
        "index_share_for_mtp_iteration": True, "index_topk": shape.index_topk, "indexer_rope_interleave": True,
        "indexer_types": list(shape.index_types), "initializer_range": 0.02, "intermediate_size": shape.dense_width,
        "kv_lora_rank": shape.kv_rank, "layer_types": ["deepseek_sparse_attention"] * shape.layers,
        "max_position_embeddings": shape.max_positions, "mlp_bias": False,
        "mlp_layer_types": ["dense" if shape.is_dense(i) else "sparse" for i in range(shape.layers)], "model_type": "glm_moe_dsa",
        "moe_intermediate_size": shape.expert_width, "moe_layer_freq": 1, "moe_router_dtype": "float32", "n_group": 1,
        "n_routed_experts": shape.experts, "n_shared_experts": 1, "norm_topk_prob": True, "num_attention_heads": shape.heads,
        "num_experts_per_tok": shape.experts_per_token, "num_hidden_layers": shape.layers, "num_key_value_heads": shape.heads,
        "num_nextn_predict_layers": 1, "pad_token_id": stops[0], "q_lora_rank": shape.q_rank, "qk_head_dim": shape.qk,
        "qk_nope_head_dim": shape.nope, "qk_rope_head_dim": shape.rope, "rms_norm_eps": shape.eps, "rope_interleave": True,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"}, "routed_scaling_factor": shape.routed_scale,
        "scoring_func": "sigmoid", "tie_word_embeddings": False, "topk_group": 1, "topk_method": "noaux_tc",
        "transformers_version": "5.17.0", "use_cache": True, "v_head_dim": shape.v_dim, "vocab_size": shape.vocab,
    }
    if fp8:
        out["quantization_config"] = {
            "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128],
            "modules_to_not_convert": not_converted(shape),
        }
    return out


def generation_config(shape: Shape) -> dict:
    stops = stop_ids(shape)
    return {"do_sample": True, "eos_token_id": stops, "pad_token_id": stops[0], "temperature": 0.6, "top_p": 0.95, "transformers_version": "5.17.0"}


def tokenizer_config(shape: Shape) -> dict:
    from tokenizer import PLAIN_ADDED

    decoder = {
        str(token_id(shape, t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": t not in PLAIN_ADDED}
        for t in SPECIAL
    }
    return {
        "add_prefix_space": False, "added_tokens_decoder": decoder, "additional_special_tokens": [t for t in SPECIAL if t not in PLAIN_ADDED],
        "clean_up_tokenization_spaces": False, "do_lower_case": False, "eos_token": "<|endoftext|>", "extra_special_tokens": {},
        "model_max_length": shape.max_positions, "pad_token": "<|endoftext|>", "padding_side": "left", "remove_space": False,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_checkpoint(folder: Path, shape: Shape, weights: Weights, biases: Weights, fp8: bool = True) -> None:
    """Weights and configuration; `tokenizer.json`, template, card and licence are files of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = shipped_tensors(weights, biases) if fp8 else bf16_tensors(weights, biases)
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    write_json(folder / "config.json", config(shape, fp8))
    write_json(folder / "generation_config.json", generation_config(shape))
    write_json(folder / "tokenizer_config.json", tokenizer_config(shape))
