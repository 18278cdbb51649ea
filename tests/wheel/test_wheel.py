#!/usr/bin/env python3
"""The wheel: what it holds, that another program judges its tag, and that it works when it is
installed into a fresh environment, on this machine and in a root of Debian 11. Builds it first."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HERE = SOURCE / "tests/wheel"
sys.path.insert(0, str(SOURCE / "packing"))
import contents  # noqa: E402
import headers  # noqa: E402
import sysroot  # noqa: E402

VERSION = os.environ["PROJECT_VERSION"]
CUDA = os.environ["CUDA_HEADERS"]
NATIVE = "spillway/native"
SECONDS = 500

# Libraries of tests/preload/ that memory is registered with, and their versions.
REGISTERING = {"nccl": 2, "ibverbs": 1, "cufile": 0, "gdrapi": 2}


def build_linked(folder):
    """Builds a program of tests/preload/ that is linked with libraries, for Debian 11."""
    preload = SOURCE / "tests/preload"
    compiler = ["gcc", f"--sysroot={sysroot.ROOT}", f"-B{sysroot.ROOT}/usr/lib/x86_64-linux-gnu",
                "-D_GNU_SOURCE", f"-I{SOURCE}/src", f"-I{SOURCE}/include", "-isystem", CUDA]
    environment = {name: value for name, value in os.environ.items() if name != "LIBRARY_PATH"}
    libraries = []
    for name, number in REGISTERING.items():
        libraries.append(folder / f"lib{name}.so.{number}")
        versions = [f"-Wl,--version-script={preload}/ibverbs.map"] if name == "ibverbs" else []
        subprocess.run([*compiler, "-shared", "-fPIC", f"-DFAKE_{name.upper()}", *versions,
                        f"-Wl,-soname,{libraries[-1].name}", preload / "registering.c",
                        "-o", libraries[-1]], env=environment, check=True)
    subprocess.run([*compiler, "-DREGISTERS_LINKED", preload / "registers.c", *libraries, "-o",
                    folder / "registers_linked"], env=environment, check=True)


class Headers(unittest.TestCase):
    def test_those_of_an_older_tree_are_replaced(self):
        """pip filled the folder before, with the headers of the runtime alone."""
        made = []

        def fetch(major, folder):
            made.append(major)
            (folder / headers.MARK).touch()

        with tempfile.TemporaryDirectory() as name, \
                unittest.mock.patch.object(headers, "fetch_all", fetch):
            folder = pathlib.Path(name, ".cuda")
            (folder / "nvidia").mkdir(parents=True)
            headers.get("13", folder)
            headers.get("13", folder)
            self.assertEqual((made, os.listdir(folder)), (["13"], [headers.MARK]))


class Wheel(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        done = subprocess.run([sys.executable, SOURCE / "packing/make_wheel.py", cls.folder],
                              capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.wheel = pathlib.Path(done.stdout.strip())
        cls.linked = cls.folder / "linked"
        cls.linked.mkdir()
        build_linked(cls.linked)

    def test_name_and_contents(self):
        self.assertEqual(self.wheel.name,
                         f"spillway-{VERSION}-py3-none-manylinux_2_31_x86_64.whl")
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
            metadata = wheel.read(f"spillway-{VERSION}.dist-info/METADATA").decode()
            texts = {name: wheel.read(name) for name in names}
        self.assertIn(f"\nVersion: {VERSION}\n", metadata)
        self.assertIn(b"\n[pytest11]\nspillway.pytest = spillway.pytest\n",
                      texts[f"spillway-{VERSION}.dist-info/entry_points.txt"])
        for path in (*SOURCE.glob("python/spillway/*.py"), SOURCE / "python/spillway/py.typed"):
            if path.name != "_recompute.py":
                self.assertIn(f"spillway/{path.name}", names)
        self.assertIn(f"{NATIVE}/python/recompute.py", names)  # the object reads it
        for path in SOURCE.glob("policies/*.json"):
            self.assertIn(f"{NATIVE}/policies/{path.name}", names)
        for name in ("libcudart.so.12", "libcudart.so.13", "libcublas.so.12", "libcublas.so.13"):
            self.assertIn(f"{NATIVE}/sim/{name}", names)
        for name in (*contents.LIBRARIES, "liblzma.so.5"):
            self.assertIn(b"icense", texts[f"{NATIVE}/lib/{name}.copyright"])
        self.assertEqual([name for name, text in texts.items() if os.fsencode(SOURCE) in text], [])
        self.assertEqual([name for name in names if "__pycache__" in name], [])

    def test_auditwheel_confirms_the_tag(self):
        done = subprocess.run([sys.executable, "-m", "auditwheel", "show", self.wheel],
                              capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(sysroot.TOOLS)})
        said = " ".join(done.stdout.split())
        self.assertIn('consistent with the following platform tag: "manylinux_2_31_x86_64"', said,
                      done.stderr)

    def test_twine_accepts_the_description(self):
        done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", self.wheel],
                              capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PYTHONPATH": str(sysroot.TOOLS)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_uvx_runs_the_file(self):
        done = subprocess.run(
            [sysroot.TOOLS / "bin/uv", "tool", "run", "--offline", "--no-config", "--python",
             sys.executable, "--cache-dir", self.folder / "uv", "--from", self.wheel, "spillway",
             "sim", "--", "true"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verdict:", done.stderr)

    def check_program(self, result, name, policy):
        """What the object and the package did in a program under the wheel's command."""
        found, native = result[name], pathlib.PurePath(result["native"])
        self.assertIsNotNone(found, result["done"][name])
        for stats in found["stats"]:
            self.assertEqual(stats["devices"][0]["live_bytes"], 5 << 20)
        self.assertEqual(found["package"], str(native.parent / "__init__.py"))
        own = {str(native / name) for name in ("libspillway.so", "lib/libunwind.so.8")}
        if policy:
            own.add(str(native / "lib/libcjson.so.1"))
        self.assertLessEqual(own, set(found["files"]))

    def check_installed(self, result):
        done = result["done"]
        self.assertEqual({name: one for name, one in done.items()
                          if one["status"] != (1 if name == "check bad" else 0)}, {})
        for name in "version", "module":
            self.assertEqual(done[name]["out"], f"spillway {VERSION}\n")
        self.assertIn('"placemnt" is not a key of a rule', done["check bad"]["err"])
        self.assertIn("verdict: fits in 1 GiB", done["sim"]["err"])
        self.assertIn("program.py:10 allocate", done["sites"]["out"])
        self.assertEqual(done["world"]["out"], "3 torch.distributed.distributed_c10d\n")
        self.check_program(result, "sim", policy=True)
        self.check_program(result, "run", policy=False)
        self.assertEqual(done["needs"]["out"], f"{{'{result['native']}/lib/liblzma.so.5'}}\n")
        # The current version of a function behind spillway's own, not the oldest.
        self.assertEqual(done["linked"]["out"].count("ibv_reg_mr of 1.1: "), 2, done["linked"])
        self.assertEqual(result["page"].lower(), "<!doctype html>")
        for name in ("bin/spillway", "share/man/man1/spillway.1",
                     "share/bash-completion/completions/spillway",
                     "share/zsh/site-functions/_spillway",
                     "share/fish/vendor_completions.d/spillway.fish"):
            self.assertIn(name, result["files"])
        # Messages name pages by their paths beside the object.
        for name in "docs/README.md", "docs/guide/spilling.md", "policies/README.md":
            self.assertIn(name, result["pages"])
        self.assertEqual(result["left"], [])

    def check_notebook(self, done):
        """The cells of notebook.py, which ran under the wheel's command."""
        *_, table, marked, report = json.loads(done["notebook"]["out"])
        self.assertRegex(table["stdout"], r"live peak.*\n +0 +1\.00 GiB +5\.00 MiB +5\.00 MiB ")
        self.assertEqual(marked["stdout"], "evaluated\n")
        self.assertTrue(report["text/html"].startswith('<iframe srcdoc="&lt;!doctype html&gt;'))
        self.assertRegex(done["marks"]["out"], r"(?m)^.*8 MiB.*evaluation")

    def installed(self, *command):
        """What installed.py found, run by this command."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_installed_here(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.installed(sys.executable, HERE / "installed.py", self.wheel,
                                    os.path.realpath(folder), self.linked, sysroot.JUPYTER,
                                    HERE / "notebook.py")
        self.check_installed(result)
        self.check_notebook(result["done"])

    def test_installed_on_debian_11(self):
        alone = ("unshare", "--map-root-user", "--mount", "--pid", "--fork")
        if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine allows no namespaces of one's own")
        with tempfile.TemporaryDirectory() as folder:
            for path in self.wheel, HERE / "installed.py":
                shutil.copy(path, folder)
            shutil.copytree(self.linked, pathlib.Path(folder, "linked"))
            result = self.installed(*alone, HERE / "enter.sh", sysroot.ROOT, folder,
                                    "/usr/bin/python3", "/tmp/installed.py",
                                    f"/tmp/{self.wheel.name}", "/tmp", "/tmp/linked")
        self.assertTrue(result["python"].startswith("3.9."), result["python"])
        self.check_installed(result)


if __name__ == "__main__":
    if not sysroot.is_there() or not shutil.which("patchelf"):
        print(f"skipped: {sysroot.why_not()}")
        sys.exit(77)
    unittest.main(verbosity=2)
