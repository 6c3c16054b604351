"""C for the RISC-V machine: compiled, linked, run on the interpreter; what does not compile; missing compilers."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from pathlib import Path

import pytest

from punchcard.api import load
from punchcard.errors import CompilerError, ProgramError, PunchcardError, SourceError
from punchcard.machines.riscv.languages import c, elf, toolchain
from punchcard.machines.riscv.languages.compiler_errors import error_of
from tests.cases import EXAMPLES, file_with
from tests.command_line import assert_refused, invoke
from tests.riscv_runs import COMPILERS, PROGRAMS, interpret, native, needs_clang, needs_gcc, needs_native

GIVEN = b"one\ntwo words and much more\n\nend"
SMALL = "int main(void) { return 5; }"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Temporary folders vanish, whatever happens."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("cc", "libc"), [
    pytest.param("gcc", "own", marks=needs_gcc), pytest.param("gcc", None, marks=[needs_gcc, pytest.mark.soak]),
    pytest.param("clang", "own", marks=[needs_clang, pytest.mark.soak])])
@needs_native
def test_the_library_is_as_this_computers(cc: str, libc: str | None, tmp_path: Path) -> None:
    source = PROGRAMS / "library.c"
    program = c.assemble(source.read_text(), source.name, cc=cc, libc=libc)
    assert interpret(program, GIVEN)[:2] == native(source, GIVEN, tmp_path)


@pytest.mark.soak
@needs_gcc
def test_without_the_compilers_arithmetic(tmp_path: Path) -> None:
    """The package's own products and quotients, beside those of libgcc; all operands in the library's program."""
    source = PROGRAMS / "library.c"
    tools = toolchain.Toolchain(toolchain.find("gcc").command, "rv32i")
    program = elf.load(c.build_elf(tools, source.read_text(), source.name))
    other = c.assemble(source.read_text(), source.name, cc="gcc", march="rv32im", libc="own")
    assert interpret(program, GIVEN)[:2] == interpret(other, GIVEN)[:2]


@pytest.mark.parametrize("cc", COMPILERS)
def test_what_a_program_is_made_of(cc: str) -> None:
    """Thread variables, constructors, a large array, the heap up to its end; linked elsewhere; source lines."""
    text = """
        #include <stdio.h>
        #include <stdlib.h>
        static _Thread_local int first = 3, second;
        static int begun, array[1000];
        static void *volatile block;
        __attribute__((constructor)) static void begin(void) { begun = 1; }
        int main(void)
        {
            int blocks = 0;
            for (int i = 0; i < 1000; i++)
                array[i] = second++;
            while ((block = malloc(1000)) != NULL)
                blocks++;
            printf("%d %d %d %d %d\\n", begun, first, second, array[999], blocks > 100);
            return -1;
        }"""
    for base in (None, 0, 0x80000000):
        program = c.assemble(text, "made.c", cc=cc, base=base)
        assert program.base == program.entry == (0x10000 if base is None else base)
        ran = interpret(program)
        assert (ran.output, ran.status) == (b"1 3 1000 999 1\n", 255)
        assert program.lines[program.symbols["main"]].file.endswith("made.c")


@needs_gcc
def test_headers_and_other_files_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "other.h").write_text("int other(void);\n#define FIVE 5\n")
    (tmp_path / "other.c").write_text("int other(void) { return N; }\n")
    path = file_with(tmp_path / "program.c", '#include "other.h"\nint main(void) { return FIVE + other(); }\n')
    assert interpret(load(path, cflags="-O0 -DN=3 other.c")).status == 8


@pytest.mark.parametrize("cc", COMPILERS)
def test_several_files(cc: str, tmp_path: Path) -> None:
    """Each from its own folder, also in assembly; messages, __FILE__ and lines have the names that were given."""
    (tmp_path / "deep").mkdir()
    main, other, low = tmp_path / "main.c", tmp_path / "deep" / "other.c", tmp_path / "low.s"
    main.write_text("int other(void), low(void);\nint main(void) { return other() + low(); }\n")
    (tmp_path / "deep" / "own.h").write_text("#define OWN 30\n")
    other.write_text('#include "own.h"\nint other(void) { return OWN + sizeof __FILE__ - sizeof "other.c"; }\n')
    low.write_text(".globl low\nlow: li a0, 4\nret\n")
    files = [str(other), str(low)]
    program = load(main, cc=cc, files=files)
    assert interpret(program).status == 34 + len(str(other)) - len("other.c")
    assert str(program.lines[program.symbols["other"]]).endswith("other.c:2")
    other.write_text("int other(void) { return lop; }\n")
    with pytest.raises(SourceError, match=rf"^{other}: line 1, column 26: "):
        load(main, cc=cc, files=files)
    other.write_text("int other(void) { return 1; }\nint main(void) { return 2; }\n")
    with pytest.raises(ProgramError, match=rf"^{main}: 'main' is defined twice in the program's files"):
        load(main, cc=cc, files=files)
    for name, message in (("x.cpp", r"C\+\+ is not supported: there is no library for it"),
                          ("x.subleq", r"are \.c, \.s, \.S"), ("no.c", "no such file")):
        with pytest.raises(ProgramError, match=message):
            load(main, cc=cc, files=[str(tmp_path / name)])


def test_c_plus_plus_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("x.cpp", "x.cc", "X.CXX"):
        (tmp_path / name).write_text("int main() {}")
        assert_refused(f"{name}': C++ is not supported: there is no library for it. Write it in C (.c)",
                       "run", tmp_path / name)


@needs_gcc
def test_what_the_small_library_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, or to leave out where it is there."""
    texts = {"#include <math.h>\n": r"^bad\.c: line 1, column 10: math\.h: No such file or directory \(the small C library "
                                    r"of the package has no math\.h; a complete one: {}\)$",
             "int puzzle(void);\nint main(void) { return puzzle(); }\n":
                 r"^bad\.c: 'puzzle' is used, and is not defined in the program or in the small C library of the package; "
                 r"a complete one: {}$"}
    for text, message in texts.items():
        monkeypatch.undo()
        if toolchain.find("gcc").picolibc is not None:
            with pytest.raises(ProgramError, match=message.format("leave out --libc own")):
                c.assemble(text, "bad.c", cc="gcc", libc="own")
        monkeypatch.setattr(toolchain, "PICOLIBC", ())
        with pytest.raises(ProgramError, match=message.format(r"install picolibc \(Debian and Ubuntu: apt install .*\)")):
            c.assemble(text, "bad.c", cc="gcc")
    tools = toolchain.Toolchain(toolchain.find("gcc").command, "rv32i")
    with pytest.raises(ProgramError, match=r"'__\w*df\w*', arithmetic of real numbers, is not there: install"):
        c.build_elf(tools, "double twice(double x) { return 3 * x; }\nint main(int n) { return twice(n) > 1; }", "bad.c")


