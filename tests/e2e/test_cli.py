"""The built program as a person uses it. Usage: test_cli.py PROGRAM TESTS_FOLDER"""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
GOLDEN = Path()


def bascule(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )


def read_safetensors(path: Path) -> dict[str, tuple[list[int], list]]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        letter = {"F32": "f", "I32": "i"}[entry["dtype"]]
        body = data[8 + length + begin : 8 + length + end]
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{len(body) // 4}{letter}", body)))
    return tensors


class Run(unittest.TestCase):
    def setUp(self) -> None:
        self.tiny = GOLDEN / "glm-moe-dsa-tiny"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def greedy(self, *more: str) -> subprocess.CompletedProcess:
        return bascule(
            "run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "24", "--temperature", "0",
            "--ignore-eos", "--quiet", *more,
        )

    def test_a_dump_is_what_transformers_computed(self) -> None:
        expected = read_safetensors(self.tiny / "reference.safetensors")
        prompt = expected["input_ids"][1][:40]
        ids = self.folder / "ids.txt"
        ids.write_text("\n".join(map(str, prompt)))
        dump = self.folder / "out.safetensors"
        ran = bascule(
            "run", self.tiny, "--prompt-ids", f"@{ids}", "--max-tokens", "48", "--temperature", "0",
            "--ignore-eos", "--kernels", "reference", "--activations", "f32",
            "--latent-norm-eps", "1e-6", "--dump", dump,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = read_safetensors(dump)
        self.assertEqual(found["generated"][1], expected["generated"][1])
        self.assertEqual(found["input_ids"][1], prompt)
        self.assertEqual([int(t) for t in ran.stdout.split(",")], expected["generated"][1][40:])
        self.assertEqual(found["logits"][0], [87, 512])  # the last token is drawn, not run
        for name, width in [("logits", 512), ("hidden.0", 128), ("hidden.3", 128), ("hidden.6", 128)]:
            n = 40 * width
            worst = max(abs(a - b) for a, b in zip(found[name][1][:n], expected[name][1][:n]))
            self.assertLessEqual(worst, 3e-4, name)

    def test_ranks_threads_and_batches_give_the_same_tokens(self) -> None:
        alone = self.greedy().stdout
        self.assertEqual(len(alone.split(",")), 24)
        for more in (["--tp", "2"], ["--ep", "2"], ["--tp", "2", "--dp", "2"], ["--threads", "1"],
                     ["--max-batch-tokens", "2", "--max-num-seqs", "2"]):
            self.assertEqual(self.greedy(*more).stdout, alone, more)

    def test_a_seed_repeats_an_answer(self) -> None:
        ask = ["run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "16", "--ignore-eos", "--quiet"]
        first = bascule(*ask, "--seed", "3").stdout
        self.assertEqual(bascule(*ask, "--seed", "3").stdout, first)
        self.assertNotEqual(bascule(*ask, "--seed", "4").stdout, first)

    def test_the_demo_model_adds(self) -> None:
        ran = bascule("run", "Tom has 3 apples and buys 4 more. How many has he?", "--temperature", "0")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("7", ran.stdout)
        piped = bascule("run", "--temperature", "0", stdin="Tom has 3 apples and buys 4 more. How many has he?")
        self.assertEqual(piped.stdout, ran.stdout)

    def test_nothing_at_or_after_a_stop_string_is_printed(self) -> None:
        ask = ["run", "Tom has 3 apples and buys 4 more. How many has he?", "--temperature", "0"]
        whole = bascule(*ask).stdout
        stop = "apples."
        self.assertIn(stop, whole)
        cut = bascule(*ask, "--stop", stop)
        self.assertEqual(cut.stdout.rstrip("\n"), whole[: whole.index(stop)])
        self.assertIn("ended by stop", cut.stderr)

    def test_ctrl_c_stops_an_answer(self) -> None:
        process = subprocess.Popen(
            [PROGRAM, "run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "4000", "--ignore-eos"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        process.stdout.read(4)  # it has begun
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopped by Ctrl-C", errors)

    def refuses(self, *arguments: str, says: str) -> None:
        ran = bascule(*arguments)
        self.assertNotEqual(ran.returncode, 0)
        self.assertEqual(ran.stdout, "")
        self.assertIn(says, ran.stderr)

    def test_bad_input_is_refused_with_what_would_do(self) -> None:
        tiny = str(self.tiny)
        self.refuses("rnu", says='is it "run"?')
        self.refuses("run", "no/such-model", "hello", says="hf download no/such-model")
        self.refuses("run", "./nowhere", "hello", says="nowhere")
        self.refuses("run", tiny, "hello", says="tokenizer.json")
        self.refuses("run", tiny, "--prompt-ids", "5,512", says="512")
        self.refuses("run", tiny, "--prompt-ids", "5,-1", says="-1")
        self.refuses("run", tiny, "--prompt-ids", "", says="no token id")
        self.refuses("run", tiny, "--prompt-ids", ",".join(["5"] * 5000), says="4096")
        self.refuses("run", tiny, "--prompt-ids", "5", "--max-model-len", "99999", says="4096")
        self.refuses("run", tiny, "--prompt-ids", "5", "--tp", "5", says="4 attention heads")
        self.refuses("run", tiny, "--prompt-ids", "5", "--cpu-target", "z80", says="this machine")
        self.refuses("run", tiny, "--prompt-ids", "5", "--max-tokens", "2",
                     "--dump", "/nonexistent/x", says="/nonexistent/x")
        self.refuses("run", tiny, "one", "two", says="put quotes around")


class Others(unittest.TestCase):
    def test_help_names_every_command_and_teaches(self) -> None:
        listed = bascule("--help").stdout
        for command in ("run", "plan", "inspect", "config", "completion"):
            self.assertIn(f"  {command} ", listed)
            self.assertIn("Examples:", bascule(command, "--help").stdout)

    def test_plan_resolves_every_op_without_loading(self) -> None:
        plan = json.loads(bascule("plan", GOLDEN / "glm-moe-dsa-tiny", "--json").stdout)
        sites = {op["site"] for op in plan["ops"]}
        self.assertIn("layers.attention.q_a", sites)
        self.assertTrue(all(op["kernel"].startswith("cpu.") for op in plan["ops"]))
        pools = {pool["name"]: pool["bytes"] for pool in plan["memory"]["pools"]}
        self.assertEqual(sum(pools.values()), plan["memory"]["total_bytes"])
        explained = bascule("plan", GOLDEN / "glm-moe-dsa-tiny", "--explain", "matmul",
                            "--kernels", "reference").stdout
        self.assertIn("reference rows were asked for", explained)
        self.assertIn("the plan has", bascule("plan", GOLDEN / "glm-moe-dsa-tiny", "--explain", "x").stderr)

    def test_inspect_has_one_entry_a_tensor(self) -> None:
        ran = bascule("inspect", GOLDEN / "glm-moe-dsa-calm", "--json", "--check")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        tensors = json.loads(ran.stdout)["tensors"]
        self.assertEqual({t["fate"] for t in tensors}, {"loaded"})
        self.assertEqual(len({t["name"] for t in tensors}), len(tensors))

    def test_config_tells_where_a_value_came_from(self) -> None:
        settings = json.loads(bascule("config", "--json", BASCULE_TP="2").stdout)
        self.assertEqual(settings["tp"], {"value": "2", "origin": "environment BASCULE_TP"})
        self.assertEqual(settings["ep"], {"value": "1", "origin": "built-in"})

    def test_completion_scripts_are_scripts(self) -> None:
        script = bascule("completion", "bash").stdout
        self.assertEqual(subprocess.run(["bash", "-n"], input=script, text=True).returncode, 0)
        asked = script + "\nCOMP_WORDS=(bascule run --kern); COMP_CWORD=2; _bascule; echo ${COMPREPLY[@]}"
        answer = subprocess.run(["bash"], input=asked, text=True, capture_output=True).stdout
        self.assertEqual(answer.strip(), "--kernels")
        self.assertIn("complete -c bascule", bascule("completion", "fish").stdout)
        self.assertIn("bash, zsh or fish", bascule("completion", "tcsh").stderr)


if __name__ == "__main__":
    PROGRAM, GOLDEN = sys.argv[1], Path(sys.argv[2]) / "golden"
    unittest.main(argv=sys.argv[:1])
