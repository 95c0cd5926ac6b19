# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a firmware inside this process.

Its core has exceptions, interrupts, SysTick and sleep (`processor`), which the C hooks model; time is counted in
instructions. docs/emulation.md says what is modelled and what is not. Peripherals attach through `Guest.map_c`,
`Guest.map_python` or, with time and interrupts, `attachment.Attachment`.
"""
