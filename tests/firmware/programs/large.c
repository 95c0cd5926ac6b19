/* SPDX-License-Identifier: Apache-2.0 */
/* Occupies as many bytes of each kind of memory as the macros state. */

#include <stdint.h>

#include "ferrule/section.h"

int main(void);
extern const uint8_t test_weights[TEST_WEIGHTS];
extern uint8_t test_workspace[TEST_WORKSPACE];
extern uint8_t test_bss[TEST_BSS];
extern uint8_t test_data[TEST_DATA];

FERRULE_WEIGHTS const uint8_t test_weights[TEST_WEIGHTS] = {1};
FERRULE_WORKSPACE uint8_t test_workspace[TEST_WORKSPACE];
uint8_t test_bss[TEST_BSS];
uint8_t test_data[TEST_DATA] = {1};

static const volatile void *volatile sink;

int main(void)
{
    sink = test_weights;
    sink = test_workspace;
    sink = test_bss;
    sink = test_data;
    return 0;
}
