/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses at unaligned addresses: some instructions always fault, others never do. */
#include "misdeed.h"

#define UNALIGN_TRP (1u << 3)

static volatile uint32_t words[16] __attribute__((aligned(8)));
static volatile uint32_t pointer;

#define AT(offset) "r"((uint32_t)words + (offset))

/* Run an instruction with its base in r2, and note what r2 then holds. */
#define TRY(text, offset)                                                                          \
    do {                                                                                           \
        say(text "\n");                                                                            \
        MISDEED("mov r2, %0\n\t" text, AT(offset));                                                \
        note("memory", words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5]);           \
    } while (0)

/* As above, but the address comes from memory, so that nothing is known of it in advance. */
#define TRY_LOADED(text, offset)                                                                   \
    do {                                                                                           \
        say("loaded: " text "\n");                                                                 \
        pointer = (uint32_t)words + (offset);                                                      \
        MISDEED("mov r3, %0\n\tldr r2, [r3]\n\t" text, "r"(&pointer));                             \
    } while (0)

static void doubles(uint32_t offset)
{
    note("doubles", offset);
    TRY("ldrd r0, r1, [r2]", offset);
    TRY("ldrd r0, r1, [r2, #8]", offset);
    TRY("ldrd r0, r1, [r2], #8", offset);
    TRY("ldrd r0, r1, [r2, #8]!", offset);
    TRY("strd r4, r4, [r2]", offset);
    TRY("strd r4, r4, [r2, #4]", offset);
    TRY_LOADED("ldrd r0, r1, [r2]", offset);
    TRY_LOADED("strd r4, r4, [r2], #-4", offset);
}

static void multiples(uint32_t offset)
{
    note("multiples", offset);
    TRY("ldmia r2, {r0, r1, r5}", offset);
    TRY("ldmia r2!, {r0, r1, r5}", offset);
    TRY("ldmia r2!, {r0, r12}", offset);
    TRY("ldmdb r2!, {r0, r12}", offset + 8);
    TRY("stmia r2!, {r4, r5}", offset);
    TRY("stmia r2, {r4, r12}", offset);
    TRY("stmdb r2!, {r4, r12}", offset + 8);
    TRY_LOADED("ldmia r2, {r0, r1, r2}", offset);
    TRY_LOADED("stmia r2!, {r4, r5}", offset);
}

static void exclusives(uint32_t offset)
{
    note("exclusives", offset);
    TRY("ldrex r0, [r2]", offset);
    TRY("ldrexh r0, [r2]", offset);
    TRY("ldrexb r0, [r2]", offset);
#if __ARM_ARCH >= 8
    TRY("lda r0, [r2]", offset);
    TRY("ldah r0, [r2]", offset);
    TRY("ldab r0, [r2]", offset);
    TRY("stl r4, [r2]", offset);
    TRY("stlh r4, [r2]", offset);
    TRY("stlb r4, [r2]", offset);
    TRY("ldaex r0, [r2]", offset);
    TRY_LOADED("lda r0, [r2]", offset);
    TRY_LOADED("stlh r4, [r2]", offset);
#endif
}

static void floats(uint32_t offset)
{
#ifdef __ARM_FP
    note("floats", offset);
    TRY("vldr s0, [r2]", offset);
    TRY("vldr d0, [r2, #8]", offset);
    TRY("vstr s0, [r2, #4]", offset);
    TRY("vldmia r2!, {s0-s3}", offset);
    TRY("vldmdb r2!, {d0}", offset + 8);
    TRY("vstmia r2!, {s0-s3}", offset);
    TRY_LOADED("vldr s0, [r2]", offset);
    TRY_LOADED("vstmia r2, {d0-d1}", offset);
#else
    (void)offset;
#endif
}

