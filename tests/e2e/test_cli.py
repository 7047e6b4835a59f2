"""The built program as a person uses it. Usage: test_cli.py PROGRAM TESTS_FOLDER"""

import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
GOLDEN = Path()
HOME = tempfile.TemporaryDirectory()  # of a user who has no files yet; the program keeps its caches there
APPLES = "Tom has 3 apples and buys 4 more. How many has he?"


def clean_environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": HOME.name, **more}


def bascule(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        env=clean_environment(**environment),
    )


def start(*arguments: str, **streams) -> subprocess.Popen:
    return subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(), **streams,
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

    def test_every_position_of_a_prompt_is_what_transformers_computed(self) -> None:
        expected = read_safetensors(self.tiny / "reference.safetensors")
        dump = self.folder / "out.safetensors"
        ran = bascule(
            "run", self.tiny, "--prompt-ids", ",".join(map(str, expected["input_ids"][1])),
            "--max-tokens", "1", "--ignore-eos", "--kernels", "reference", "--activations", "f32",
            "--latent-norm-eps", "1e-6", "--dump", dump,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = read_safetensors(dump)
        for name in ["logits", *(f"hidden.{i}" for i in range(7))]:
            self.assertEqual(found[name][0], expected[name][0], name)
            worst = max(abs(a - b) for a, b in zip(found[name][1], expected[name][1]))
            self.assertLessEqual(worst, 3e-4, name)
        argmax = lambda rows: [max(range(512), key=rows[i : i + 512].__getitem__)
                               for i in range(0, len(rows), 512)]
        self.assertEqual(argmax(found["logits"][1]), argmax(expected["logits"][1]))

    def test_a_full_disk_is_told_and_leaves_nothing_behind(self) -> None:
        def small_files() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        dump = self.folder / "out.safetensors"
        process = start("run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "2",
                        "--ignore-eos", "--dump", dump, preexec_fn=small_files)
        out, errors = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(len(out.split(",")), 2)  # the answer is not lost
        self.assertIn("out.safetensors", errors)
        self.assertIn("File too large", errors)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_full_standard_output_is_told(self) -> None:
        with open("/dev/full", "w") as full:
            for arguments in (["run", self.tiny, "--prompt-ids", "5", "--max-tokens", "3"],
                              ["plan", self.tiny], ["--help"]):
                ran = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full,
                                     stderr=subprocess.PIPE, text=True, env=clean_environment())
                self.assertEqual(ran.returncode, 1)
                self.assertIn("standard output: No space left on device", ran.stderr)

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
        ran = bascule("run", APPLES, "--temperature", "0")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("7", ran.stdout)
        piped = bascule("run", "--temperature", "0", stdin=APPLES)
        self.assertEqual(piped.stdout, ran.stdout)
        short = bascule("run", APPLES, "--temperature", "0", "--quiet")
        self.assertIn("7", short.stdout)
        self.assertNotIn("<think>", short.stdout)
        self.assertEqual(short.stderr, "")

    def test_n_answers_differ_and_each_repeats(self) -> None:
        ask = ["run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "16", "--ignore-eos",
               "--quiet", "--seed", "3"]
        three = bascule(*ask, "--n", "3").stdout.split("--- answer ")[1:]
        texts = [part.split(" ---\n")[1] for part in three]
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(texts[0], bascule(*ask).stdout)

    def test_nothing_at_or_after_a_stop_string_is_printed(self) -> None:
        ask = ["run", APPLES, "--temperature", "0"]
        whole = bascule(*ask).stdout
        stop = "apples."
        self.assertIn(stop, whole)
        cut = bascule(*ask, "--stop", stop)
        self.assertEqual(cut.stdout.rstrip("\n"), whole[: whole.index(stop)])
        self.assertIn("ended by stop", cut.stderr)

    def test_a_trace_has_every_site_of_the_plan(self) -> None:
        file = self.folder / "trace.json"
        self.assertEqual(self.greedy("--trace", file).returncode, 0)
        zones = {event["name"] for event in json.loads(file.read_text())["traceEvents"]}
        plan = json.loads(bascule("plan", self.tiny, "--json").stdout)
        sites = {op["site"] for op in plan["ops"] if op["launches"] > 0}
        self.assertLessEqual(sites | {"load", "schedule", "forward", "draw", "commit"}, zones)

    def test_ctrl_c_stops_an_answer(self) -> None:
        process = start("run", self.tiny, "--prompt-ids", "5,6,7", "--max-tokens", "4000",
                        "--ignore-eos")
        process.stdout.read(4)  # it has begun
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopped by Ctrl-C", errors)

    def test_ctrl_c_ends_the_wait_for_a_prompt(self) -> None:
        fifo = self.folder / "ids"
        os.mkfifo(fifo)
        process = start("run", self.tiny, "--prompt-ids", f"@{fifo}")
        with open(fifo, "w"):  # opens once the program has opened it too
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
        self.refuses("run", tiny, "one", "two", says="needs quotes")
        self.refuses("run", tiny, says="the prompt on standard input is empty")
        self.refuses("run", tiny, "hello", "--prompt-ids", "5", says="one of them is wanted")
        self.refuses("run", tiny, "--prompt-ids", "5", "--raw", says="has no effect on --prompt-ids")
        self.refuses("run", tiny, "--prompt-ids", "@/nonexistent/ids", says="/nonexistent/ids")
        self.refuses("run", tiny, "--prompt-ids", "5", "--stop-token-ids", "512", says="512")
        self.refuses("run", tiny, "--prompt-ids", "5", "--logit-bias", "600:1", says="600")
        self.refuses("run", tiny, "--prompt-ids", "5", "--kv-cache-bytes", "1", says="one page of 16")
        self.refuses("run", tiny, "--prompt-ids", "5", "--config", "/nonexistent/c", says="/nonexistent/c")
        self.refuses("plan", tiny, tiny, says="one model is wanted")
        self.refuses("run", "caf\udce9", says="UTF-8")  # one byte of Latin-1