@pytest.mark.parametrize("cc", COMPILERS)
def test_names_with_odd_characters(cc: str) -> None:
    """A message is one line with the file's own name, and so is a line of the source."""
    for name, shown in (("a\rb.c", r"a\rb.c"), ("a\nb.c", r"a\nb.c"), ("x:y.c", "x:y.c"), ('q"\\.c', 'q"\\.c'),
                        ("ü.c", "ü.c")):
        with pytest.raises(SourceError) as found:
            c.assemble("int main(void)\n{ return lop; }\n", name, cc=cc)
        assert str(found.value).startswith(f"{shown}: line 2, column 10: ")
        assert "\n" not in str(found.value)


@pytest.mark.parametrize("cc", COMPILERS)
def test_messages_name_the_source(cc: str) -> None:
    """Of an assembler and a linker too, which see temporary files."""
    for text in ('__asm__("nonsense");\nint main(void) { return 0; }\n', '__asm__(".incbin \\"/no/such/file\\"");\n',
                 '__asm__(".text\\n.globl other\\nother: j nowhere");\nint other(void), main(void) { return other(); }\n'):
        with pytest.raises(ProgramError, match=r"^bad\.c: ") as found:
            c.assemble(text, "bad.c", cc=cc)
        assert tempfile.gettempdir() not in str(found.value)


def test_a_compiler_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time, memory and sizes of files; what it has started ends with it."""
    script = file_with(tmp_path / "cc", "#!/bin/sh\nulimit -v\nulimit -f\n")
    script.chmod(0o755)
    assert toolchain.run([str(script)]).stdout.split() == [str(2 << 20), str(256 << 11)]
    script.write_text(f"#!/bin/sh\nhead -c 300M /dev/zero > {tmp_path}/large\n")
    assert toolchain.run([str(script)]).returncode
    assert (tmp_path / "large").stat().st_size <= 256 << 20
    (tmp_path / "large").unlink()
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/started\nwait\n")
    monkeypatch.setattr(toolchain, "SECONDS", 0.5)
    with pytest.raises(CompilerError, match=r"cc has not ended after 0\.5 seconds"):
        toolchain.run([str(script)])
    stat = Path(f"/proc/{int((tmp_path / 'started').read_text())}/stat")
    until = time.monotonic() + 20
    while runs(stat) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(stat)


def runs(stat: Path) -> bool:
    """Whether a process runs. One that was killed may do so for a moment, and waits for its parent then."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@needs_gcc
