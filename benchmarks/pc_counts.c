// SPDX-License-Identifier: Apache-2.0
// A plugin of QEMU: how often each instruction of a function and of what it calls is executed, and
// how often the next one was not the following one. It appends a block of lines to a file whenever
// the function returns:
//
//     run <instructions>
//     <address> <bytes> <executed> <jumps>
//
// Arguments: begin=ADDRESS of the function, out=FILE. QEMU's interface is declared here, so that no
// header is needed.
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT    __attribute__((visibility("default")))
#define SLOTS     (1U << 22) /* halfwords of code */
#define DEPTH     256U
#define CODE_MASK 0x7FFFFFU /* of an address, in bytes */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t,
                                                            struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
                                            void (*callback)(unsigned int, void *),
                                            enum qemu_plugin_cb_flags flags, void *context);
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv);
EXPORT int qemu_plugin_version = 1;

struct slot {
    uint32_t address;
    uint32_t size;
    uint64_t executed;
    uint64_t jumps;
    bool calls;
};

static struct slot slots[SLOTS];
static struct slot *last;
static FILE *out;
static uint32_t begin;
static uint32_t end;
static uint32_t returns[DEPTH]; /* the addresses to which the calls under way return */
static uint32_t depth;
static bool counting;
static uint64_t total;

static void write_counts(void)
{
    (void)fprintf(out, "run %" PRIu64 "\n", total);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (slot->executed > 0) {
            (void)fprintf(out, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", slot->address,
                          slot->size, slot->executed, slot->jumps);
            slot->executed = 0;
            slot->jumps = 0;
        }
    }
    (void)fflush(out);
    total = 0;
}

static void on_instruction(unsigned int cpu, void *context)
{
    struct slot *slot = context;
    (void)cpu;
    if (counting && slot->address == end) {
        counting = false;
        write_counts();
    }
    if (!counting && slot->address == begin && depth > 0) {
        counting = true;
        end = returns[depth - 1];
    } else if (counting && last != NULL && last->address + last->size != slot->address) {
        last->jumps++;
    }
    if (depth > 0 && slot->address == returns[depth - 1]) {
        depth--;
    }
    if (slot->calls && depth < DEPTH) {
        returns[depth++] = slot->address + slot->size;
    }
    if (counting) {
        slot->executed++;
        total++;
    }
    last = slot;
}

static bool is_call(const uint8_t *code, uint32_t size)
{
    uint32_t first = code[0] | (uint32_t)code[1] << 8;
    if (size == 2) {
        return (first & 0xFF80U) == 0x4780U; /* BLX register */
    }
    uint32_t second = code[2] | (uint32_t)code[3] << 8;
    return (first & 0xF800U) == 0xF000U && (second & 0xD000U) == 0xD000U; /* BL */
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint32_t address = (uint32_t)qemu_plugin_insn_vaddr(instruction);
        struct slot *slot = &slots[(address & CODE_MASK) >> 1];
        slot->address = address;
        slot->size = (uint32_t)qemu_plugin_insn_size(instruction);
        slot->calls = is_call(qemu_plugin_insn_data(instruction), slot->size);
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_instruction, QEMU_PLUGIN_CB_NO_REGS,
                                               slot);
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                               char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) {
            begin = (uint32_t)strtoul(argv[i] + 6, NULL, 0);
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            out = fopen(argv[i] + 4, "w");
        }
    }
    if (out == NULL) {
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    return 0;
}
