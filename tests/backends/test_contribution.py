# SPDX-License-Identifier: Apache-2.0
"""Contributions: the shipped C sources, their digests, and contributions that contradict each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.backends.contribution import DEVICE, HEADERS, KERNELS, LINK, Contribution, Warnings, merged
from ferrule.errors import FerruleError


@pytest.fixture
def part(tmp_path: Path) -> Contribution:
    """Return a contribution with two sources, a private header beside one of them, and a folder of public headers."""
    for name in ("src/one.c", "src/private.h", "other/two.c", "include/deep/public.h"):
        path = tmp_path / "part" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"/* {name} */\n")
    return Contribution(
        name="backends/part",
        folder=tmp_path / "part",
        sources=("src/one.c", "other/two.c"),
        include_dirs=("include",),
        defines={"MODE": "2"},
        licence="MIT OR Apache-2.0",
    )


def test_parts(part: Contribution) -> None:
    assert part.part("two").sources == ("other/two.c",)
    assert part.part("two", "two").sources == ("other/two.c",)
    assert part.part().files == ("include/deep/public.h",)
    assert part.without("two").files == ("include/deep/public.h", "src/one.c", "src/private.h")
    with pytest.raises(FerruleError, match="there is no source 'three' in contribution 'backends/part'"):
        part.without("three")


def test_a_wrong_name_of_a_kernel_says_which_there_are() -> None:
    assert KERNELS.part("conv2d_s8").sources == ("conv2d_s8.c",)
    assert KERNELS.part("softmax_f32", "expf").sources == ("softmax_f32.c", "math/expf.c")
    with pytest.raises(FerruleError, match="there is no source 'conv2d_s9' in contribution 'src_c/kernels'") as caught:
        KERNELS.part("conv2d_s9")
    assert "conv2d_s8" in str(caught.value.hint)


def test_the_digest_is_of_what_is_contributed(part: Contribution) -> None:
    first = part.digest
    assert first == replace(part, licence="MIT").digest
    assert len({first, part.part("one").digest, part.part("two").digest, replace(part, defines={}).digest}) == 4
    (part.folder / "src" / "private.h").write_text("#define CHANGED\n")
    assert part.digest != first


def test_parts_of_one_are_put_together(part: Contribution) -> None:
    vendor = replace(part.part("two"), warnings=Warnings.THIRD_PARTY, licence="BSD-3-Clause", defines={"FAST": ""})
    found = merged((LINK, part.part("one"), HEADERS, vendor, DEVICE.part("held"), DEVICE.part("device"), part.part()))
    assert [(each.name, each.licence, each.sources) for each in found if each.name != "src_c/link"] == [
        ("backends/part", "MIT OR Apache-2.0", ("src/one.c",)),
        ("backends/part", "BSD-3-Clause", ("other/two.c",)),
        ("include", "Apache-2.0", ()),
        ("src_c/device", "Apache-2.0", ("device.c", "held.c")),
    ]


def test_contradictions(part: Contribution, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"two contributions are called 'backends/part' \(.*, .*\)"):
        merged((part, replace(part, folder=tmp_path)))
    with pytest.raises(FerruleError, match=r"one\.c is contributed twice: own under MIT OR .*, and third-party under"):
        merged((part, replace(part.part("one"), warnings=Warnings.THIRD_PARTY)))
    with pytest.raises(FerruleError, match="'backends/other' and 'backends/part' define MODE differently: '3' and '2'"):
        merged((part, Contribution(name="backends/other", folder=tmp_path, defines={"MODE": "3"})))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "../lib", "must be named like a folder below the project's library"),
        ("name", "", "must be named like a folder"),
        ("sources", ("src c/one.c",), "has the path 'src c/one.c', expected letters"),
        ("sources", ("$(touch P).c",), "has the path"),
        ("include_dirs", ("-Ihere",), "has the path '-Ihere', expected letters"),
        ("licence", "what ever!", "licence 'what ever!' is no SPDX expression"),
        ("defines", {"2MODE": ""}, "defines 2MODE as '', expected a C identifier"),
        ("defines", {"MODE": '"x"'}, "expected a C identifier, and a value of letters"),
    ],
)
def test_values_that_cannot_be(part: Contribution, field: str, value: object, message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        replace(part, **{field: value})  # type: ignore[arg-type]


def test_files_that_are_not_there(part: Contribution) -> None:
    with pytest.raises(FerruleError, match=r"contribution 'backends/part': there is no source .*none\.c"):
        _ = replace(part, sources=("none.c",)).files
    with pytest.raises(FerruleError, match=r"contribution 'backends/part': there is no include folder .*none"):
        _ = replace(part, include_dirs=("none",)).digest
