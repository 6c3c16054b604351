"""How long a view takes: to open, to step, and to jump. `python benchmarks/view.py` prints two tables.

The first row is a process of its own, from its start to the replies that a page needs for its first picture. The others are
sessions in one process; a step is a state, and the attention of its layer, at the next moment. The second table is of pages
that compute the equation themselves, in Chromium where it is installed, by the time of the page's own thread.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import punchcard
from punchcard.viewer.session import Session, session_of

EXAMPLES = Path(__file__).parent.parent / "examples"
ENDLESS = ".data\na 1\nb 0\n.code\nloop: subleq a, b\n subleq a, a, loop\n halt\n"


def timed(call: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def first_replies(file: Path) -> tuple[float, float]:
    """Seconds from the start of `punchcard view` to its address, and to all that a first picture needs."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "punchcard", "view", str(file), "--no-open"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        listening = time.perf_counter() - started
        for path in ("", "page.js", "page.css"):
            urllib.request.urlopen(address + path, timeout=60).read()
        for name, given in (("about", {}), ("state", {"moment": 0}), ("attention", {"loop": 0, "layer": 0, "head": 0})):
            request = urllib.request.Request(f"{address}api/{name}", json.dumps(given).encode(),
                                             {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=60).read()
        return listening, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


def stepped(session: Session, first: int, count: int) -> list[float]:
    """Seconds of each step from a moment on."""
    def step(moment: int) -> None:
        state = session.state(moment)
        if session.machine.weights.layers[state["layer"]].heads and state["ended"] is None:
            session.attention(state["loop"], state["layer"], 0)

    session.state(first)
    return [timed(lambda moment=moment: step(moment)) for moment in range(first + 1, first + count + 1)]  # type: ignore[misc]


SHOWN = ("multiply", "palindrome", "sort", "newton", "hello_c")
"""Programs of the playground's gallery."""
VIEW = """async () => {
  const root = document.getElementById("punchcard-view");
  const view = root.playground ? root.playground.view : await root.view;
  view.source.spent = Infinity; // it does not run ahead meanwhile
  window.step = async () => {
    await view.on_go(view.after(view.moment, 1, "stage"));
    await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
  };
  return performance.getEntriesByName("first-contentful-paint")[0].startTime;
}"""


def in_a_browser(times: int = 5, steps: int = 12) -> None:
    """Print what a page takes to open and to step: milliseconds of its thread, and until something is painted."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    with sync_playwright() as started, TemporaryDirectory() as folder:
        view, playground = Path(folder) / "view.html", Path(folder) / "playground.html"
        made = {view: ("view", str(EXAMPLES / "multiply.subleq"), "--model"), playground: ("playground",)}
        for file, command in made.items():
            subprocess.run([sys.executable, "-m", "punchcard", *command, "--html", str(file)], check=True,
                           stdout=subprocess.DEVNULL)
        pages = {"view of multiply.subleq": view.as_uri(),
                 **{f"playground, {name}": f"{playground.as_uri()}#show={name}" for name in SHOWN}}
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        print(f"\n{'page':44} {'painted, ms':>12} {'open, ms':>9} {'step, ms':>9} {'worst, ms':>10}")
        for name, address in pages.items():
            painted, opened, stepped = zip(*(in_a_page(browser, address, steps) for _ in range(times)), strict=True)
            taken = [each for page in stepped for each in page]
            print(f"{name:44} {min(painted):12.0f} {statistics.median(opened):9.0f} {statistics.median(taken):9.0f} "
                  f"{max(taken):10.0f}")
        browser.close()


def in_a_page(browser: Any, address: str, steps: int) -> tuple[float, float, list[float]]:
    """Milliseconds until something is painted, by the clock; to the first card and of each step, by the thread."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")

    def thread_time() -> float:
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(each["value"] for each in metrics if each["name"] == "ThreadTime"))

    def taken(call: Callable[[], Any]) -> float:
        begun = thread_time()
        call()
        return thread_time() - begun

    opened = taken(lambda: (page.goto(address), page.wait_for_selector("[data-moment]")))
    painted = page.evaluate(VIEW)
    page.wait_for_timeout(300)
    found = [taken(lambda: page.evaluate("window.step()")) for _ in range(steps)]
    page.context.close()
    return painted, opened, found


def row(name: str, session: Session, opening: float, steps: list[float]) -> None:
    """A line of the table."""
    jump = timed(lambda: session.state(session.explore(5)["known_loops"] // 2 * session.per_loop))
    print(f"{name:44} {opening:8.3f} {1000 * statistics.median(steps):10.1f} {1000 * max(steps):10.1f} {jump:8.3f}")


def main() -> None:
    """Print the table."""
    listening, painted = min(first_replies(EXAMPLES / "multiply.subleq") for _ in range(3))
    print(f"punchcard view multiply.subleq: address after {listening:.2f} s, first picture after {painted:.2f} s\n")
    print(f"{'session':44} {'open, s':>8} {'step, ms':>10} {'worst, ms':>10} {'jump, s':>8}")
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    for design in ("paper", "two-layer", "one-layer"):
        machine = punchcard.build(program, design=design, memory=128, instructions=125)
        session = Session(machine, program)
        opening = timed(lambda: (session.about(), session.state(0)))  # noqa: B023
        row(f"subleq {design}, 256 columns", session, opening, stepped(session, 1, 40))
    files: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("fleq newton", "newton.fleq", {}), ("image sort.asq", "von_neumann/sort.asq", {"memory": 32765}),
        ("image hello.bf", "von_neumann/hello.bf", {}), ("riscv collatz.elf", "riscv/bin/collatz.elf", {}),
    )
    for name, file, options in files:
        path = EXAMPLES / file
        loaded = punchcard.load(path)
        machine = punchcard.build(loaded, **options)
        session = session_of(machine, loaded, path, input=b"5 3 -7 30000\n" if machine.has_ports else b"")
        opening = timed(lambda: (session.about(), session.state(0)))  # noqa: B023
        row(f"{name}, {machine.layout.columns} columns", session, opening, stepped(session, 1, 24))
    endless = punchcard.assemble(ENDLESS)
    machine = punchcard.build(endless, design="two-layer")
    session = Session(machine, endless, max_steps=1_000_000)
    opening = timed(lambda: (session.about(), session.state(0)))
    row("subleq, a run of 1,000,000 loops", session, opening, stepped(session, 1, 24))
    if find_spec("playwright") and shutil.which("chromium"):
        in_a_browser()


if __name__ == "__main__":
    main()
