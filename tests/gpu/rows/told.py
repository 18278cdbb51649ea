"""Scripts that tell data, line by line (tests/gpu/scripts/told.py)."""
import json
import re

from setting import SOURCE

SCRIPTS = SOURCE / "tests/gpu/scripts"


def entries(done):
    """The lists that a script told, by name; lines that were cut are left out."""
    found = {}
    for line in re.findall(r"^data: (.*)$", done.out, re.MULTILINE):
        try:
            entry = json.loads(line)
            found.setdefault(entry.pop("what"), []).append(entry)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
    return found


def run(session, python, script, seconds, *flags, **more):
    """Runs a script that ends by its own clock. The rest as for Session.run."""
    tiny = ["--tiny"] if session.setting.tiny else []
    return session.run([python, SCRIPTS / script, "--seconds", str(seconds), *tiny, *flags], **more)


def collect(session, what, done):
    """What a script told, attached to the row; what it was refused is a figure, and its own failure
    a finding beside what it had told by then."""
    found = entries(done)
    for error in found.get("errors", ())[:10]:
        if not session.setting.simulated:
            session.figure(f"{what}: not done: {error['at']}", error["error"])
    if done.status != 0 or not found:
        session.failed(what, done.why())
    elif session.setting.simulated:
        session.unmeasurable(what)
    else:
        session.figure(f"{what}: entries", ", ".join(f"{len(list_)} of {name}"
                                                     for name, list_ in found.items()))
    return found
