"""`hocket run` on a terminal, through a pseudo-terminal: editing, history, paste, commands, Ctrl-C and Ctrl-D."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import stat
import struct
import termios
import time

import pytest

BINARY = os.environ.get("HOCKET_BINARY", "")
MODEL = os.environ.get("HOCKET_TEST_SMOLLM2", "")

pytestmark = pytest.mark.skipif(not (BINARY and MODEL), reason="HOCKET_BINARY and HOCKET_TEST_SMOLLM2 are not set")

UP, LEFT, HOME = "\033[A", "\033[D", "\033[H"
BACKSPACE, CTRL_C, CTRL_D, CTRL_R, CTRL_W = "\x7f", "\x03", "\x04", "\x12", "\x17"
# What moves the cursor and sets modes, but shows nothing.
CONTROL = re.compile(r"\033\[[0-9;?]*[A-Za-z]|\033[=>]|\033\(B|\r|\x08|\x07")


class Console:
    def __init__(self, state, *arguments, term="xterm"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOCKET_", "LC_", "LANG"))}
        environment.update(TERM=term, XDG_STATE_HOME=str(state), HOME=str(state))
        context = [] if "-c" in arguments else ["-c", "1024"]
        command = [BINARY, "run", MODEL, "-t", "1", "--temp", "0", *context, *arguments]
        self.seen = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(BINARY, command, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))

    def __enter__(self):
        self.expect("/help lists the commands")
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def line(self, text):
        """A line, once the program asks for one."""
        self.expect("> ")
        self.type(text + "\r")

    def read(self, seconds):
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # the program has ended
            return False
        self.raw = getattr(self, "raw", b"") + data
        self.seen = CONTROL.sub("", self.raw.decode(errors="replace"))[self.taken :]
        return True

    taken = 0

    def expect(self, text, seconds=60):
        """Reads until `text` has been shown; what came before it counts as read."""
        until = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < until and self.read(until - time.monotonic()), f"no {text!r} in {self.seen!r}"
        end = self.seen.index(text) + len(text)
        before, self.seen = self.seen[: end - len(text)], self.seen[end:]
        self.taken += end
        return before

    def end(self):
        while self.read(30):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def saved(self, path):
        self.line(f"/save {path}")
        self.expect(f"messages in {path}")
        return json.loads(path.read_text())["messages"]


@pytest.fixture
def console(tmp_path):
    with Console(tmp_path, "-n", "8") as running:
        yield running


def test_editing_in_utf8(console):
    console.line("/system aeü" + BACKSPACE + BACKSPACE + "漢b" + LEFT + "ß")
    console.expect("system: a漢ßb\n")
    console.line("system x" + HOME + "/")
    console.expect("system: x\n")
    console.line("/system one two" + CTRL_W + "three")
    console.expect("system: one three\n")


def test_several_lines_are_one_message(console, tmp_path):
    console.line("/system first \\")
    console.expect("… ")
    console.type("second\r")
    console.expect("system: first \nsecond\n")
    console.line('"""one')
    for rest in ("", 'three"""'):
        console.expect("… ")
        console.type(rest + "\r")
    console.expect("tokens/s")
    assert console.saved(tmp_path / "c.json")[1]["content"] == "one\n\nthree"


def test_a_paste_waits_for_enter(console):
    console.expect("> ")
    console.type("/system \033[200~one\rtwo\r\nthree\033[31m\033[201~")
    time.sleep(0.3)
    console.type(" and four\r")
    console.expect("system: one\ntwo\nthree[31m and four\n")  # without the escape character


def test_history_outlives_the_program(tmp_path):
    with Console(tmp_path, "-n", "4") as console:
        console.line("Say yes.")
        console.expect("tokens/s")
        console.line("/system ünï")
        console.expect("system: ünï")
        console.line(UP + UP)
        console.expect("tokens/s")
        messages = console.saved(tmp_path / "c.json")
        assert [m["content"] for m in messages if m["role"] == "user"] == ["Say yes.", "Say yes."]
        console.expect("> ")
        console.type(CTRL_D)
        assert console.end() == 0
    history = tmp_path / "hocket" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert [json.loads(line) for line in history.read_text().splitlines()][:2] == ["Say yes.", "/system ünï"]
    with Console(tmp_path, "-n", "4") as console:
        console.line(CTRL_R + "ünï\r")
        console.expect("system: ünï")


def test_control_c_ends_the_answer_only(tmp_path):
    with Console(tmp_path) as console:
        console.line("Write a very long story about the sea.")
        console.expect("sea.")
        time.sleep(1)
        console.type(CTRL_C)
        console.expect("[stopped]", 10)
        console.expect("> ")
        console.type("half a line")
        console.expect("half a line")
        console.type(CTRL_C)
        console.expect("(/quit or Ctrl-D ends)")
        console.line("/system alive")
        console.expect("system: alive")
        console.line("/quit")
        assert console.end() == 0


def test_cancel_may_be_typed_during_the_answer(tmp_path):
    with Console(tmp_path) as console:
        console.line("Write a very long story about the sea.")
        time.sleep(1)
        console.type("/cancel\r/system typed ahead\r")
        console.expect("[stopped]", 10)
        console.expect("system: typed ahead")


def test_the_line_of_numbers_tells_why_an_answer_ended(tmp_path):
    with Console(tmp_path, "-n", "8") as console:
        console.line("Write a very long story about the sea.")
        numbers = console.expect("length: the limit of 8 tokens]")
        assert "first token after" in numbers and "tokens/s" in numbers
    with Console(tmp_path, "-c", "64") as console:
        console.line("Write a very long story about the sea.")
        console.expect("length: the context of 64 tokens is full]")


def test_branches_settings_and_files(console, tmp_path):
    console.line("Say one.")
    console.expect("tokens/s")
    console.line("/fork other")
    console.expect("(in branch other)")
    console.line("Say two.")
    console.expect("tokens/s")
    assert len(console.saved(tmp_path / "other.json")) == 4
    console.line("/switch main")
    console.expect("branches: main (here), other")
    assert len(console.saved(tmp_path / "main.json")) == 2
    console.line("/fork other")
    console.expect("there is a branch other already")
    console.line("/load " + str(tmp_path / "other.json"))
    console.expect("(4 messages from ")
    console.line("/reset")
    console.expect("(forgotten)")
    assert console.saved(tmp_path / "main.json") == []
    assert stat.S_IMODE((tmp_path / "main.json").stat().st_mode) == 0o600

    console.line("/set temperature 0.7")
    console.expect("set: max_tokens 8, temperature 0.7")
    console.line("/set top-p 1.5")
    console.expect("top_p must be from 0 to 1, not 1.5")
    console.line("/set colour red")
    console.expect('there is no setting "colour"')
    console.line("/set temperature default")
    console.expect("set: max_tokens 8\n")
    console.line("/juggle")
    console.expect("there is no command /juggle")

    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    console.line(f"/save {precious}")
    console.expect("is no saved conversation")
    assert precious.read_text() == "do not touch"
    console.line(f"/load {precious}")
    console.expect(f"{precious}: ")


def test_a_terminal_that_cannot_edit(tmp_path):
    with Console(tmp_path, "-n", "4", term="dumb") as console:
        console.line("/system plain")
        console.expect("system: plain")
        console.expect("> ")
        console.type(CTRL_D)
        assert console.end() == 0
