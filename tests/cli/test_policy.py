#!/usr/bin/env python3
"""spillway policy: what it says of good files and of bad ones, the schema, the ready-made policies,
and what the launchers do with a policy."""
import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import bad_policies

try:
    import jsonschema
except ImportError:
    jsonschema = None

BUILD = pathlib.Path(os.environ["BUILD_ROOT"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
COMMAND = BUILD / "spillway"
POLICIES = SOURCE / "policies"
SHIPPED = sorted(path for path in POLICIES.glob("*.json") if path.stem != "policy.schema")
PACKAGES = next(SOURCE.glob(".venv/lib/python3*/site-packages"), None)

# Every key of the language, with good values in every form.
FULL = {
    "$schema": "policy.schema.json", "version": 1, "comment": ["a", "b"],
    "rules": [{
        "name": "first.rule_1-a", "comment": "c",
        "match": {
            "python": {"file": ["*.py", "a[!b-c]?\\*"], "function": "f", "lines": [1, "2-3", "4-"],
                       "frame": "top"},
            "native": [{"symbol": "*", "frame": "any"}, {"library": "lib*.so"}],
            "thread": "pt_*", "tag": "kv-*", "node": ["A", "B"], "module_class": "M*",
            "module": ["A/**/B", "C"], "size": {"min": "1.5 KiB", "max": 2048},
            "device": "0-", "api": "cuMem*", "process": "python*", "rank": 0, "nth": "1-2",
            "nth_in_step": ["1", "3-"],
        },
        "action": {"placement": "auto", "movable": True, "priority": -100,
                   "limit": {"max": "50%", "then": "spill"}, "host_share": "12.5%", "region": "r",
                   "commit": "lazy", "log": False},
    }, {"name": "second", "match": {"size": [{"min": 0}, {"max": "1TiB"}]},
        "action": {"placement": "host", "limit": {"max": 1, "then": "warn"}}},
        {"name": "last", "match": {}, "action": {}},
        {"name": "blocks", "action": {"recompute": True, "share": "12.5%"}},
        {"name": "modules", "match": {"module": "layers.*", "module_class": ["B", "C*"],
                                      "process": "p", "rank": "0-"},
         "action": {"recompute": True, "every": 2}},
        {"name": "left", "match": {"module": "head"}, "action": {"recompute": False}}],
}

VALUES = [None, True, 0, 1, -1, 1.5, 1e300, "", "x", "any", "10%", "101%", "1-2", "16MiB", [], {},
          ["x"], [1], [{}], {"x": 1}]


def run(*arguments, cwd=None, **variables):
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY")}
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          env={**env, **variables}, timeout=60)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, content, name="policy.json"):
        data = content if isinstance(content, (bytes, str)) else json.dumps(content)
        (self.folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return name

    def check(self, content):
        return run("policy", "check", self.write(content), cwd=self.folder)


class Check(Case):
    def test_good(self):
        for content in (FULL, {"version": 1, "rules": []}, {"version": 1.0, "rules": []}):
            done = self.check(content)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_bad(self):
        self.assertGreaterEqual(len(bad_policies.CASES), 60)
        for name, content, expected in bad_policies.CASES:
            with self.subTest(name):
                done = self.check(content)
                self.assertEqual(done.stderr.splitlines(),
                                 [f"policy.json:{line}" for line in expected])
                self.assertEqual((done.returncode, done.stdout), (1, ""))

    def expect(self, path, message):
        done = run("policy", "check", path, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", f"{path}:1:1: {message}\n"))

    def test_several(self):
        self.write(FULL, "good.json")
        self.write("{", "bad.json")
        self.assertEqual(run("policy", "check", "good.json", "good.json", cwd=self.folder).stderr,
                         "")
        done = run("policy", "check", "bad.json", "good.json", "none.json", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split(":")[0] for line in done.stderr.splitlines()],
                         ["bad.json", "none.json"])

    def test_no_file(self):
        missing = ("it cannot be opened (No such file or directory), expected a JSON file or a "
                   "shipped policy")
        self.expect("no.json", missing)
        self.expect("optimiser-to-host", f'{missing} (did you mean "optimizer-to-host"?)')
        self.expect("./observe", missing)

    def test_directory(self):
        (self.folder / "d").mkdir()
        self.expect("d", "it is a directory, expected a JSON file")

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_unreadable(self):
        os.chmod(self.folder / self.write(FULL), 0)
        self.expect("policy.json", "it cannot be opened (Permission denied), expected a JSON file "
                                   "or a shipped policy")

    def test_too_large(self):
        text = json.dumps(FULL)
        self.assertEqual(self.check(text + " " * ((1 << 20) - len(text))).returncode, 0)
        self.write(text + " " * ((1 << 20) - len(text) + 1))
        self.expect("policy.json", "the file is too large, expected at most 1 MiB")

    def test_many_mistakes(self):
        keys = "".join(f', "k{i}": 1' for i in range(20000))
        done = self.check('{"version": 1, "rules": []%s}' % keys)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 20000)

    def test_one_line_each(self):
        """Whatever a key holds, a mistake is one line of printable characters."""
        done = self.check(r'{"version": 1, "rules": [], "a\n\u001b[31m": "x", "comment": {}}')
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.assertTrue(all(line.isprintable() for line in done.stderr.splitlines()))

    def test_from_a_pipe(self):
        done = subprocess.run([COMMAND, "policy", "check", "/dev/stdin"], input="{", text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.stderr, "/dev/stdin:1:2: the file ends here, expected a key in "
                                      "double quotes\n")

    def test_function_with_its_class(self):
        """Call sites do not have the class: such a pattern matches nothing, and what does is
        told."""
        rules = [{"name": "good", "action": {},
                  "match": {"python": {"function": ["forward", "*step"]}}},
                 {"name": "bad", "action": {}, "match": {"python": [
                     {"function": "f"}, {"function": ["g", "nn.Attention.forward"]}]}}]
        done = run("policy", "check", self.write({"version": 1, "rules": rules}), cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r'^policy\.json:\d+:1: rule "bad": the function '
                                      r'"nn\.Attention\.forward" matches nothing, .*, expected '
                                      r'"forward", .* "module_class": "nn\.Attention" beside '
                                      r'"python"\n$')
        rules[1]["match"] = {"python": {"function": "f.<locals>.g"}}
        done = run("policy", "check", self.write({"version": 1, "rules": rules}), cwd=self.folder)
        self.assertRegex(done.stderr, r'"f\.<locals>\.g" matches nothing, .*, expected "g"\n$')

    def test_usage(self):
        for arguments in ([], ["check"], ["chek", "a"], ["explain", "a"],
                          ["explain", "--site", ""], ["explain", "a", "b", "--site", ""],
                          ["schema", "x"], ["keys", "x"]):
            done = run("policy", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertRegex(done.stderr, r"^spillway: policy: .*\n$")
        self.assertEqual(run("policy", "--help").returncode, 0)


class Schema(Case):
    @classmethod
    def setUpClass(cls):
        cls.text = (POLICIES / "policy.schema.json").read_text()

    def test_is_current(self):
        self.assertEqual(run("policy", "schema").stdout, self.text,
                         "spillway policy schema > policies/policy.schema.json")

    def test_readme_is_current(self):
        self.assertIn(run("policy", "keys").stdout, (POLICIES / "README.md").read_text())

    def valid(self, content):
        return jsonschema.Draft7Validator(json.loads(self.text)).is_valid(content)

    @unittest.skipUnless(jsonschema, "python3-jsonschema is not there")
    def test_good_files_are_valid(self):
        jsonschema.Draft7Validator.check_schema(json.loads(self.text))
        for content in [FULL, *(json.loads(path.read_text()) for path in SHIPPED)]:
            self.assertTrue(self.valid(content))

    @unittest.skipUnless(jsonschema, "python3-jsonschema is not there")
    def test_bad_files_are_not(self):
        looked_at = 0
        for name, content, _ in bad_policies.CASES:
            try:
                content = json.loads(content if isinstance(content, str) else content.decode())
            except ValueError:
                continue
            if name not in ("a NUL character", "half a surrogate pair", "too deep",
                            "a number of 70 digits"):
                looked_at += 1
                self.assertEqual(self.valid(content), name in bad_policies.BEYOND_SCHEMA, name)
        self.assertGreater(looked_at, 80)

    def mutants(self):
        """FULL with each of its values replaced by every value, and with a key too much."""
        def walk(value, path):
            yield path
            children = (value.items() if isinstance(value, dict) else
                        enumerate(value) if isinstance(value, list) else ())
            for key, child in children:
                yield from walk(child, path + (key,))

        for path in walk(FULL, ()):
            for value in VALUES if path else VALUES[:1]:
                mutant = copy.deepcopy(FULL)
                at = mutant
                for key in path[:-1]:
                    at = at[key]
                if path:
                    at[path[-1]] = value
                yield path, mutant
                if path and isinstance(at, dict):
                    del at[path[-1]]
                    yield path, mutant

    @unittest.skipUnless(jsonschema, "python3-jsonschema is not there")
    def test_parser_and_schema_agree(self):
        """But for what the schema cannot say."""
        beyond = re.compile(r"no function that allocates|more than the whole|runs backwards|"
                            r"can never decide|is named|is above")
        validator = jsonschema.Draft7Validator(json.loads(self.text))
        mutants = {}
        for path, mutant in self.mutants():
            mutants[self.write(mutant, f"{len(mutants)}.json")] = (path, copy.deepcopy(mutant))
        self.assertGreater(len(mutants), 1000)
        said = {}
        for line in run("policy", "check", *mutants, cwd=self.folder).stderr.splitlines():
            name, _, message = line.partition(":")
            said.setdefault(name, []).append(message)
        for name, (path, mutant) in mutants.items():
            if not beyond.search(str(said.get(name))):
                self.assertEqual(validator.is_valid(mutant), name not in said,
                                 f"{path}: {json.dumps(mutant)}\n{said.get(name)}")


class Explain(Case):
    POLICY = {"version": 1, "rules": [
        {"name": "a", "match": {"python": [{"file": "x.py", "lines": "1-9"},
                                           {"function": ["f", "g"], "frame": "top"}]},
         "action": {}},
        {"name": "b", "match": {"native": {"library": "l.so"}}, "action": {}},
        {"name": "c", "match": {"thread": ["t", "u"]}, "action": {}},
        {"name": "d", "match": {"size": [{"min": "1KiB", "max": "2KiB"}, {"min": 9999}]},
         "action": {}},
        {"name": "e", "match": {"device": ["1-2", "4-"], "rank": 0}, "action": {}},
        {"name": "h", "match": {"module_class": "C"}, "action": {}},
        {"name": "i", "match": {"module": ["B/C", "D"]}, "action": {}},
        {"name": "g", "match": {"nth_in_step": "1-3"}, "action": {}},
        {"name": "f", "match": {"nth": 1}, "action": {
            "placement": "auto", "movable": False, "priority": 3,
            "limit": {"max": "8GiB", "then": "fail"}, "host_share": "12.5%", "region": "r",
            "commit": "lazy", "log": True}}]}

    def explain(self, site):
        self.write(json.dumps(self.POLICY).replace('{"name"', '\n{"name"'))
        done = run("policy", "explain", "policy.json", "--site", site, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_why_not(self):
        site = "python:a.py:h:1;native:m.so:s;thread:v;module:A/B;size:3000;device:0;nth:2;" \
               "nth_in_step:4"
        self.assertEqual(self.explain(site), [
            "site: python:a.py:h:1; native:m.so:s; thread:v; module:A/B; size:3000; device:0; "
            "nth:2; nth_in_step:4",
            'rule 1 "a" (policy.json:2) does not match: no Python frame is file "x.py", line 1-9, '
            'and the innermost Python frame is not function "f" or "g"',
            'rule 2 "b" (policy.json:3) does not match: no native frame is library "l.so"',
            'rule 3 "c" (policy.json:4) does not match: thread is v, not thread "t" or "u"',
            'rule 4 "d" (policy.json:5) does not match: size is 3000, not size of at least 1024 '
            'bytes and at most 2048 bytes or of at least 9999 bytes',
            'rule 5 "e" (policy.json:6) does not match: device is 0, not device 1-2 or 4-',
            'rule 6 "h" (policy.json:7) does not match: module_class is B, not module_class "C"',
            'rule 7 "i" (policy.json:8) does not match: module is A/B, not module "B/C" or "D"',
            'rule 8 "g" (policy.json:9) does not match: nth_in_step is 4, not nth_in_step 1-3',
            'rule 9 "f" (policy.json:10) does not match: nth is 2, not nth 1',
            "no rule matches: the default applies"])

    def test_what_is_not_known(self):
        self.assertEqual(self.explain("device:1;nth:1")[1:], [
            'rule 1 "a" (policy.json:2) does not match: the site has no Python frame',
            'rule 2 "b" (policy.json:3) does not match: the site has no native frame',
            'rule 3 "c" (policy.json:4) does not match: the site has no thread, which '
            'must be thread "t" or "u"',
            'rule 4 "d" (policy.json:5) does not match: the site has no size, which must '
            'be size of at least 1024 bytes and at most 2048 bytes or of at least 9999 bytes',
            'rule 5 "e" (policy.json:6) does not match: the site has no rank, which must '
            'be rank 0',
            'rule 6 "h" (policy.json:7) does not match: the site has no module_class, which must '
            'be module_class "C"',
            'rule 7 "i" (policy.json:8) does not match: the site has no module, which must be '
            'module "B/C" or "D"',
            'rule 8 "g" (policy.json:9) does not match: the site has no nth_in_step, which must '
            'be nth_in_step 1-3',
            'rule 9 "f" (policy.json:10) decides:',
            "    placement: auto",
            "    movable: false",
            "    priority: 3",
            "    limit: 8589934592 bytes, then fail",
            "    host_share: 12.5 %",
            "    region: r",
            "    commit: lazy",
            "    log: true"])

    def test_rules_about_modules(self):
        rules = [{"name": "m", "match": {"module": "*"}, "action": {"recompute": True}},
                 {"name": "a", "action": {"log": True}}]
        done = run("policy", "explain", self.write({"version": 1, "rules": rules}), "--site",
                   "module:A/B", cwd=self.folder)
        self.assertEqual(done.stdout.splitlines()[1:], [
            'rule 1 "m" (policy.json:1) applies to modules, and not to allocations',
            'rule 2 "a" (policy.json:1) decides:', "    log: true"])

    def test_bad_site(self):
        done = run("policy", "explain", "observe", "--site=pyton:a:b:1")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn('--site: character 1: "pyton" is not a key of a site', done.stderr)

    def test_bad_file(self):
        done = run("policy", "explain", self.write("{"), "--site", "", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^policy.json:1:2: ")


# Sites as PyTorch 2.11 and transformers make them, and which rule of a policy is meant for them.
# {} stands for the folder of Python packages.
OPTIMIZER = "python:{}/torch/optim/%s:%s; python:{}/torch/optim/optimizer.py:wrapper:533; " \
            "python:train.py:main:60; native:libtorch_cpu.so:%s(at::Tensor const&); thread:python3"
FORWARD = "python:{}/torch/nn/modules/%s:%s; " \
          "python:{}/torch/nn/modules/module.py:_call_impl:1790; " \
          "python:train.py:forward:40; thread:python3; size:%s"
BACKWARD = "native:libtorch_cpu.so:torch::autograd::generated::%s::apply(" \
           "std::vector<at::Tensor, std::allocator<at::Tensor> >&&); thread:pt_autograd_0; " \
           "size:4MiB"
MOVED = "python:{}/torch/nn/modules/module.py:%s:1366; " \
        "python:{}/torch/nn/modules/module.py:_apply:964; " \
        "python:{}/torch/nn/modules/module.py:to:1384; python:serve.py:main:9; size:%s"
ZEROS, CLONE = "at::_ops::zeros_like::call", "at::_ops::clone::call"
INTENDED = {
    "observe": [("observe", "size:1")],
    "half-gpu": [("cap", FORWARD % ("linear.py", "forward:134", "1GiB"))],
    "optimizer-to-host": [
        ("optimizer-state", OPTIMIZER % ("adam.py", "_init_group:178", ZEROS)),
        ("optimizer-state", OPTIMIZER % ("rmsprop.py", "_init_group:123", ZEROS)),
        ("sgd-momentum", OPTIMIZER % ("sgd.py", "_multi_tensor_sgd:455", CLONE)),
        (None, OPTIMIZER % ("sgd.py", "_multi_tensor_sgd:430",
                            "at::_ops::_foreach_add_List::call")),
        (None, OPTIMIZER % ("adam.py", "_multi_tensor_adam:700", "at::_ops::_foreach_sqrt::call")),
        ("adagrad-sums", OPTIMIZER % ("adagrad.py", "__init__:94", "at::_ops::full_like::call")),
        ("sparse-adam-state", OPTIMIZER % ("sparse_adam.py", "step:100", ZEROS)),
        ("resumed-state", OPTIMIZER % ("optimizer.py",
                                       "_process_value_according_to_param_policy:804",
                                       "at::_ops::to_dtype_layout::call")),
        (None, FORWARD % ("linear.py", "forward:134", "12MiB")),
        (None, BACKWARD % "AddmmBackward0"),
    ],
    "activations-to-host-first": [
        ("activations", FORWARD % ("linear.py", "forward:134", "12MiB")),
        ("activations", FORWARD % ("activation.py", "forward:816", "1MiB")),
        (None, FORWARD % ("linear.py", "forward:134", "512KiB")),
        ("recomputed", FORWARD % ("linear.py", "forward:134", "12MiB") +
         "; python:{}/torch/utils/checkpoint.py:unpack_hook:1170"),
        ("workspaces", FORWARD % ("linear.py", "forward:134", "32MiB") +
         "; native:libtorch_cuda.so:at::cuda::setWorkspaceForHandle(cublasContext*); "
         "native:libtorch_cuda.so:at::cuda::getCurrentCUDABlasHandle()"),
        ("workspaces", FORWARD % ("linear.py", "forward:134", "32MiB") +
         "; native:libtorch_cuda.so:at::cuda::allocateCUDABlasWorkspace(unsigned long)"),
        ("workspaces", FORWARD % ("linear.py", "forward:134", "32MiB") +
         "; native:libtorch_cuda.so:at::cuda::getCurrentCUDABlasHandleWithWorkspace()"),
        ("lazy-parameters", FORWARD % ("lazy.py", "_infer_parameters:255", "12MiB")),
        (None, BACKWARD % "AddmmBackward0"),
        (None, OPTIMIZER % ("adam.py", "_init_group:178", ZEROS) + "; size:12MiB"),
    ],
    "embeddings-stay": [
        ("embeddings", FORWARD % ("sparse.py", "forward:191", "12MiB")),
        ("embeddings", FORWARD % ("sparse.py", "__init__:160", "12MiB")),
        ("normalisation", FORWARD % ("normalization.py", "forward:229", "12MiB")),
        ("normalisation", FORWARD % ("batchnorm.py", "forward:193", "12MiB")),
        ("normalisation-of-models", "python:{}/transformers/models/llama/modeling_llama.py:"
                                    "forward:62; module:Llama/Layer/LlamaRMSNorm; size:12MiB"),
        (None, "python:{}/transformers/models/llama/modeling_llama.py:forward:62; "
               "module:Llama/Layer/Attention; size:12MiB"),
        ("their-gradients", BACKWARD % "EmbeddingBackward0"),
        ("their-gradients", BACKWARD % "NativeLayerNormBackward0"),
        ("their-gradients", BACKWARD % "CudnnBatchNormBackward0"),
        (None, BACKWARD % "AddmmBackward0"),
        (None, FORWARD % ("linear.py", "forward:134", "12MiB")),
    ],
    "inference-weights-on-host": [
        ("weights", MOVED % ("convert", "12MiB")),
        (None, MOVED % ("convert", "4KiB")),
        ("weights", "python:{}/transformers/modeling_utils.py:from_pretrained:4200; size:12MiB"),
        ("weights", "python:{}/safetensors/torch.py:load_file:340; size:12MiB"),
        (None, FORWARD % ("linear.py", "forward:134", "12MiB")),
    ],
    "recompute-blocks": [(None, FORWARD % ("linear.py", "forward:134", "12MiB"))],
    "lazy-start": [
        ("warm-up", "python:{}/transformers/modeling_utils.py:caching_allocator_warmup:5200; "
                    "size:12MiB; nth:7"),
        ("first-large", "python:train.py:main:3; size:1GiB; nth:1"),
        (None, "python:train.py:main:3; size:1GiB; nth:3"),
        (None, "python:train.py:main:3; size:1MiB; nth:1"),
    ],
}


class Shipped(Case):
    def test_all_are_tested(self):
        self.assertEqual([path.stem for path in SHIPPED], sorted(INTENDED))

    def test_good_and_explained(self):
        readme = (POLICIES / "README.md").read_text()
        for path in SHIPPED:
            done = run("policy", "check", path.stem)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertIn("se it ", "".join(json.loads(path.read_text())["comment"]))
            self.assertIn(f"| `{path.stem}` |", readme)

    def test_the_intended_rule_decides(self):
        for name, sites in INTENDED.items():
            for rule, site in sites:
                site = site.replace("{}", "/venv/lib/python3.11/site-packages")
                done = run("policy", "explain", name, "--site", site)
                decided = re.search(r'^rule \d+ "(\S+)" \(.*\) decides:$', done.stdout, re.M)
                self.assertEqual(decided[1] if decided else None, rule, done.stdout + done.stderr)

    def test_every_rule_is_meant_for_something(self):
        """But for rules about modules, which decide on no allocation."""
        for path in SHIPPED:
            self.assertEqual({rule["name"] for rule in json.loads(path.read_text())["rules"]
                              if "recompute" not in rule["action"]},
                             {rule for rule, _ in INTENDED[path.stem] if rule})

    @unittest.skipUnless(PACKAGES and (PACKAGES / "torch").exists(), "no PyTorch in .venv")
    def test_functions_are_there(self):
        """The files and functions of the sites are those of the PyTorch that is installed."""
        looked_at = 0
        for sites in INTENDED.values():
            for file, function in re.findall(r"python:\{\}/([\w/.]+):([\w.]+):", str(sites)):
                path = PACKAGES / file
                if path.exists():
                    looked_at += 1
                    self.assertRegex(path.read_text(), rf"def {function.rpartition('.')[2]}\(",
                                     file)
        self.assertGreater(looked_at, 30)


@unittest.skipIf(os.environ.get("BUILD_SANITIZED", "none") != "none",
                 "sh and true are not built with the sanitizer")
class Launchers(Case):
    def sim(self, *arguments, command=("true",), **variables):
        return run("sim", "--memory", "1GiB", *arguments, "--", *command, cwd=self.folder,
                   **variables)

    def said(self, done):
        return [line for line in done.stderr.splitlines() if "policy" in line]

    def test_good(self):
        done = self.sim("--policy", "optimizer-to-host")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.said(done), [])
        self.assertEqual(self.said(self.sim("--policy", "observe")), [])

    def test_program_gets_the_path(self):
        self.write({"version": 1, "rules": []})
        command = ("sh", "-c", "cd / && echo $SPILLWAY_POLICY")
        for name, path in (("policy.json", self.folder / "policy.json"),
                           ("observe", BUILD / "policies/observe.json")):
            done = self.sim("--policy", name, command=command)
            self.assertEqual(done.stdout, f"{os.path.realpath(path)}\n")
            done = self.sim(command=command, SPILLWAY_POLICY=name)
            self.assertEqual(done.stdout, f"{os.path.realpath(path)}\n")

    def test_bad_flag(self):
        """As for any bad flag, the program does not start; all errors are told."""
        self.write('{"version": 1, "rules": [], "x": 2, "y": 3}')
        for command in ("run", "sim", "fit"):
            done = run(command, "--policy", "policy.json", "--", "echo", "ran", cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual([line.split(",")[0] for line in done.stderr.splitlines()], [
                f'spillway: {command}: policy.json:1:29: "x" is not a key of the policy',
                f'spillway: {command}: policy.json:1:37: "y" is not a key of the policy'])
            done = run(command, "--policy", "optimizer-to-hots", "--", "echo", "ran")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, rf"^spillway: {command}: optimizer-to-hots:1:1: [^\n]* "
                                          r'\(did you mean "optimizer-to-host"\?\)\n$')

    def test_bad(self):
        self.write('{"version": 1, "rulez": 1, "x": 2}')
        done = self.sim(command=("echo", "ran"), SPILLWAY_POLICY="policy.json")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"))
        self.assertEqual(self.said(done), [
            'spillway: sim: policy.json:1:16: "rulez" is not a key of the policy, expected one of '
            '$schema, version, comment, rules (did you mean "rules"?); the default policy is used '
            '(see spillway policy check policy.json)'])

    def test_bad_and_strict(self):
        self.write('{"version": 1, "rules": [], "x": 2, "y": 3}')
        for arguments, variables in (
                (["--policy-strict", "on"], {"SPILLWAY_POLICY": "policy.json"}),
                ([], {"SPILLWAY_POLICY": "policy.json", "SPILLWAY_POLICY_STRICT": "1"})):
            done = self.sim(*arguments, command=("echo", "ran"), **variables)
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertEqual([line.split(",")[0] for line in self.said(done)], [
                'spillway: sim: policy.json:1:29: "x" is not a key of the policy',
                'spillway: sim: policy.json:1:37: "y" is not a key of the policy',
                "spillway: sim: policy policy.json is not valid"])
        done = run("run", "--policy-strict=on", "--", "true", cwd=self.folder,
                   SPILLWAY_POLICY="policy.json")
        self.assertEqual(done.returncode, 125)
        self.assertIn("is not valid", done.stderr)

    def test_without_the_pool_no_policy(self):
        done = run("sim", "--memory", "1GiB", "--no-pool", "--", "true",
                   SPILLWAY_POLICY="no.json", SPILLWAY_POLICY_STRICT="1")
        self.assertEqual((done.returncode, self.said(done)), (0, []))


if __name__ == "__main__":
    unittest.main()