def test_a_compiler_that_needs_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [part.replace(str(toolchain.MEMORY >> 10), str(32 << 10)) for part in toolchain.LIMITED]
    tools = toolchain.find("gcc", "rv32i", "own")
    c.build_elf(tools, SMALL)
    monkeypatch.setattr(toolchain, "LIMITED", few)
    with pytest.raises(ProgramError, match=r"^bad\.c: .*gcc was stopped by a limit: a compiler has 120 seconds, "):
        c.build_elf(tools, "int numbers[] = {" + "1," * 2_000_000 + "};", "bad.c")


def told(said: str, source: str = "bad.c") -> str:
    tools = toolchain.Toolchain(("gcc",), "rv32i")
    return str(error_of(said, source, tools, Path("/tmp/made"), {}))


@pytest.mark.parametrize("said", [
    "gcc: internal compiler error: File size limit exceeded signal terminated program as\nPlease submit a full bug report,",
    "gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.",
    "collect2: fatal error: ld terminated with signal 25 [File size limit exceeded], core dumped",
    "clang: error: unable to execute command: File size limit exceeded",
    "clang: error: linker command failed due to signal (use -v to see invocation)",
    "cc1: out of memory allocating 65536 bytes after a total of 24637440 bytes", "ld: memory exhausted",
    "PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/ and include the crash backtrace", ""])
def test_what_compilers_say_at_a_limit(said: str) -> None:
    assert told(said).startswith("bad.c: gcc was stopped by a limit: a compiler has 120 seconds, ")


@pytest.mark.parametrize("said", [
    "ld: signals.c: relocation truncated to fit", "ld: size limits.o: file format not recognized",
    "ld: bug report.c: relocation truncated to fit"])
def test_names_of_files_are_not_limits(said: str) -> None:
    assert told(said) == f"bad.c: gcc fails: {said}"


def test_a_warning_is_not_the_error() -> None:
    failed = "ld: final link failed: No space left on device"
    said = f"ld: warning: /tmp/made/program.elf has a LOAD segment with RWX permissions\n{failed}\ncollect2: error: 1"
    assert told(said) == f"bad.c: gcc fails: {failed}"


def test_a_name_with_backslashes_is_told_as_it_is() -> None:
    assert told("ld: /tmp/made/x.o: not enough", r"a\x07\1.c") == r"a\x07\1.c: gcc fails: ld: a\x07\1.c: not enough"