class Chat(unittest.TestCase):
    """A person at a terminal: standard input is one, the answers go to a pipe."""

    def setUp(self) -> None:
        self.person, terminal = pty.openpty()
        self.addCleanup(os.close, self.person)
        self.process = start("run", "--temperature", "0", "--quiet", stdin=terminal)
        os.close(terminal)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.stderr.close)
        self.addCleanup(self.process.kill)

    def wait_for_prompt(self) -> None:
        seen = ""
        while not seen.endswith("> "):
            letter = self.process.stderr.read(1)
            self.assertNotEqual(letter, "", seen)
            seen += letter

    def ask(self, question: str) -> None:
        self.wait_for_prompt()
        os.write(self.person, question.encode() + b"\n")

    def test_it_answers_until_an_empty_line_and_remembers(self) -> None:
        self.ask(APPLES)
        self.ask(APPLES)
        self.ask("")
        out, _ = self.process.communicate(timeout=240)
        self.assertEqual(self.process.returncode, 0)
        alone = bascule("run", APPLES, "--temperature", "0", "--quiet").stdout
        self.assertTrue(out.startswith(alone), out)
        self.assertGreater(len(out), len(alone))

    def test_ctrl_d_ends_it(self) -> None:
        self.wait_for_prompt()
        os.write(self.person, b"\x04")
        self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 0)

    def test_ctrl_c_at_the_prompt_ends_it(self) -> None:
        self.wait_for_prompt()
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        self.assertEqual(self.process.returncode, 130)
        self.assertIn("stopped by Ctrl-C", errors)


class Colours(unittest.TestCase):
    def printed_on_a_terminal(self, **environment: str) -> str:
        person, terminal = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, "run", APPLES, "--temperature", "0"], stdin=subprocess.DEVNULL,
            stdout=terminal, stderr=subprocess.DEVNULL, env=clean_environment(**environment),
        )
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(person, 4096):
                text += piece
        except OSError:  # the other end is closed
            pass
        os.close(person)
        self.assertEqual(process.wait(timeout=60), 0)
        return text.decode()

    def test_thinking_is_dim_on_a_terminal_unless_no_color_is_set(self) -> None:
        self.assertTrue(self.printed_on_a_terminal().startswith("\x1b[2m"))
        plain = self.printed_on_a_terminal(NO_COLOR="1")
        self.assertNotIn("\x1b", plain)
        self.assertTrue(plain.startswith("<think>"))


class Others(unittest.TestCase):
    def test_version_says_what_was_built(self) -> None:
        said = bascule("--version").stdout
        self.assertRegex(said, r"^bascule \d+\.\d+\.\d+ \(.+\)\n")
        self.assertRegex(said, r"\nkernels +reference, ")

    def test_the_log_tells_how_loading_went(self) -> None:
        ran = bascule("run", APPLES, "--max-tokens", "1", "--log-level", "info")
        for event in ("info opened /", "info planned 1 rank(s)", "info ready after"):
            self.assertIn(event, ran.stderr)

    def test_an_installed_program_brings_its_demo_model(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            installed = subprocess.run(
                ["cmake", "--install", Path(PROGRAM).parents[2], "--prefix", name],
                capture_output=True, text=True,
            )
            self.assertEqual(installed.returncode, 0, installed.stderr)
            plan = subprocess.run([Path(name) / "bin/bascule", "plan", "--json"], text=True,
                                  capture_output=True, env=clean_environment())
            self.assertEqual(json.loads(plan.stdout)["model"], f"{name}/share/bascule/models/demo")

    def test_a_misspelt_variable_is_told(self) -> None:
        ran = bascule("config", BASCULE_TEMPRATURE="1")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("is it BASCULE_TEMPERATURE?", ran.stderr)

    def test_config_shows_the_models_defaults(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "bascule.toml"
            file.write_text("# mine\ntp = 2\nstop = ['a', 'b']\n")
            ran = bascule("config", GOLDEN.parent.parent / "models/demo", "--config", file, "--json")
        settings = json.loads(ran.stdout)
        self.assertEqual(settings["tp"], {"value": "2", "origin": f"file {file}:2"})
        self.assertEqual(settings["stop"]["value"], ["a", "b"])
        self.assertEqual(settings["temperature"]["origin"], "model generation_config.json")
        self.assertEqual(settings["config"]["origin"], "flag")

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
