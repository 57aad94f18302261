#!/usr/bin/env python3
"""Bad input: one clear sentence, the right exit status, nothing lost. Each case is compared, to the
letter, with tests/golden/errors/<case>.txt: the command, its exit status, and what it said.

usage: test_errors.py              compare
       test_errors.py --update     write the files anew; read the difference before you commit it"""

import json
import os
import re
import resource
import shlex
import shutil
import struct
import subprocess
import sys
import unittest

from harness import ENGINE, GOLDEN, SMOE, WORK, golden_model, main, run, unpack
from harness import shatter as shattered

UPDATE = "--update" in sys.argv
ERRORS = GOLDEN / "errors"


# ---- damaged copies of good files ----

def checkpoint(case, golden="base"):
    target = WORK / "in" / case
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(unpack(golden), target)
    return target


def read_safetensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + n]), data[8 + n:]


def write_safetensors(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def edit_header(case, edit, golden="base"):
    """A checkpoint whose header went through edit(header)."""
    folder = checkpoint(case, golden)
    header, data = read_safetensors(folder / "model.safetensors")
    edit(header)
    write_safetensors(folder / "model.safetensors", header, data)
    return folder


def edit_config(case, edit):
    folder = checkpoint(case)
    config = json.loads((folder / "config.json").read_text())
    edit(config)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def copy_model(case, model):
    """A pair of files of its own, to be damaged."""
    folder = WORK / "pairs" / case
    folder.mkdir(parents=True, exist_ok=True)
    copy = type(model)(folder / "m")
    shutil.copy(model.vault, copy.vault)
    shutil.copy(model.scout, copy.scout)
    return copy


def patch(path, old, new):
    data = path.read_bytes()
    assert data.count(old) >= 1 and len(old) == len(new), (path, old)
    path.write_bytes(data.replace(old, new, 1))


def flip(path, offset):
    with open(path, "r+b") as f:
        f.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 0x55]))


# ---- the cases: each returns a command, or (command, options of run) ----

Q = "model.layers.0.self_attn.q_proj.weight"


def shatter(folder):
    return [SMOE, "shatter", folder, "-o", WORK / "out"]


def missing_shard():
    folder = checkpoint("missing_shard", "sharded")
    next(folder.glob("model-00002-*")).unlink()
    return shatter(folder)


def truncated_shard():
    folder = checkpoint("truncated_shard", "sharded")
    shard = next(folder.glob("model-00002-*"))
    os.truncate(shard, shard.stat().st_size - 100)
    return shatter(folder)


def header_longer_than_file():
    folder = checkpoint("header_longer_than_file")
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 40) + path.read_bytes()[8:])
    return shatter(folder)


def file_shorter_than_its_length_field():
    folder = checkpoint("file_shorter_than_its_length_field")
    (folder / "model.safetensors").write_bytes(b"\x05\x00\x00")
    return shatter(folder)


def header_is_not_json():
    folder = checkpoint("header_is_not_json")
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 8) + b"{\"a\": \xff}")
    return shatter(folder)


def overlapping_offsets():
    def edit(header):
        a, b = sorted((k for k in header if k != "__metadata__"),
                      key=lambda k: header[k]["data_offsets"])[:2]
        size = header[b]["data_offsets"][1] - header[b]["data_offsets"][0]
        start = header[a]["data_offsets"][0]
        header[b]["data_offsets"] = [start, start + size]
    return shatter(edit_header("overlapping_offsets", edit))


def offsets_out_of_range():
    def edit(header):
        n = header[Q]["data_offsets"][1] - header[Q]["data_offsets"][0]
        header[Q]["data_offsets"] = [1 << 50, (1 << 50) + n]
    return shatter(edit_header("offsets_out_of_range", edit))


def offsets_reversed():
    return shatter(edit_header("offsets_reversed", lambda h: h[Q]["data_offsets"].reverse()))


def size_and_shape_disagree():
    return shatter(edit_header("size_and_shape_disagree", lambda h: h[Q]["shape"].append(2)))