/* These accept every address. */
static void singles(uint32_t offset)
{
    note("singles", offset);
    TRY("ldr r0, [r2]", offset);
    TRY("ldr r0, [r2, #4]!", offset);
    TRY("ldrh r0, [r2]", offset);
    TRY("ldrsh r0, [r2], #2", offset);
    TRY("str r4, [r2]", offset);
    TRY("strh r4, [r2, #2]", offset);
    TRY("mov r3, sp\n\tpush {r2, r4}\n\tpop {r0, r1}\n\tmov sp, r3", offset);
}

static void conditionals(uint32_t offset)
{
    note("conditionals", offset);
    TRY("cmp r2, #0\n\titt ne\n\tmovne r0, #1\n\tldrdne r0, r1, [r2]", offset);
    TRY("cmp r2, #0\n\titt eq\n\tmoveq r0, #1\n\tldrdeq r0, r1, [r2]", offset);
    TRY("cmp r2, #0\n\tite eq\n\tmoveq r2, r4\n\tldmne r2, {r0, r1}", offset);
    TRY("cmp r2, #0\n\tit eq\n\tmoveq r2, sp\n\tldm r2, {r0, r1}", offset);
}

/* Those that accept every address fault, too, while CCR.UNALIGN_TRP is set. */
static void trapped(uint32_t offset)
{
    CCR |= UNALIGN_TRP;
    barrier();
    singles(offset);
    TRY("ldrb r0, [r2]", offset);
    TRY("ldr r0, [r2, #4]", offset);
    TRY("ldr r0, [r2, #2]", offset);
    TRY("ldr r0, [r2, #-4]", offset + 4);
    TRY("ldrh r0, [r2, #6]", offset);
    TRY("strh r4, [r2], #3", offset);
    TRY("mov r3, #1\n\tldr r0, [r2, r3]", offset);
    TRY("mov r3, #1\n\tldrh r0, [r2, r3]", offset);
    TRY("mov r3, #1\n\tldrsb r0, [r2, r3]", offset);
    TRY("mov r3, #1\n\tstr r4, [r2, r3, lsl #2]", offset);
    TRY("mov r3, #1\n\tldrh r0, [r2, r3, lsl #1]", offset);
    TRY("ldr r0, [sp, #2]", offset);
    TRY("ldr r0, [sp, #4]", offset);
    TRY("cmp r2, #0\n\tite ne\n\tldrne r0, [r2]\n\tldreq r0, [r2, #2]", offset);
    TRY("pld [r2, #1]", offset);
    CCR &= ~UNALIGN_TRP;
    barrier();
    singles(offset);
}

/* The base is aligned in the first rounds of a loop only. */
static void loops(void)
{
    say("loops\n");
    TRY("mov r3, #0\n\tb 2f\n\t2: ldrd r0, r1, [r2], #8\n\tadd r3, #1\n\tcmp r3, #3\n\t"
        "it eq\n\taddeq r2, #1\n\tcmp r3, #5\n\tblo 2b",
        0);
    TRY("mov r3, #0\n\tb 2f\n\t2: mov r5, r2\n\tadds r5, #4\n\tldmia r5!, {r0, r1}\n\tadds r2, "
        "r3\n\t"
        "adds r3, #2\n\tcmp r3, #6\n\tblo 2b",
        0);
    TRY("mov r3, #0\n\tb 2f\n\t2: ldrd r0, r1, [r2]\n\tb 3f\n\t3: adds r3, #1\n\tcmp r3, #4\n\tbhs "
        "4f\n\t"
        "cmp r3, #2\n\tbne 2b\n\tb 5f\n\t5: adds r2, #2\n\tb 2b\n\t4: nop",
        0);
}

int main(void)
{
    begin();
    handle(HARD_FAULT, fault);
    handle(USAGE_FAULT, fault);
    SHCSR = 7u << 16;
    for (uint32_t i = 0; i < 16; ++i) {
        words[i] = (uint32_t)words + 4 * i;
    }
    for (uint32_t offset = 0; offset < 4; ++offset) {
        doubles(offset);
        multiples(offset);
        exclusives(offset);
        floats(offset);
        singles(offset);
        conditionals(offset);
        trapped(offset);
    }
    loops();
    say("end\n");
    end();
}
