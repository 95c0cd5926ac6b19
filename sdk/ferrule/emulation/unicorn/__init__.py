# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a firmware inside this process.

It has no interrupts, no SysTick and no MPU: a firmware that uses the first two is refused where it does. The FPU is on
whatever CPACR says, also on cores without one, so a missing start-up step shows on other engines only.
"""
