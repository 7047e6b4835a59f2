"""make_random_model writes the checkpoint that its configuration describes, the same for the same seed."""
import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

PROGRAM, GOLDEN = sys.argv[1], pathlib.Path(sys.argv[2])


def header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def tensors(folder):
    """Name to (type, shape) of all shards, checked against the index."""
    found = {}
    weight_map = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    for shard in sorted(folder.glob("*.safetensors")):
        for name, tensor in header(shard).items():
            if name != "__metadata__":
                assert weight_map[name] == shard.name, name
                found[name] = (tensor["dtype"], tensor["shape"])
    assert found.keys() == weight_map.keys()
    return found


def digest(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def make(folder, *options):
    command = [PROGRAM, folder, "--config", GOLDEN / "config.json", "--shard-mb", "1", *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return digest(folder)


def values(folder, name):
    """Elements of a BF16 tensor."""
    for shard in folder.glob("*.safetensors"):
        entries = header(shard)
        if name not in entries:
            continue
        data = shard.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        first, last = entries[name]["data_offsets"]
        raw = data[8 + length + first : 8 + length + last]
        return [struct.unpack("<f", b"\0\0" + raw[i : i + 2])[0] for i in range(0, len(raw), 2)]
    raise KeyError(name)


with tempfile.TemporaryDirectory() as temporary:
    one, two, three = (pathlib.Path(temporary) / name for name in ("one", "two", "three"))
    first = make(one)
    assert len(first) > 5, "several shards of at most 1 MB"
    assert make(two) == first, "the same seed gives the same bytes"
    assert make(three, "--seed", "2") != first, "another seed gives others"

    golden = {
        name: (tensor["dtype"], tensor["shape"])
        for name, tensor in header(GOLDEN / "model.safetensors").items()
        if name != "__metadata__"
    }
    assert tensors(one) == golden, "names, types and shapes are those of transformers' checkpoint"

    embedding = values(one, "model.embed_tokens.weight")  # 512 * 128 of them
    mean = sum(embedding) / len(embedding)
    deviation = (sum(x * x for x in embedding) / len(embedding)) ** 0.5
    assert abs(mean) < 5e-4 and abs(deviation - 0.02) < 5e-4, (mean, deviation)

    formats = pathlib.Path(temporary) / "formats"
    make(formats, "--experts", "mxfp4", "--rest", "fp8")
    found = tensors(formats)
    for name, (_, shape) in golden.items():
        if ".experts." in name or ".shared_experts." in name:
            assert found[name] == ("U8", [shape[0], shape[1] // 2]), name
            assert found[name + "_scale"] == ("U8", [shape[0], shape[1] // 32]), name
        elif name.endswith("_proj.weight") and "weights_proj" not in name:
            assert found[name] == ("F8_E4M3", shape), name
            assert found[name + "_scale_inv"][1] == [-(-n // 128) for n in shape], name

    failed = subprocess.run([PROGRAM, one, "--seed", "x"], capture_output=True, text=True)
    assert failed.returncode == 1 and "usage: make_random_model" in failed.stderr