def wrong_dtype():
    return shatter(edit_header("wrong_dtype", lambda h: h[Q].update(dtype="I16")))


def wrong_shape():
    return shatter(edit_header("wrong_shape", lambda h: h[Q]["shape"].reverse(), "odd"))


def missing_tensor():
    return shatter(edit_header("missing_tensor", lambda h: h.pop(Q)))


def missing_expert():
    name = "model.layers.1.mlp.experts.5.down_proj.weight"
    return shatter(edit_header("missing_expert", lambda h: h.pop(name)))


def unknown_tensor():
    def edit(header):
        header["model.layers.0.self_attn.gate.weight"] = header.pop(Q)
        header[Q] = dict(header["model.layers.0.self_attn.gate.weight"])
        header["model.layers.0.self_attn.gate.weight"] = {
            "dtype": "BF16", "shape": [0], "data_offsets": [0, 0]}
    return shatter(edit_header("unknown_tensor", edit))


def missing_rope_theta():
    return shatter(edit_config("missing_rope_theta", lambda c: c.pop("rope_theta")))


def config_of_another_architecture():
    return shatter(edit_config("config_of_another_architecture",
                               lambda c: c.update(model_type="llama")))


def config_without_experts():
    return shatter(edit_config("config_without_experts", lambda c: c.pop("num_experts_per_tok")))


def config_is_not_json():
    folder = checkpoint("config_is_not_json")
    (folder / "config.json").write_text("{\n  \"model_type\": qwen3_moe\n}\n")
    return shatter(folder)


def missing_config():
    folder = checkpoint("missing_config")
    (folder / "config.json").unlink()
    return shatter(folder)


def missing_tokenizer():
    folder = checkpoint("missing_tokenizer")
    (folder / "tokenizer.json").unlink()
    return shatter(folder)


def no_such_checkpoint():
    return shatter(WORK / "in" / "nowhere")


def unwritable_output():
    (WORK / "a-file").write_text("")
    return [SMOE, "shatter", checkpoint("unwritable_output"), "-o", WORK / "a-file"]


