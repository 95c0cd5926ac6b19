/* SPDX-License-Identifier: Apache-2.0 */
/* Where the engine unicorn differs from a core; each line is the name of a deviation, followed by
 * the fault or the value that results. */
#include "misdeed.h"

#define CPACR    REGISTER(0xE000ED88u)
#define MPU_CTRL REGISTER(0xE000ED94u)
#define MPU_RNR  REGISTER(0xE000ED98u)
#define MPU_RBAR REGISTER(0xE000ED9Cu)
#define MPU_RASR REGISTER(0xE000EDA0u)

#define DIV_0_TRP (1u << 4)

static volatile uint32_t words[16] __attribute__((aligned(32)));

static void protection(void)
{
    say("mpu\n");
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)words;
    MPU_RASR = 4u << 1 | 1u; /* 32 bytes without any access */
    MPU_CTRL = 5;
    barrier();
    MISDEED("ldr r0, [%0]", "r"(words));
    MPU_CTRL = 0;
    barrier();
}

static void float_unit(void)
{
#ifdef __ARM_FP
    say("fpu\n");
    CPACR = 0;
    barrier();
    MISDEED("vmov s0, %0", "r"(0));
    CPACR = 0xFu << 20;
    barrier();
#endif
}

static void division(void)
{
    say("div_0_trp\n");
    CCR |= DIV_0_TRP;
    barrier();
    MISDEED("mov r0, #0\n\tudiv r0, %0, r0", "r"(1));
    CCR &= ~DIV_0_TRP;
    barrier();
}

/* A core ignores writes to the two low bits of SP. */
static void stack_pointer(void)
{
    uint32_t found;
    say("sp\n");
    __asm volatile("mov r2, sp\n\torr r3, r2, #3\n\tmov sp, r3\n\tmov %0, sp\n\tmov sp, r2"
                   : "=r"(found)
                   :
                   : "r2", "r3", "memory");
    note("low bits", found % 4);
}

static void exclusive(void)
{
    uint32_t failed;
    say("exclusive\n");
    __asm volatile("ldrex r0, [%0]" ::"r"(words) : "r0", "memory");
    MISDEED("svc #0", "r"(0)); /* an exception clears the monitor */
    __asm volatile("ldr r0, [%1]\n\tstrex %0, r0, [%1]"
                   : "=&r"(failed)
                   : "r"(words)
                   : "r0", "memory");
    note("failed", failed);
}

static void call(void)
{
}

int main(void)
{
    begin();
    handle(HARD_FAULT, fault);
    handle(MEM_MANAGE, fault);
    handle(USAGE_FAULT, fault);
    handle(SVCALL, call);
    SHCSR = 7u << 16;
    protection();
    float_unit();
    division();
    stack_pointer();
    exclusive();
    say("end\n");
    end();
}
