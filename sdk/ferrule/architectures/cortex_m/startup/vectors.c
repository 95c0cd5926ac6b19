/* SPDX-License-Identifier: Apache-2.0 */
/* Vector table of an Armv7-M or Armv8-M mainline core (Armv7-M ARM, B1.5.2): stack, reset and the
 * system exceptions. */

#include "startup.h"

__attribute__((weak)) void ferrule_svcall_handler(void)
{
    ferrule_fault_entry();
}

__attribute__((weak)) void ferrule_pendsv_handler(void)
{
    ferrule_fault_entry();
}

__attribute__((weak)) void ferrule_systick_handler(void)
{
    ferrule_fault_entry();
}

__attribute__((section(".ferrule_vectors"), used)) const union vector ferrule_vectors[16] = {
    {.stack = ferrule_stack_top},         {.handler = ferrule_reset},
    {.handler = ferrule_fault_entry}, /* NMI */
    {.handler = ferrule_fault_entry}, /* HardFault */
    {.handler = ferrule_fault_entry}, /* MemManage */
    {.handler = ferrule_fault_entry}, /* BusFault */
    {.handler = ferrule_fault_entry}, /* UsageFault */
    {.handler = ferrule_fault_entry}, /* SecureFault (Armv8-M) */
    {.handler = ferrule_fault_entry},     {.handler = ferrule_fault_entry},
    {.handler = ferrule_fault_entry},     {.handler = ferrule_svcall_handler},
    {.handler = ferrule_fault_entry}, /* DebugMonitor */
    {.handler = ferrule_fault_entry},     {.handler = ferrule_pendsv_handler},
    {.handler = ferrule_systick_handler},
};
