/* SPDX-License-Identifier: Apache-2.0 */
/* Ends with a fault, and with the configuration of the core in a register. */

#include <stdint.h>

#define SCB_CCR (*(volatile uint32_t *)0xE000ED14u)

int main(void)
{
    register uint32_t configuration __asm__("r4") = SCB_CCR;
    __asm__ volatile("udf #0" : : "r"(configuration));
    return 0;
}
