/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/port.h"
#include "ferrule/stack.h"

#define PAINT 0x5AC3F09Eu
#define WORD  ((uintptr_t)sizeof(uint32_t))

void ferrule_stack_paint(void)
{
    const uintptr_t end = ferrule_port_stack_pointer() & ~(WORD - 1u);
    /* volatile: a memset called here would paint over its own return address */
    for (uintptr_t word = ferrule_port_stack_limit(); word < end; word += WORD) {
        *(volatile uint32_t *)word = PAINT;
    }
}

void ferrule_stack_measure(uintptr_t from, struct ferrule_stack_use *use)
{
    const uintptr_t top = ferrule_port_stack_top();
    uintptr_t deepest = ferrule_port_stack_limit();
    use->size_bytes = (uint32_t)(top - deepest);
    while (deepest < from && *(const volatile uint32_t *)deepest == PAINT) {
        deepest += WORD;
    }
    use->peak_bytes = (uint32_t)(top - deepest);
    use->run_bytes = from > deepest ? (uint32_t)(from - deepest) : 0u;
}
