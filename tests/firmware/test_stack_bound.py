# SPDX-License-Identifier: Apache-2.0
"""The bound of a firmware's stack, compared with programs of known depth and with GCC's own figures."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import small_networks

from ferrule import generate
from ferrule.architectures import CORTEX_M
from ferrule.backends import woofles
from ferrule.backends.contribution import BARE_METAL, DEVICE, HEADERS, KERNELS, LINK, RUNTIME
from ferrule.boards import DEFAULT_STACK_BYTES, load_board
from ferrule.errors import FerruleError
from ferrule.firmware import (
    Group,
    Job,
    Project,
    StackBound,
    StackTooSmallError,
    Toolchain,
    build_project,
    emit,
    load_project,
    make_firmware,
)
from ferrule.firmware.frames import Code
from ferrule.firmware.pointer_calls import Kind, Pointers
from ferrule.firmware.stack_bound import stack_bound
from ferrule.firmware.verification import State, verify
from ferrule.resources import root

pytestmark = pytest.mark.cc

CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
LINKED = ("-nostdlib", "-Wl,--entry=ferrule_reset", "-Wl,-Ttext=0x1000", "-Wl,--section-start=.ferrule_vectors=0")
FLOATS = load_board("mps2-an386").cpu
"""A core with floating-point registers."""
SAVED, FLOATS_SAVED = 36, 108
"""Bytes that the core pushes at an exception, with the padding."""
WOOFLES = Path(woofles.__file__).parent

HEAD = """
    .syntax unified
    .thumb
    .macro function name
    .section .text.\\name, "ax"
    .align 2
    .global \\name
    .type \\name, %function
\\name:
    .endm
    .section .ferrule_vectors, "ax"
    .global ferrule_vectors
ferrule_vectors:
    .word 0, ferrule_reset, other, other, other, other, other, 0, 0, 0, 0, other, other, 0, other, tick
    function other
    b .
    .weak tick