def disk_full_while_shattering():
    """A limit on a file's size refuses the write where a full disk would (EFBIG, not ENOSPC)."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
    return shatter(checkpoint("disk_full_while_shattering")), {
        "preexec_fn": limit, "restore_signals": False}  # Python ignores SIGXFSZ; so does the child


def disk_full_before_shattering():
    disk = WORK / "small-disk"
    disk.mkdir(exist_ok=True)
    if not os.path.ismount(disk):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)],
                                 stderr=subprocess.DEVNULL)
        if mounted.returncode:
            raise unittest.SkipTest("a small disk cannot be mounted here")
    return [SMOE, "shatter", checkpoint("disk_full_before_shattering"), "-o", disk]


def unknown_type():
    return shatter(unpack("base")) + ["--experts", "q5_1"]


def one_shot(model, ids, *flags):
    return [ENGINE, *model.files(), "--tokens-in", ids, "--threads", 1, *flags]


def good():
    return golden_model("base")


def lineage_mismatch():
    return [ENGINE, "--vault", good().vault, "--scout", golden_model("mqa").scout, "--serve"]


def swapped_files():
    return [ENGINE, "--vault", good().scout, "--scout", good().vault, "--serve"]


def newer_vault():
    model = copy_model("newer_vault", good())
    patch(model.vault, b'"smoe.format_version":"2"', b'"smoe.format_version":"3"')
    return one_shot(model, "1")


def newer_scout():
    model = copy_model("newer_scout", good())
    patch(model.scout, b'"smoe.format_version":"2"', b'"smoe.format_version":"3"')
    return one_shot(model, "1")


def older_vault():
    model = copy_model("older_vault", good())
    patch(model.vault, b'"smoe.format_version":"2"', b'"smoe.format_version":"1"')
    return one_shot(model, "1")


def truncated_vault():
    model = copy_model("truncated_vault", good())
    os.truncate(model.vault, model.vault.stat().st_size - 1)
    return one_shot(model, "1")


def truncated_scout():
    model = copy_model("truncated_scout", good())
    os.truncate(model.scout, 1000)
    return one_shot(model, "1")


def damaged_record():
    model = copy_model("damaged_record", golden_model("top_all_eps1e-2"))
    header_bytes = struct.unpack("<Q", model.vault.read_bytes()[:8])[0] + 8
    flip(model.vault, header_bytes + 1000)  # every expert is used: the first record is read
    return one_shot(model, "1")


def damaged_scout():
    model = copy_model("damaged_scout", good())
    header, _ = read_safetensors(model.scout)
    header_bytes = struct.unpack("<Q", model.scout.read_bytes()[:8])[0] + 8
    flip(model.scout, header_bytes + header[Q]["data_offsets"][0])
    return one_shot(model, "1")


def damaged_tokenizer():
    model = copy_model("damaged_tokenizer", good())
    header, _ = read_safetensors(model.scout)
    header_bytes = struct.unpack("<Q", model.scout.read_bytes()[:8])[0] + 8
    flip(model.scout, header_bytes + header["file/tokenizer.compiled"]["data_offsets"][0] + 100)
    return one_shot(model, "1")


def damaged_tokenizer_json():
    model = copy_model("damaged_tokenizer_json", good())
    header, _ = read_safetensors(model.scout)
    header_bytes = struct.unpack("<Q", model.scout.read_bytes()[:8])[0] + 8
    flip(model.scout, header_bytes + header["file/tokenizer.json"]["data_offsets"][0] + 100)
    return [SMOE, "inspect", model.stem, "--verify"]


def tokens_without_a_tokenizer():
    model = copy_model("tokens_without_a_tokenizer", good())
    data = model.scout.read_bytes()
    model.scout.write_bytes(data.replace(b'"file/tokenizer.', b'"fila/tokenizer.'))
    return [SMOE, "tokens", model.stem, "hello"]


def tokens_id_outside_the_vocabulary():
    return [SMOE, "tokens", good().stem, "--ids", "1,2,288"]


def tokens_without_a_text():
    return [SMOE, "tokens"]


def verify_damaged_record():
    return [SMOE, "inspect", damaged_record()[2].with_suffix(""), "--verify"]


def id_outside_the_vocabulary():
    return one_shot(good(), "1,2,288")


def id_is_negative():
    return one_shot(good(), "1,-2")


def ids_empty():
    return one_shot(good(), "")


def end_id_outside_the_vocabulary():
    return one_shot(good(), "1", "--eos-ids", "4,999")


def too_many_ids():
    return one_shot(good(), ",".join(["1"] * 33), "--ctx", 32)


def max_tokens_huge():
    return one_shot(good(), "1", "--tokens", 257)


def ctx_beyond_the_model():
    return one_shot(good(), "1", "--ctx", 257)


def ring_too_small():
    return one_shot(good(), "1", "--ring", 2)


def memory_too_small():
    return one_shot(good(), "1", "--mem-limit", "20M")


def unknown_isa():
    return one_shot(good(), "1"), {"env": dict(os.environ, SMOE_ISA="mmx")}


def unknown_flag():
    return one_shot(good(), "1", "--temprature", 0)


def no_prewarm_without_serve():
    return one_shot(good(), "1", "--no-prewarm")


def instrument_in_an_unknown_form():
    return one_shot(good(), "1", "--instrument=xml")


def flag_value_out_of_range():
    return one_shot(good(), "1", "--top-p", 1.5)


def io_in_an_unknown_way():
    return one_shot(good(), "1", "--io", "mmap")


def io_in_two_ways():
    return one_shot(good(), "1", "--io", "uring,threads")


def workers_zero():
    return one_shot(good(), "1", "--workers", 0)


def workers_too_many():
    return one_shot(good(), "1", "--workers", 257)


def mem_limit_is_no_size():
    return one_shot(good(), "1", "--mem-limit", "lots")


def mem_limit_without_a_value():
    return one_shot(good(), "1") + ["--mem-limit"]


def kv_type_unknown():
    return one_shot(good(), "1", "--kv-type", "q4_0")


def ctx_zero():
    return one_shot(good(), "1", "--ctx", 0)


def threads_zero():
    return [ENGINE, *good().files(), "--tokens-in", "1", "--threads", 0]


def spec_too_large():
    return one_shot(good(), "1", "--spec", 1025)


def seed_is_no_number():
    return one_shot(good(), "1", "--seed", "soon")


def temperature_is_no_number():
    return one_shot(good(), "1", "--temperature", "hot")


def ring_is_negative():
    return one_shot(good(), "1", "--ring", -1)


def ring_needs_more_memory():
    return one_shot(good(), "1", "--ring", 20, "--mem-limit", "25M")


def serve_and_tokens_in():
    return one_shot(good(), "1", "--serve")


def one_argument_too_many():
    return one_shot(good(), "1", "again")


def no_scout():
    return [ENGINE, "--vault", good().vault, "--serve"]


def nothing_to_do():
    return [ENGINE, *good().files()]


def vault_is_a_directory():
    return [ENGINE, "--vault", WORK, "--scout", good().scout, "--serve"]


def serve(*lines):
    return [ENGINE, *good().files(), "--serve", "--threads", 1], {"input": "".join(lines)}


def serve_id_outside_the_vocabulary():
    return serve("GEN 1 1,2,288\n", "GEN 1 t=0 r=1 1\n")


def serve_max_tokens_negative():
    return serve("GEN -5 1,2\n", "GEN 1 t=0 r=1 1\n")


def serve_max_tokens_huge():
    return serve("GEN 4000000000 1,2\n", "GEN 99999999999999999999 1,2\n", "GEN 257 1\n")


def serve_line_of_10_mb():
    return serve("GEN 1 " + "1," * (5 << 20) + "1\n", "GEN 1 t=0 r=1 1\n")


def serve_no_ids():
    return serve("GEN 1\n", "GEN 1 t=0\n", "GEN 1 t=0 r=1 1\n")


def serve_ids_do_not_fit():
    return serve("GEN 1 " + ",".join(["1"] * 257) + "\n")


def serve_not_a_request():
    return serve("hello\n", "\n", "GEN\n", "GEN one 1\n", "GEN 1 1,,2\n", "GEN 1 t=warm 1\n")


def no_such_command():
    return [SMOE, "run"]


def eval_without_a_task():
    return [SMOE, "eval"]


def eval_without_ids():
    return [SMOE, "eval", "logits", good().stem]


def model_that_is_not_there():
    return [SMOE, "inspect", WORK / "nowhere" / "model"]


def chat_with_a_missing_model():
    return [SMOE, "chat", WORK / "nowhere" / "model"]


def chat(stem, *flags):
    return [SMOE, "chat", stem, "--temperature", 0, "--threads", 1, *flags]


def chat_without_a_tokenizer():
    return chat(tokens_without_a_tokenizer()[2], "-p", "hello")


def with_template(case, template):
    """A good model with another chat template; None: with none."""
    if not (WORK / "in" / case).exists():
        folder = checkpoint(case)
        path = folder / "tokenizer_config.json"
        config = json.loads(path.read_text())
        config.pop("chat_template") if template is None else config.update(chat_template=template)
        path.write_text(json.dumps(config))
    return shattered(WORK / "in" / case, name=case).stem


def chat_without_a_template():
    return chat(with_template("chat_without_a_template", None), "-p", "hello")


def chat_template_that_raises():
    template = "{%- if messages %}\n  {{- raise_exception('this model does not chat') }}{% endif %}"
    return chat(with_template("chat_template_that_raises", template), "-p", "hello")


def chat_template_that_fails():
    template = "{{ messages[0].content.first.letter }}"
    return chat(with_template("chat_template_that_fails", template), "-p", "hello", "--json")


def chat_template_with_an_unknown_filter():
    template = "{% for m in messages %}\n{{ m.content | translate('fr') }}{% endfor %}"
    return chat(with_template("chat_template_with_an_unknown_filter", template), "-p", "hello")


def chat_template_that_never_ends():
    template = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}"
    return chat(with_template("chat_template_that_never_ends", template), "-p", "hello")


def chat_conversation_that_the_template_rejects():
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not " \
               "supported') }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    return chat(with_template("chat_conversation_that_the_template_rejects", template),
                "--system", "be brief"), {"input": "hello\n"}


def chat_conversation_that_does_not_fit():
    return chat(good().stem, "--ctx", 16, "-p", "a conversation of more than sixteen tokens")


def chat_think_without_the_switch():
    return chat(good().stem, "--think", "-p", "hello")


def chat_no_think_without_the_switch():
    return chat(good().stem, "--no-think", "-p", "hello")


def chat_think_and_no_think():
    return chat(good().stem, "--think", "--no-think", "-p", "hello")


def chat_with_a_missing_file():
    return chat(good().stem, "--file", WORK / "nowhere.txt", "-p", "hello")


def chat_with_a_file_that_is_no_text():
    return chat(good().stem, "--file", good().vault, "-p", "hello")


def chat_with_a_directory_as_file():
    return chat(good().stem, "--file", WORK, "-p", "hello")


def chat_with_nothing_to_continue():
    return chat(good().stem, "--continue", "-p", "hello"), {
        "env": dict(os.environ, XDG_STATE_HOME=str(WORK / "no-state"))}


def chat_with_a_damaged_conversation():
    folder = WORK / "damaged-state" / "smoe" / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "20260101-000000-1.jsonl").write_text('{"role":"user","content":"a"}\n{"role":\n')
    return chat(good().stem, "--continue", "-p", "hello"), {
        "env": dict(os.environ, XDG_STATE_HOME=str(WORK / "damaged-state"))}


def chat_with_an_engine_that_does_not_start():
    return chat(good().stem, "--ring", 2, "-p", "hello")


def chat_with_a_damaged_vault():
    return chat(damaged_record()[2].with_suffix(""), "-p", "hello")


def chat_unknown_flag():
    return chat(good().stem, "--temprature", 0)


def chat_value_out_of_range():
    return chat(good().stem, "--top-p", 2)


def chat_commands_that_are_wrong():
    lines = ["/nonsense", "/reset now", "/file", "/file /nowhere/x", "/load /nowhere/x", "/retry",
             "/set", "/set warmth 3", "/set temperature hot", "/set temperature 101", "/edit"]
    return chat(good().stem), {"input": "\n".join(lines) + "\n"}


def bench(*args):
    return [SMOE, "bench", *args]


def bench_ring_is_no_number():
    return bench(good().stem, "--ring", "2x")


def bench_ring_is_more_than_all():
    return bench(good().stem, "--ring", "1.5")


def bench_ring_too_small():
    return bench(good().stem, "--ring", 2, "--prompt", 16, "--depth", 0, "--threads", 1)


def bench_needs_more_memory():
    return bench(good().stem, "--prompt", 16, "--depth", 0, "--threads", 1, "--mem-limit", "20M")


def bench_unknown_shape():
    return bench("--shape", "gpt")


def bench_unknown_routing():
    return bench(good().stem, "--routing", "zipf")


def bench_model_and_shape():
    return bench(good().stem, "--shape", "smoe-tiny")


def bench_layers_without_a_shape():
    return bench(good().stem, "--layers", 2)


def bench_prompts_are_no_numbers():
    return bench(good().stem, "--prompt", "512,many")


def bench_nothing_to_generate():
    return bench(good().stem, "--gen", 0)


def bench_model_that_is_not_there():
    return bench(WORK / "nowhere" / "model")


def bench_replay_of_no_trace():
    return bench(good().stem, "--replay", good().scout)


def bench_io_of_a_model_and_a_size():
    return bench("io", good().stem, "--size", "1G")


def bench_io_in_a_missing_directory():
    return bench("io", "--dir", WORK / "nowhere", "--size", "64M")


def bench_policy_without_choices():
    return bench("policy")


def bench_policy_of_no_trace():
    return bench("policy", "--replay", WORK / "nowhere")


def plan_unknown_shape():
    return [SMOE, "plan", "gpt"]


def plan_size_is_no_size():
    return [SMOE, "plan", "qwen3-30b-a3b", "--mem", "lots"]


def plan_ctx_beyond_the_model():
    return [SMOE, "plan", "qwen3-30b-a3b", "--ctx", 40961]


def plan_in_a_missing_directory():
    return [SMOE, "plan", "qwen3-30b-a3b", "--dir", WORK / "nowhere"]


def plan_config_without_experts():
    return [SMOE, "plan", edit_config("plan_config_without_experts",
                                      lambda c: c.pop("num_experts_per_tok"))]


def plan_config_is_not_json():
    folder = checkpoint("plan_config_is_not_json")
    (folder / "config.json").write_text("model_type: qwen3_moe\n")
    return [SMOE, "plan", folder]


def tokens_of_a_missing_model():
    return [SMOE, "tokens", WORK / "nowhere" / "model", "hello"]


def tokens_ids_and_a_text():
    return [SMOE, "tokens", good().stem, "hello", "--ids", "1"]


def tokens_ids_are_no_ids():
    return [SMOE, "tokens", good().stem, "--ids", "1,two"]


CASES = [f for f in list(globals().values())
         if callable(f) and getattr(f, "__module__", "") == "__main__"
         and f.__code__.co_argcount == 0 and f.__name__ not in ("good", "serve", "bench")]


def normalise(text):
    """Nothing of this machine or this run."""
    for place, name in ((str(WORK), "DIR"), (str(SMOE), "smoe"), (str(ENGINE), "smoe-engine")):
        text = text.replace(place, name)
    text = re.sub(r"^ *smoe-engine: (reads|memory): .*\n", "", text, flags=re.M)
    text = re.sub(r"\.partial-\d+", ".partial-PID", text)
    text = re.sub(r"(prefill_s|decode_s|prefill_ms|decode_ms|read_ms|pt|dt)=[\d.]+", r"\1=T", text)
    text = re.sub(r" lookups=.* mem=[\d,]+", "", text)  # depends on threads
    text = re.sub(r"has [\d.]+ \w+ free(.*)\(\d+ bytes more", r"has N free\1(N bytes more", text)
    return re.sub(r"checksum [0-9a-f]{16} expected, [0-9a-f]{16} found",
                  "checksum A expected, B found", text)


class Errors(unittest.TestCase):
    maxDiff = None

    def check(self, case):
        made = case()
        command, options = made if isinstance(made, tuple) else (made, {})
        done = run(*command, **options)
        shown = " ".join(shlex.quote(normalise(str(a))[:200]) for a in command)
        shown = f"$ {shown}\n"
        if "input" in options:
            shown += "".join(f"< {line[:76]}{'...' if len(line) > 76 else ''}\n"
                             for line in options["input"].splitlines())
        found = f"{shown}exit {done.returncode}\n{normalise(done.stdout)}{normalise(done.stderr)}"
        path = ERRORS / f"{case.__name__}.txt"
        if UPDATE:
            path.write_text(found)
        self.assertEqual(found, path.read_text() if path.exists() else "(no such file)")
        if SMOE in command and "shatter" in command:
            out = command[command.index("-o") + 1]
            left = sorted(p.name for p in out.iterdir()) if out.is_dir() else []
            self.assertEqual(left, [], "something was left behind")

    @classmethod
    def tearDownClass(cls):
        disk = WORK / "small-disk"
        if os.path.ismount(disk):
            subprocess.run(["umount", str(disk)])
        if UPDATE:
            names = {f"{case.__name__}.txt" for case in CASES}
            for path in ERRORS.glob("*.txt"):
                if path.name not in names:
                    path.unlink()

    def test_no_file_without_a_case(self):
        self.assertEqual(sorted(p.stem for p in ERRORS.glob("*.txt")),
                         sorted(case.__name__ for case in CASES))


for case_function in CASES:
    setattr(Errors, f"test_{case_function.__name__}", lambda self, c=case_function: self.check(c))

if __name__ == "__main__":
    if UPDATE:
        sys.argv.remove("--update")
    main()