def test_a_handler_of_signals_that_python_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was not set by Python there is nothing to set again: the default comes back."""
    set_to = []

    def install(number: int, handler: object) -> None:
        if handler is None:
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        set_to.append((number, handler))

    monkeypatch.setattr(signal, "signal", install)
    with c.swept_folder():
        assert len(set_to) == 2
    assert set_to[2:] == [(signal.SIGINT, signal.SIG_DFL), (signal.SIGTERM, signal.SIG_DFL)]


@needs_gcc
def test_abort_with_picolibc() -> None:
    """Its abort raises a signal, which asks for the process that there is."""
    if toolchain.find("gcc").picolibc is None:
        pytest.skip("needs picolibc")
    text = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { printf("last"); abort(); }'
    ran = interpret(c.assemble(text, "program.c", libc="picolibc"))
    assert (ran.status, ran.output) == (134, b"last")


@needs_gcc
def test_abort_and_assert() -> None:
    text = '#include <assert.h>\nint main(int n) { assert(n == 7); return 0; }'
    ran = interpret(c.assemble(text, "program.c", libc="own"))
    assert ran.status == 134
    assert (ran.output, ran.errors) == (b"", b"program.c:2: assertion failed: n == 7\n")


@pytest.mark.parametrize("cc", COMPILERS)
def test_c_that_does_not_compile(cc: str) -> None:
    with pytest.raises(SourceError, match=r"^bad\.c: line 2, column \d+: .*undeclared") as found:
        c.assemble("int main(void)\n{ return lop; }\n", "bad.c", cc=cc)
    assert found.value.line == 2
    with pytest.raises(ProgramError, match=r"^bad\.c: 'lop' is used, and is not defined in the program or in the"):
        c.assemble("int lop(void);\nint main(void) { return lop(); }\n", "bad.c", cc=cc)
    with pytest.raises(ProgramError, match=r"bad\.c: line 1, .*no\.h"):
        c.assemble('#include "no.h"\n', "bad.c", cc=cc)
    with pytest.raises(ProgramError, match=r"^bad\.c: .* wrote no program: remove from '-fsyntax-only' the options"):
        c.assemble(SMALL, "bad.c", cc=cc, cflags="-fsyntax-only")
    with pytest.raises(PunchcardError, match=r"nonsense"):
        c.assemble(SMALL, "bad.c", cc=cc, cflags="-nonsense")


def test_flags_that_cannot_be_read() -> None:
    with pytest.raises(PunchcardError, match=r"""--cflags '-D"': No closing quotation|there is no C compiler"""):
        c.assemble(SMALL, "bad.c", cflags='-D"')


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One line, which says what to install on three systems; status 2, and nothing is written."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerError) as found:
        c.assemble(SMALL)
    for word in ("there is no C compiler for RISC-V", "Debian", "apt install gcc-riscv64-unknown-elf", "Fedora: dnf install",
                 "macOS: brew install"):
        assert word in str(found.value)
    for cc, message in (("gcc", "--cc gcc: there is no riscv64-unknown-elf-gcc or"),
                        ("clang", "--cc clang: there is no clang"), ("tcc", "--cc 'tcc': there is no such command"),
                        ("'", "--cc \"'\": No closing quotation")):
        with pytest.raises(CompilerError, match=message):
            c.assemble(SMALL, cc=cc)
    path, output = tmp_path / "small.c", tmp_path / "small.elf"
    path.write_text(SMALL)
    assert_refused("punchcard: there is no C compiler for RISC-V: install one (", "asm", path, "-o", output)
    assert not output.exists()


def test_clang_without_its_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("clang", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerError, match=r"links for RISC-V with lld, and ld\.lld is not there: install lld"):
        toolchain.find("clang")
    with pytest.raises(CompilerError, match="there is no C compiler"):
        toolchain.find()
    with pytest.raises(CompilerError, match="picolibc for rv32i is not there: install it"):
        toolchain.find("mine", "rv32i", "picolibc")


def test_a_compiler_that_cannot_run(tmp_path: Path) -> None:
    broken = file_with(tmp_path / "broken-cc", "#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(CompilerError, match="cannot be run"):
        c.assemble(SMALL, cc=str(broken))


@needs_gcc
def test_the_command_writes_what_the_extension_says(tmp_path: Path) -> None:
    path = file_with(tmp_path / "small.c", SMALL)
    for extension in ("elf", "hex", "bin", "s"):
        output = tmp_path / f"small.{extension}"
        ran = invoke("asm", path, "-o", output, "--cflags", "-Os", "--cc", "gcc")
        assert (ran.exit_code, ran.output) == (0, "")
        assert interpret(load(output)).status == 5
    path.write_text("int main(void) { return }")
    before = output.read_bytes()
    assert_refused(f"punchcard: {path}: line 1, column 25: expected expression before '}}' token", "asm", path, "-o", output)
    assert output.read_bytes() == before


def test_options_belong_to_c() -> None:
    assert_refused("--cflags is not for .s programs", "asm", EXAMPLES / "riscv" / "fibonacci.s", "--cflags", "-O0")


def test_an_address_may_be_hexadecimal() -> None:
    path = EXAMPLES / "riscv" / "fibonacci.s"
    limits = ["--base", "0x80000000", "--memory", "0x40", "--max-steps", "0"]
    sizes = json.loads(invoke("run", path, *limits, "--json").stdout)["sizes"]
    assert (sizes["base"], sizes["memory"]) == (0x80000000, 64)
    assert_refused("Invalid value for '--base': '0xno' is not a valid integer.", "run", path, "--base", "0xno")


@pytest.mark.parametrize("cc", COMPILERS)
def test_assembly_for_the_preprocessor(cc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `.S` file by itself: as in `.s`, and directives of C; lines stay where they are."""
    tools = toolchain.find(cc)
    monkeypatch.setattr(toolchain, "find", lambda: tools)
    (tmp_path / "sums.h").write_text("#define ADD(x, y) add x, x, y\n")
    (tmp_path / "code.h").write_text("\nnop\n")
    text = '#include "sums.h"\n/* of\nlines */\n#define N 5\n#if N > 4\nli a0, N\n#endif\nADD(a0, a0)\nli a7, 93\necall\n'
    file = tmp_path / "odd \x1b\"name.S"
    file.write_text(text)
    program = load(file)
    assert interpret(program)[1] == 10
    assert [line.line for line in program.lines.values()] == [6, 8, 9, 10]
    for wrong, message in {"#if 1\nnop\n": "line 1, column .: untermin", "#define N\nli a0, M": "line 2, column 8: un",
                           '#include "no.h"': "column 10: .*no.h", '#include "code.h"': "code.h', line 2"}.items():
        file.write_text(wrong)
        with pytest.raises(ProgramError, match=rf'odd \\x1b"name\.S: .*{message}'):
            load(file)
    plain = file_with(tmp_path / "plain.s", "#define N 5\nnop\n")
    assert [line.line for line in load(plain).lines.values()] == [2]
