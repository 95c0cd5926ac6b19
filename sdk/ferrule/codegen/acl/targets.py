# SPDX-License-Identifier: Apache-2.0
"""The two sides of the Arm Compute Library: OpenCL on Arm GPUs and NEON on Arm processors, and the names in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.dom import Call, ClassType, Evaluate, Expression, Member, QualifiedName, Statement
from ferrule.errors import unknown_name

NAMESPACE = "arm_compute"


def acl(name: str, *arguments: ClassType) -> ClassType:
    """Return a class of the library."""
    return ClassType(name, (NAMESPACE,), arguments)


def acl_name(*path: str) -> QualifiedName:
    """Return a name in the library, such as an enumerator of an enumeration."""
    return QualifiedName((NAMESPACE, *path[:-1]), path[-1])


def method(object_: Expression, name: str, *arguments: Expression) -> Call:
    """Return the call of a method."""
    return Call(Member(object_, name), arguments)


@frozen
class AclTarget:
    """One side of the library. Its functions have the same arguments on both sides, and other names."""

    name: str
    """The value of `--target`."""
    title: str
    prefix: str
    """What the names of functions begin with."""
    tensor: ClassType
    """The class of tensors that own their memory."""
    tensor_base: ClassType
    """The class of tensors in the arguments of functions."""
    scheduler: str
    headers: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of functions, without prefix, that differ from those of the OpenCL side."""
    mapped: bool
    """Whether the processor can access a tensor only between map() and unmap(), and runs end with a sync()."""

    def function(self, kind: str) -> ClassType:
        """Return the class of a function, given its name without prefix, such as "ConvolutionLayer"."""
        return acl(f"{self.prefix}{self.names.get(kind, kind)}")

    def mapped_access(self, tensor: Expression, access: Statement) -> tuple[Statement, ...]:
        """Return the access of the processor to a tensor, mapped if the target needs that."""
        if not self.mapped:
            return (access,)
        return (Evaluate(method(tensor, "map")), access, Evaluate(method(tensor, "unmap")))

    def finish(self) -> tuple[Statement, ...]:
        """Return the statements at the end of an inference, which wait for all functions."""
        if not self.mapped:
            return ()
        return (Evaluate(method(Call(acl_name(self.scheduler, "get")), "sync")),)


TARGETS: Mapping[str, AclTarget] = {
    target.name: target
    for target in (
        AclTarget(
            name="arm-gpu-c++",
            title="Arm GPUs, by OpenCL",
            prefix="CL",
            tensor=acl("CLTensor"),
            tensor_base=acl("ICLTensor"),
            scheduler="CLScheduler",
            headers=(
                "arm_compute/runtime/CL/CLFunctions.h",
                "arm_compute/runtime/CL/CLScheduler.h",
                "arm_compute/runtime/CL/CLTensor.h",
            ),
            mapped=True,
        ),
        AclTarget(
            name="arm-cpu-c++",
            title="Arm processors, by NEON",
            prefix="NE",
            tensor=acl("Tensor"),
            tensor_base=acl("ITensor"),
            scheduler="NEScheduler",
            headers=(
                "arm_compute/runtime/NEON/NEFunctions.h",
                "arm_compute/runtime/NEON/NEScheduler.h",
                "arm_compute/runtime/Tensor.h",
            ),
            names={"ArithmeticDivision": "ElementwiseDivision"},
            mapped=False,
        ),
    )
}


def acl_target(name: str) -> AclTarget:
    """Return a target by its name.

    Raises:
        FerruleError: there is no target of that name.
    """
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    return TARGETS[name]
