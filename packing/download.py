"""Packages of Debian and PyPI, fetched into a folder; nothing is installed.

apt-get gets its own sources, lists and state, so that those of the machine stay as they are;
Debian's signatures are checked."""
import pathlib
import platform
import re
import shutil
import subprocess
import sys

KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = pathlib.Path("/etc/apt")
# The archives by the last part of their path.
ARCHIVES = {"debian": "http://deb.debian.org/debian",
            "debian-security": "http://deb.debian.org/debian-security"}
SECONDS = 1800


class Missing(Exception):
    """Why something cannot be fetched, in one line."""


def run(*command, cwd=None):
    """The output of a command; the last line of stderr is the reason if it fails."""
    name = "pip" if "pip" in command else pathlib.Path(command[0]).name
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True,
                              text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise Missing(f"{name} is not there") from error
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{name} took more than {SECONDS} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Missing(f"{name}: {last.removeprefix('E: ').removeprefix('ERROR: ')}")
    return done.stdout


def into(target, fetch):
    """Fills a new folder, and gives it its name when it is whole."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    partial.mkdir()
    try:
        fetch(partial)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


# ---- Debian ----

def need_debian():
    """Raises Missing if Debian's packages cannot be had on this machine."""
    if platform.machine() != "x86_64":
        raise Missing(f"this machine is {platform.machine()}, not x86_64")
    if not KEYRING.exists():
        raise Missing(f"{KEYRING} is not there: only Debian's packages hold them")


def mirror(archive):
    """The address of one of ARCHIVES, as the machine's own sources name it."""
    for path in (SOURCES / "sources.list", *sorted(SOURCES.glob("sources.list.d/*"))):
        text = path.read_text(errors="replace") if path.is_file() else ""
        for line in text.splitlines():
            found = re.search(rf"https?://\S+/{archive}(?=/?(\s|$))", line)
            if found and not line.lstrip().startswith("#"):
                return found.group(0)
    return ARCHIVES[archive]


def source(suite, component, address=None):
    """The line of sources.list for a suite of the main or the security archive."""
    if address is None:
        address = mirror("debian-security" if suite.endswith("-security") else "debian")
    return f"deb [signed-by={KEYRING}] {address} {suite} {component}\n"


class Apt:
    """apt-get and apt-cache with sources, lists and state of their own, in the folder `folder`; it
    seems to them that nothing is installed."""

    def __init__(self, folder, sources, architecture="amd64"):
        """sources: lines of sources.list. architecture: the packages', as Debian names it."""
        for name in ("lists/partial", "cache/archives/partial", "log"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text("".join(sources))
        self.archives = folder / "cache/archives"
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferences": "-", "Dir::Etc::preferencesparts": "-",
            "Dir::State": folder, "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
            "Dir::Log": folder / "log", "APT::Architecture": architecture,
            "APT::Architectures": architecture, "APT::Sandbox::User": "", "Acquire::Retries": "1",
            "Acquire::http::Timeout": "30", "Acquire::Languages": "none",
        }
        self.options = [f"-o{name}={value}" for name, value in settings.items()]

    def get(self, *words, cwd=None):
        return run("apt-get", "-q", *self.options, *words, cwd=cwd)

    def update(self):
        self.get("update", "--error-on=any")

    def versions(self, package):
        """The versions that the suites hold, newest first."""
        lines = run("apt-cache", *self.options, "madison", package).splitlines()
        return [line.split("|")[1].strip() for line in lines if "|" in line]

    def download_with_needs(self, *packages):
        """The files of the packages and of all that they depend on."""
        self.get("install", "--download-only", "--yes", "--no-install-recommends",
                 "-oDebug::NoLocking=1", *packages)
        return sorted(self.archives.glob("*.deb"))


# ---- PyPI ----

PINS = pathlib.Path(__file__).resolve().parent / "pins"  # scripts/pins writes them


def pinned(name):
    """How pip installs an environment: from the archives that scripts/pins found alone."""
    return ("install", "--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes",
            "--requirement", PINS / f"{name}.txt")


def pip_into(folder, name, *options):
    """Unpacks the wheels of an environment in a folder."""
    run(sys.executable, "-m", "pip", *pinned(name), *options, "--root-user-action=ignore",
        "--retries", "1", "--no-compile", "--target", folder)
