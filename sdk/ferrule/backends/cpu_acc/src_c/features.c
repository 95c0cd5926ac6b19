/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/cpu_acc/host.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#ifdef FERRULE_HOST_TILES
/* Linux, Documentation/arch/x86/xstate.rst: a process asks once, and then has the tiles. */
static bool has_permission(void)
{
    enum { ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    int64_t result = ARCH_PRCTL;

    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((int64_t)ARCH_REQ_XCOMP_PERM), "S"((int64_t)XFEATURE_XTILEDATA)
                     : "rcx", "r11", "memory");
    return result == 0;
}
#else
static bool has_permission(void)
{
    return false;
}
#endif

static uint64_t extended_state(void)
{
    uint32_t low;
    uint32_t high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

/* Bits from Intel's Software Developer's Manual, volume 2, CPUID, and volume 1, chapter 13. */
enum {
    LEAF1_C_FMA = 1 << 12,
    LEAF1_C_OSXSAVE = 1 << 27,
    LEAF7_B_AVX2 = 1 << 5,
    LEAF7_B_AVX512F = 1 << 16,
    LEAF7_B_AVX512DQ = 1 << 17,
    LEAF7_B_AVX512BW = 1 << 30,
    LEAF7_C_AVX512_VNNI = 1 << 11,
    STATE_YMM = 0x06,
    LEAF7_D_AMX = 3 << 24, /* tiles, and int8 */
    STATE_ZMM = 0xe6,
    STATE_TILES = 0x60000,
};
static const uint32_t LEAF7_B_AVX512VL = UINT32_C(1) << 31;

int32_t ferrule_host_features(void)
{
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    uint32_t leaf1_c;
    uint64_t state;
    uint32_t wide = LEAF7_B_AVX512F | LEAF7_B_AVX512DQ | LEAF7_B_AVX512BW | LEAF7_B_AVX512VL;
    int32_t features = 0;

    if (__get_cpuid(1, &a, &b, &leaf1_c, &d) == 0 || (leaf1_c & LEAF1_C_OSXSAVE) == 0 ||
        __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) {
        return 0;
    }
    state = extended_state();
    if ((state & STATE_YMM) == STATE_YMM && (b & LEAF7_B_AVX2) != 0 &&
        (leaf1_c & LEAF1_C_FMA) != 0) {
        features |= FERRULE_HOST_AVX2;
        if ((state & STATE_ZMM) == STATE_ZMM && (b & wide) == wide &&
            (c & LEAF7_C_AVX512_VNNI) != 0) {
            features |= FERRULE_HOST_AVX512_VNNI;
            if ((state & STATE_TILES) == STATE_TILES && (d & LEAF7_D_AMX) == LEAF7_D_AMX &&
                has_permission()) {
                features |= FERRULE_HOST_AMX;
            }
        }
    }
    return features;
}
#elif defined(__aarch64__)
int32_t ferrule_host_features(void)
{
    return FERRULE_HOST_NEON;
}
#else
int32_t ferrule_host_features(void)
{
    return 0;
}
#endif