"""
DEPTHS = {
    "a path": ("push {r4, lr}; bl leaf; pop {r4, pc}; function leaf; push {r4-r7}; pop {r4-r7}; bx lr", 24),
    "the deeper of two paths": (
        "cbz r0, 1f; push {r4-r7}; pop {r4-r7}; b 2f; 1: push {r4, r5}; pop {r4, r5}; 2: bx lr",
        16,
    ),
    "a loop": ("1: push {r4-r7}; pop {r4-r7}; subs r0, #1; bne 1b; bx lr", 16),
    "a jump to the end of the frame": (
        "push {r4, lr}; pop {r4, lr}; b leaf; function leaf; push {r4-r7}; pop {r4-r7}; bx lr",
        16,
    ),
    "a jump that keeps the frame": ("push {r4, lr}; b stop; function stop; push {r4-r7}; b .", 24),
    "a function that goes on as the next": ("push {r4, lr}; function stop; push {r4-r7}; b .", 24),
    "a jump within the frame": (
        "push {r4, lr}; bl leaf; b .; function leaf; push {r4, lr}; bl last; pop {r4, pc}; function last; bx lr",
        16,
    ),
    "a return under a condition": (
        "push {r4, lr}; itt ne; addne r0, #1; popne {r4, pc}; sub sp, #8; add sp, #8; pop {r4, pc}",
        16,
    ),
    "an alternative": ("ite ne; subne sp, #16; subeq sp, #16; add sp, #16; bx lr", 16),
    "floats": ("vpush {d8-d11}; vpush {s16}; vpop {s16}; vpop {d8-d11}; bx lr", 36),
    "wide instructions": (
        "push.w {r4-r11, lr}; sub.w sp, sp, #1024; subw sp, sp, #1001; addw sp, sp, #1001; add.w sp, sp, #1024; "
        "pop.w {r4-r11, pc}",
        36 + 1024 + 1001,
    ),
    "stores": (
        "str lr, [sp, #-8]!; strd r0, r1, [sp, #-16]!; strb r0, [sp, #-4]!; stmdb sp!, {r0, r1}; ldmia sp!, {r0, r1}; "
        "ldrb r0, [sp], #4; ldrd r0, r1, [sp], #16; ldr pc, [sp], #8",
        36,
    ),
    "a table": (
        "tbb [pc, r0]; 1: .byte (2f - 1b) / 2, (3f - 1b) / 2; .align 1; 2: bx lr; 3: push {r4-r7}; pop {r4-r7}; bx lr",
        16,
    ),
    "a wide table": (
        "tbh [pc, r0]; 1: .hword (2f - 1b) / 2, (3f - 1b) / 2; 2: bx lr; 3: push {r4, r5}; pop {r4, r5}; bx lr",
        8,
    ),
    "a function that does not return": (
        "push {r4, lr}; cbz r0, 1f; pop {r4, pc}; 1: bl stop; function stop; sub sp, #64; b .",
        72,
    ),
    "code after a function that does not return": (
        "cbz r0, 1f; push {r4-r7}; bl stop; 1: push {r4, lr}; pop {r4, pc}; function stop; b .",
        16,
    ),
    "code after a call that returns at the end of a function": (
        "nop; push {r4, lr}; bl leaf; function stop; push {r4-r7}; b .; function leaf; bx lr",
        24,
    ),
    "code after a call through a pointer at the end of a function": (
        "push {r4, lr}; blx r0; function stop; push {r4-r7}; b .",
        24,
    ),
    "a thunk": (
        "ldr.w pc, [pc]; .word far; function far; push {r4, r5}; pop {r4, r5}; bx lr",
        8,
    ),
    "a thunk of two halves": (
        "movw ip, #:lower16:far; movt ip, #:upper16:far; bx ip; function far; push {r4, r5}; pop {r4, r5}; bx lr",
        8,
    ),
    "the deepest of the functions with an address": (
        "ldr r0, =table; ldr r0, [r0]; bx r0; .ltorg; function shallow; push {r4, lr}; pop {r4, pc}; "
        "function deep; push {r4-r7, lr}; pop {r4-r7, pc}; function named; sub sp, #64; add sp, #64; bx lr; "
        ".data; table: .word shallow, deep",
        20,
    ),
    "a call of an address in code": (
        "push {r4, lr}; ldr r0, =deep; blx r0; pop {r4, pc}; .ltorg; function deep; push {r4-r7}; pop {r4-r7}; bx lr",
        24,
    ),
    "a call of an address in two halves": (
        "push {r4, lr}; movw r0, #:lower16:deep; movt r0, #:upper16:deep; blx r0; pop {r4, pc}; "
        "function deep; push {r4-r7}; pop {r4-r7}; bx lr",
        24,
    ),
    "fault handlers with their own stack": (
        "bl ferrule_fault_entry; function ferrule_fault_entry; mov sp, r2; push {r0-r7}; b .",
        0,
    ),
}
REASONS = {
    "a loop that grows": ("1: push {r4}; b 1b", "ferrule_reset uses more stack with each pass of a loop at 0x1"),
    "a size in a register": (
        "sub sp, sp, r0; b .",
        "ferrule_reset sets the stack pointer to a value that is not const",
    ),
    "another stack": ("msr msp, r0; b .", "ferrule_reset sets the stack pointer to a value that is not constant"),
    "a loaded stack pointer": ("ldr sp, [r0]; b .", "ferrule_reset sets the stack pointer"),
    "a frame that stays": ("bl f; b .; function f; push {r4, lr}; pop {pc}", "f does not restore the stack pointer"),
    "recursion": (
        "bl f; b .; function f; push {lr}; bl g; pop {pc}; function g; push {lr}; bl f; pop {pc}",
        "recursion: f → g → f",
    ),
    "recursion through a pointer": (
        "bl f; b .; function f; push {lr}; blx r0; pop {pc}; .data; .word f",
        "recursion: f → f",
    ),
    "a call of nothing": ("bl 0x800; b .", "ferrule_reset calls 0x800, which is no function"),
    "code that runs into data": ("nop; .word 0", "ferrule_reset runs into data at 0x1"),
    "an unmarked table": ("tbb [pc, r0]; nop; bx lr", "branches through a table that is not known"),
}


def assembled(compiler: str, text: str, folder: Path) -> tuple[Path, Path]:
    """Return the linked program of which ferrule_reset begins with the text, and its object file."""
    source, unit, elf = (folder / f"code.{suffix}" for suffix in ("s", "o", "elf"))
    source.write_text(f"{HEAD}\n function ferrule_reset\n{text.replace(';', chr(10))}\n")
    subprocess.run([compiler, *CORE, "-c", str(source), "-o", str(unit)], check=True, timeout=60)
    subprocess.run([compiler, *CORE, *LINKED, str(unit), "-o", str(elf)], check=True, timeout=60)
    return elf, unit


def bound_of(compiler: str, text: str, folder: Path, *, fpu: bool = False) -> StackBound:
    elf, unit = assembled(compiler, text, folder)
    return stack_bound(elf, [unit], CORTEX_M, FLOATS if fpu else CORTEX_M.plain)


def rounded(size_bytes: int) -> int:
    return -(-size_bytes // 8) * 8


@pytest.mark.parametrize("name", DEPTHS)
def test_the_bound_is_the_deepest_path(name: str, arm_gcc: str, tmp_path: Path) -> None:
    text, depth = DEPTHS[name]
    bound = bound_of(arm_gcc, text, tmp_path)
    assert (bound.reason, bound.size_bytes) == ("", rounded(depth + SAVED))
    assert bound.exception_bytes == SAVED
    assert bound.path[0] == "ferrule_reset"


@pytest.mark.parametrize("name", REASONS)
def test_no_bound_is_claimed_without_proof(name: str, arm_gcc: str, tmp_path: Path) -> None:
    text, reason = REASONS[name]
    bound = bound_of(arm_gcc, text, tmp_path)
    assert bound.size_bytes is None
    assert reason in bound.reason


def test_the_deepest_handler_is_added_once(arm_gcc: str, tmp_path: Path) -> None:
    text = (
        "push {r4, lr}; b .; function tick; push {r4-r7, lr}; bl more; pop {r4-r7, pc}; function more; sub sp, #12; b ."
    )
    bound = bound_of(arm_gcc, text, tmp_path, fpu=True)
    assert bound.exception_bytes == FLOATS_SAVED + 20 + 12
    assert bound.size_bytes == rounded(8 + FLOATS_SAVED + 32)
    endless = bound_of(arm_gcc, "b .; function tick; push {lr}; bl tick; pop {pc}", tmp_path)
    assert endless == StackBound(reason="recursion: tick → tick")


def test_a_firmware_without_vectors_has_no_bound(arm_gcc: str, tmp_path: Path) -> None:
    elf, unit = assembled(arm_gcc, "b .", tmp_path)
    elf.write_bytes(elf.read_bytes().replace(b"ferrule_vectors\0", b"another_vectors\0"))
    assert (
        stack_bound(elf, [unit], CORTEX_M, CORTEX_M.plain).reason == "the firmware has no vector table ferrule_vectors"
    )
    elf.write_bytes(elf.read_bytes()[:99])
    assert re.match(
        r"code.elf or its objects cannot be read: .", stack_bound(elf, [unit], CORTEX_M, CORTEX_M.plain).reason
    )


def test_frames_equal_those_that_gcc_states(arm_gcc: str, tmp_path: Path) -> None:
    kernels = KERNELS.part("average_pool2d_s8", "softmax_s8", "conv2d_f32")
    kinds = (kernels, LINK, RUNTIME, DEVICE, BARE_METAL, CORTEX_M.bare_metal, CORTEX_M.startup)
    folders = sorted({path for each in kinds for path in (*each.include_paths, *HEADERS.include_paths)})
    flags = ["-O2", "-ffreestanding", "-fomit-frame-pointer", "-fstack-usage", *(f"-I{each}" for each in folders)]
    elf, main = tmp_path / "all.elf", tmp_path / "main.c"
    main.write_text("void ferrule_interrupt(unsigned n); void ferrule_interrupt(unsigned n) { (void)n; }")
    sources = [str(main), *(str(path) for each in kinds for path in each.source_paths)]
    ignore = "-Wl,--unresolved-symbols=ignore-all"
    argv = [arm_gcc, *CORE, *flags, "-w", *LINKED, ignore, *sources, "-lgcc", "-o", str(elf)]
    subprocess.run(argv, check=True, cwd=tmp_path, timeout=120)
    stated: dict[str, set[int]] = {}
    for line in "".join(path.read_text() for path in tmp_path.glob("*.su")).splitlines():
        place, size, kind = line.split("\t")
        assert kind == "static"
        stated.setdefault(place.rpartition(":")[2], set()).add(int(size))
    code = Code(elf, CORTEX_M.instructions)
    own = [address for address in code.keys if code.name(address) in stated]
    assert len(own) > 40
    for address in own:
        frame = code.frame(address)
        if code.name(address) == "ferrule_fault_entry":
            assert "sets the stack pointer" in frame.problem
            continue
        assert not frame.problem, code.name(address)
        assert frame.deepest in stated[code.name(address)], code.name(address)


def test_kernels_call_only_their_parts_through_pointers(arm_gcc: str, tmp_path: Path) -> None:
    kernels = KERNELS.part()
    folder = root() / "src_c/kernels"
    sources = [
        path for path in folder.glob("*.c") if "_block_" in path.stem or re.search(r"->\w+\(", path.read_text("utf-8"))
    ]
    folders = sorted({*kernels.include_paths, *HEADERS.include_paths})
    flags = [*CORE, "-Os", "-ffreestanding", "-fno-inline", *(f"-I{each}" for each in folders)]
    subprocess.run([arm_gcc, *flags, "-c", *map(str, sources)], check=True, cwd=tmp_path, timeout=120)
    objects, elf = sorted(tmp_path.glob("*.o")), tmp_path / "all.elf"
    ignore = "-Wl,--unresolved-symbols=ignore-all"
    subprocess.run([arm_gcc, *CORE, *LINKED, ignore, *map(str, objects), "-o", str(elf)], check=True, timeout=60)
    code, pointers = Code(elf, CORTEX_M.instructions), Pointers(objects, CORTEX_M.instructions)
    through = {
        code.name(address): pointers.called_by(keys) & ~(Kind.PART | Kind.WHOLE | Kind.ROWS)
        for address, keys in code.keys.items()
        if code.frame(address).pointer_depth is not None
    }
    assert len(through) > 10
    assert not {name for name, kinds in through.items() if kinds}


C_DRIVER = """
#include "ferrule/driver.h"
static int32_t on(void *c) { (void)c; return 0; }
static int32_t off(void *c) { (void)c; return 0; }
static void tell(void) { }
extern const struct ferrule_driver mine_driver;
const struct ferrule_driver mine_driver = {.name = "mine", .activate = on, .check = off, .memory_bytes = 7};
extern int32_t (*const also)(void *);
int32_t (*const also)(void *) = off;
extern void (*const telling[7])(void);
void (*const telling[7])(void) = {tell};
"""


def compiled(compiler: str, source: Path, folder: Path) -> Path:
    """Return the object file of a source that may use the headers of Ferrule and of Woofles."""
    unit = folder / f"{source.stem}.o"
    includes = [f"-I{root() / 'include'}", f"-I{WOOFLES / 'include'}"]
    flags = [*CORE, "-O2", "-ffreestanding", "-ffunction-sections", "-fdata-sections", *includes]
    subprocess.run([compiler, *flags, "-c", str(source), "-o", str(unit)], check=True, timeout=60)
    return unit


DRIVER = ("activate", "deactivate", "check", "submit", "is_over", "poll_us", "finish", "abort", "is_stopped")
"""The functions of Woofles' driver."""


