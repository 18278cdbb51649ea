"""Opens a page of HTML in headless browsers, and reads it back as its scripts have left it."""
import html
import json
import os
import re
import shutil
import socket
import subprocess
import time

# Chromium's windows are at least 500 pixels wide; a frame may be narrower.
FRAME = """<!doctype html><iframe src="page.html" width="{}" height="900"></iframe><script>
addEventListener("message", event => {{
  const made = document.createElement("pre");
  made.id = "found";
  made.textContent = event.data;
  document.body.append(made);
}});
</script>"""
PATIENCE = 120  # seconds for a browser to start and to show a page


def command(variable, *names):
    """The first of the commands that is installed, or None. An environment variable names another
    one."""
    return next(filter(None, map(shutil.which, [os.environ.get(variable, names[0]), *names])), None)


class Chromium:
    NAME = "Chromium"
    COMMAND = command("SPILLWAY_TEST_BROWSER", "chromium", "chromium-browser", "google-chrome")

    @classmethod
    def read(cls, path, folder, width):
        """The page's document, and what its scripts complained of."""
        done = subprocess.run(
            [cls.COMMAND, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
             "--virtual-time-budget=5000", "--enable-logging=stderr",
             f"--user-data-dir={folder}/profile", f"--window-size={width},900", path.as_uri()],
            capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


class Marionette:
    """Firefox's own protocol: lengths and lists of JSON on a socket."""

    def __init__(self, port):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
                break
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.stream = self.socket.makefile("rb")
        self.number = 0
        self.receive()

    def receive(self):
        length = b""
        while (char := self.stream.read(1)) != b":":
            assert char, "Firefox has ended"
            length += char
        return json.loads(self.stream.read(int(length)))

    def ask(self, name, **arguments):
        self.number += 1
        text = json.dumps([0, self.number, name, arguments]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, answer = self.receive()
        assert error is None, error
        return answer

    def close(self):
        self.stream.close()
        self.socket.close()


class Firefox:
    NAME = "Firefox"
    COMMAND = command("SPILLWAY_TEST_FIREFOX", "firefox-esr", "firefox")

    @classmethod
    def read(cls, path, folder, width):
        profile = folder / "firefox"
        profile.mkdir(exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        with subprocess.Popen([cls.COMMAND, "--headless", "--no-remote", "--marionette",
                               "--profile", str(profile), "--width", str(width), "--height", "900"],
                              env=os.environ | {"HOME": str(folder)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                return cls.show(port, path, width)
            finally:
                browser.kill()

    @staticmethod
    def show(port, path, width):
        marionette = Marionette(port)
        try:
            marionette.ask("WebDriver:NewSession")
            marionette.ask("WebDriver:SetWindowRect", width=width, height=900)
            inner = marionette.ask("WebDriver:ExecuteScript", script="return innerWidth", args=[])
            marionette.ask("WebDriver:SetWindowRect", width=2 * width - inner["value"], height=900)
            marionette.ask("WebDriver:Navigate", url=path.as_uri())
            answer = marionette.ask(
                "WebDriver:ExecuteAsyncScript", args=[], script="""
                    const done = arguments[0], look = () => document.querySelector("#found")
                        ? done(document.documentElement.outerHTML) : setTimeout(look, 50);
                    look();""")
            return answer["value"], []
        finally:
            marionette.close()


BROWSERS = [browser for browser in (Chromium, Firefox) if browser.COMMAND]


def act(browser, page, script, folder, width):
    """Opens the text of a page, with a script behind its own, in a window of this width. Returns
    what the script left in an element with the identifier "found", and what went wrong."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", script + "</body>"))
    if width < 500:
        path = folder / "frame.html"
        path.write_text(FRAME.format(width))
    read, problems = browser.read(path, folder, max(width, 500))
    problems += ["a script failed"] if "FAILED" in read.rpartition("<pre id=")[2] else []
    found = re.search(r'<pre id="found">(.*?)</pre>', read, re.S)
    return json.loads(html.unescape(found[1])) if found else {}, problems
