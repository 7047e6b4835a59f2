"""Packs tensors of golden checkpoints into the archives that git holds; CMake unpacks them when it configures.

pack_golden.py FOLDER [NAME ...]: FOLDER/{model,reference}.safetensors to FOLDER/{model,reference}.tar.xz without the named
tensors. xz is told how wide the elements are: their upper bytes are alike and their lower ones are not.
"""

import io
import json
import lzma
import struct
import sys
import tarfile
from pathlib import Path

WIDTH_BITS = {"model": 1, "reference": 2}  # BF16 and F32


def without(data: bytes, dropped: set[str]) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body, kept = bytearray(), {}
    for name, entry in header.items():
        if name in dropped:
            continue
        kept[name] = entry
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        entry["data_offsets"] = [len(body), len(body) + end - begin]
        body += data[8 + length + begin : 8 + length + end]
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def archive(name: str, data: bytes, width_bits: int) -> bytes:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as out:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        out.addfile(member, io.BytesIO(data))
    preset = 9 | lzma.PRESET_EXTREME
    filters = [{"id": lzma.FILTER_LZMA2, "preset": preset, "lc": 0, "lp": width_bits, "pb": width_bits}]
    return lzma.compress(tar.getvalue(), format=lzma.FORMAT_XZ, filters=filters)


def main() -> None:
    folder, dropped = Path(sys.argv[1]), set(sys.argv[2:])
    for kind, width_bits in WIDTH_BITS.items():
        file = folder / f"{kind}.safetensors"
        if not file.exists():
            continue
        data = file.read_bytes()
        if dropped:
            data = without(data, dropped)
        (folder / f"{kind}.tar.xz").write_bytes(archive(file.name, data, width_bits))


if __name__ == "__main__":
    main()
