# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a firmware inside this process.

The C hooks model the core's exceptions, interrupts, SysTick and sleep (`processor`); time is counted in instructions.
docs/emulation.md describes what is modelled and what is not. Peripherals are attached with `Guest.map_c`,
`Guest.map_python` or, if they need time and interrupts, `attachment.Attachment`.
"""