def test_only_functions_of_own_drivers_are_recognised(arm_newlib: str, tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text(C_DRIVER)
    pointers = Pointers(
        [compiled(arm_newlib, each, tmp_path) for each in (source, WOOFLES / "src/woofles.c")], CORTEX_M.instructions
    )
    taken = {key: kind for key, kind in pointers.kinds.items() if ".c:" in key}
    assert taken == {
        **dict.fromkeys(("mine.c:on", "mine.c:off", "mine.c:tell"), Kind.OTHER),
        **{f"woofles.c:woofles_{each}": Kind.DRIVER for each in DRIVER},
    }
    unknown = pointers.called_by(["mine.c:on"])
    assert not unknown & (Kind.REQUEST | Kind.OPERATOR)
    assert (Kind.MODEL | Kind.DRIVER | Kind.OTHER) in unknown
    assert pointers.called_by(["woofles.c:start"]) == Kind.OTHER


C_PROGRAM = """
#include "woofles/woofles.h"
static struct woofles npu;
static int32_t shallow(void *context) { (void)context; return 0; }
static int32_t deep(void *context)
{
    volatile char large[2048];
    large[0] = 0;
    return large[0] + (context != NULL);
}
static int32_t wrap(void *context)
{
    const struct ferrule_driver *const *inner = context;
    return (*inner)->activate(&npu) + 1;
}
struct sensor_driver { const char *name; int32_t (*op[5])(void *); uint32_t flags; };
const struct sensor_driver imu_driver = {"imu", {shallow, deep}, 7};
const struct ferrule_driver deep_driver = {.name = "deep", .activate = deep};
const struct ferrule_driver wrapping_driver = {.name = "wrapping", .activate = wrap};
const struct sensor_driver *volatile imu = &imu_driver;
void application(void);
void ferrule_reset(void);
void ferrule_reset(void) { application(); for (;;) { } }
"""
PROGRAMS = {
    "a table of another kind": ("(void)imu->op[1](NULL);", 2048, "deep"),
    "a driver of the user's": (
        "const struct ferrule_driver *volatile inner = &deep_driver; (void)inner->activate(NULL);",
        2048,
        "deep",
    ),
    "a driver of Ferrule's": (
        "const struct ferrule_driver *volatile inner = &woofles_driver; (void)inner->activate(&npu);",
        16,
        "woofles_submit",
    ),
    "a driver that wraps another": (
        "const struct ferrule_driver *inner = &deep_driver; "
        "const struct ferrule_driver *volatile outer = &wrapping_driver; (void)outer->activate(&inner);",
        None,
        "recursion: wrap → wrap",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_own_code_can_call_the_functions_of_drivers(name: str, arm_newlib: str, tmp_path: Path) -> None:
    body, least, expected = PROGRAMS[name]
    start, source, elf = tmp_path / "start.s", tmp_path / "mine.c", tmp_path / "all.elf"
    start.write_text(HEAD)
    source.write_text(f"{C_PROGRAM}void application(void) {{ {body} }}\n")
    sources = (start, source, WOOFLES / "src/woofles.c", *CORTEX_M.startup.part("memory").source_paths)
    units = [compiled(arm_newlib, each, tmp_path) for each in sources]
    kept = ("-Wl,--gc-sections", "-Wl,--undefined=ferrule_vectors")
    subprocess.run([arm_newlib, *CORE, *LINKED, *kept, *map(str, units), "-o", str(elf)], check=True, timeout=60)
    bound = stack_bound(elf, units, CORTEX_M, CORTEX_M.plain)
    if least is None:
        assert (bound.size_bytes, bound.reason) == (None, expected)
        return
    assert (bound.size_bytes or 0) > least + SAVED
    assert re.search(expected, " ".join(bound.path))


def test_a_file_of_the_user_is_not_taken_for_one_of_ferrule(arm_gcc: str, tmp_path: Path) -> None:
    own = (
        "static void record(void *p) { (void)p; }\n__attribute__((used)) static void (*const told)(void *) = record;\n"
    )
    units = {}
    for name, text in {"mine/run.c": own, "their/run.c": f"{own} void ferrule_link_run(void) {{ }}"}.items():
        source = tmp_path / name
        source.parent.mkdir()
        source.write_text(text)
        units[name] = source.with_suffix(".o")
        subprocess.run([arm_gcc, *CORE, "-O2", "-c", str(source), "-o", str(units[name])], check=True, timeout=60)
    mine, their = (Pointers([unit], CORTEX_M.instructions) for unit in units.values())
    assert (mine.kinds["run.c:record"], their.kinds["run.c:record"]) == (Kind.OTHER, Kind.OPERATOR)
    assert their.called_by(["run.c:trial.part.0"]) == Kind.MODEL | Kind.OPERATOR | Kind.OTHER
    assert mine.called_by(["run.c:trial"]) == mine.called_by(["main"])
    both = Pointers(units.values(), CORTEX_M.instructions)
    assert both.kinds["run.c:record"] == Kind.OTHER
    assert both.called_by(["run.c:trial"]) == both.called_by(["main"])


def with_main(project: Project, begin: str) -> None:
    """Put code at the start of a project's main()."""
    path = project.folder / "main.c"
    path.write_text(path.read_text().replace("int main(void)\n{\n", begin))


def test_the_bound_decides_the_size_of_the_stack(arm_gcc: str, tmp_path: Path) -> None:
    network = small_networks.dense()
    job = Job(board="mps2-an386", toolchain="arm-none-eabi-gcc", out=tmp_path / "project")
    artifact = emit(network, job)
    usual, image = make_firmware(artifact, job)
    assert (usual.manifest.stack_bytes, image.groups[Group.STACK]) == (2048, 2048)
    assert "stack_bytes" not in (tmp_path / "project/board/mps2-an386/board.toml").read_text()
    assert verify(image, [network], job).state is State.EQUAL
    data = image.path.read_bytes()
    assert build_project(load_project(tmp_path / "project")).path.read_bytes() == data

    started = (tmp_path / "project/main.c").read_text()
    reads = "volatile char large[4000];\n    large[0] = 0;\n    (void)large[0];\n"
    with_main(usual, f"int main(void)\n{{\n    {reads}")
    large, image = make_firmware(artifact, job)
    bound = image.stack.size_bytes or 0
    assert bound > 4000
    assert 1.25 * bound <= large.manifest.stack_bytes == image.groups[Group.STACK] <= 1.25 * bound + 8
    assert verify(image, [network], job, project=tmp_path / "project").state is State.EQUAL

    (tmp_path / "project/main.c").write_text(started)
    again = "static int again(volatile int *n)\n{\n    *n = *n > 0 ? again(n) : 0;\n    return *n;\n}\n"
    with_main(usual, f"{again}int main(void)\n{{\n    volatile int n = 0;\n    (void)again(&n);\n")
    unknown, image = make_firmware(artifact, job)
    assert (image.stack.size_bytes, image.stack.reason) == (None, "recursion: again → again")
    assert unknown.manifest.stack_bytes == image.groups[Group.STACK] == DEFAULT_STACK_BYTES
    generated = generate(network, replace(job, out=tmp_path / "generated"))
    assert generated.manifest.stack_bytes == DEFAULT_STACK_BYTES


@pytest.mark.parametrize("stated", [256, 8192])
def test_a_stack_below_the_bound_is_refused(stated: int, any_toolchain: Toolchain, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    generate(small_networks.dense(), board="mps2-an386", toolchain=any_toolchain.name, out=folder)
    description = folder / "board" / "mps2-an386" / "board.toml"
    description.write_text(re.sub("(\nstack = .*)", rf"\1\nstack_bytes = {stated}", description.read_text()))
    if stated > 256:
        bound = build_project(load_project(folder)).stack
        assert bound.size_bytes is not None
        assert 256 < bound.size_bytes < stated
        return
    with pytest.raises(StackTooSmallError, match=r"may use \d+ B of stack .* mps2-an386 reserves 256 B") as raised:
        build_project(load_project(folder))
    assert isinstance(raised.value, FerruleError)
    assert f"at least {raised.value.bound.size_bytes}" in (raised.value.hint or "")
    assert "main → ferrule_link_serve" in str(raised.value)
    assert not (folder / "build" / "firmware.elf").exists()
