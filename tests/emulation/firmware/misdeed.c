/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that it is ready, then commits the misdeed named by the byte it receives. */
#include "guest.h"

#define NOWHERE   0x70000000u
#define SLOW_BASE 0x4F000000u

__attribute__((noinline)) static void spin(void)
{
    for (;;) {
        __asm volatile("nop");
    }
}

static void commit(uint8_t misdeed)
{
    switch (misdeed) {
    case 'r':
        (void)REGISTER(NOWHERE);
        break;
    case 'w':
        REGISTER(NOWHERE) = 0x1234;
        break;
    case 'i': /* a write within an IT block */
        __asm volatile("cmp %0, #0\n\titt ne\n\tstrne %0, [%0]\n\tmovne r3, #0\n\t" ::"r"(NOWHERE)
                       : "r3", "cc", "memory");
        break;
    case 'a': /* an unaligned address */
        __asm volatile("ldr r3, =0x20000001\n\tldrd r0, r1, [r3, #4]" ::
                           : "r0", "r1", "r3", "memory");
        break;
    case 'j':
        ((void (*)(void))(NOWHERE + 1u))();
        break;
    case 'e': /* an even address */
        __asm volatile("bx %0" ::"r"(0x100));
        break;
    case 'u':
        __asm volatile("udf #1");
        break;
    case 's':
        __asm volatile("svc #1");
        break;
    case 'b':
        __asm volatile("bkpt #1");
        break;
    case 'c': /* code is read-only */
        __asm volatile("str %0, [%0]" ::"r"(CODE_BASE + 0x40u) : "memory");
        break;
    case 'h':
        spin();
        break;
    case 'z':
        __asm volatile("wfi");
        break;
    case 't': /* a SysTick interrupt without a handler */
        REGISTER(0xE000E014u) = 1000;
        REGISTER(0xE000E018u) = 0;
        REGISTER(0xE000E010u) = 7;
        spin();
        break;
    case 'p': /* PendSV */
        REGISTER(0xE000ED04u) = 1u << 28;
        __asm volatile("dsb\n\tisb" ::: "memory");
        break;
    case 'q': /* resets the system */
        REGISTER(0xE000ED0Cu) = 0x05FA0004u;
        break;
    case 'v': /* waits for ever on a register modelled in Python */
        while (REGISTER(SLOW_BASE) == 0) {
        }
        break;
    case 'l': /* faults where no fault handler can run */
        __asm volatile("cpsid f" ::: "memory");
        (void)REGISTER(NOWHERE);
        break;
    case 'm': /* receives but cannot send */
        REGISTER(UART_BASE + 0x08u) = 2;
        put('x');
        break;
    default:
        break;
    }
}

int main(void)
{
    start_uart();
    put('!');
    for (;;) {
        commit(get());
        put('.');
    }
}
