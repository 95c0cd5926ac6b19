/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the hooks of the ownership check in a random order, with all accesses that unicorn and the
 * devices can make. The tables are blocks of their own size, so that the sanitizers find an access
 * beyond one of them. Argument 1 is the seed; argument 2, if there is one, makes an access that the
 * address sanitizer must find.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "ownership.h"

enum {
    PADDING = 8, /* as in ferrule/emulation/unicorn/ownership.py */
    REGIONS = 2,
    REGION_BYTES = 1024,
    BUFFERS = 6,
    STEPS = 4,
    DEVICES = 3,
    CALLS = 200000,
    RUN = 0x100,
    NEXT = 0x200,
    RAN = 0x300,
    ON_OPERATOR = 0x400,
    RETURNS = 0x500,
    FINISH = 0x700,
    FINISHED = 0x800,
};

static const uint32_t addresses[REGIONS] = {0x20000000u, 0x20000400u};
static struct ferrule_guest guest;
static bool caches;
static struct ferrule_ownership ownership;
static uint32_t registers[FERRULE_REGISTERS];
static uint32_t state;
static uint64_t violations[16];

bool ferrule_core_caches(const struct ferrule_core *core)
{
    (void)core;
    return caches;
}

static uint32_t dice(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % sides;
}

static void *must_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);

    if (memory == NULL) {
        exit(2);
    }
    return memory;
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* ---- what the hooks call */

uint32_t ferrule_guest_read(struct ferrule_guest *self, enum ferrule_register which)
{
    (void)self;
    return registers[which];
}

bool ferrule_guest_load(struct ferrule_guest *self, uint32_t address, uint32_t *value)
{
    (void)self;
    (void)address;
    if (dice(4) == 0) {
        return false;
    }
    *value = dice(2) * (ON_OPERATOR | 1u);
    return true;
}

void ferrule_guest_stop(struct ferrule_guest *self, enum ferrule_guest_stop reason)
{
    self->stop = reason;
}

/* ---- the tables */

static void watch(uint32_t index)
{
    struct ferrule_owned_region *region = &ownership.regions[index];

    region->address = addresses[index];
    region->bytes = REGION_BYTES;
    region->data = must_allocate(REGION_BYTES);
    region->holder = must_allocate((REGION_BYTES + PADDING) * sizeof(uint16_t));
    region->target = must_allocate((REGION_BYTES + PADDING) * sizeof(uint16_t));
    for (uint32_t at = 0; at < REGION_BYTES + PADDING; ++at) {
        bool inside = at < REGION_BYTES - (index == 0 ? 0u : 100u);

        region->holder[at] = inside ? FERRULE_HOLDER_NOTHING : FERRULE_HOLDER_OUTSIDE;
        region->target[at] = region->holder[at];
    }
    if (index > 0) {
        region->cached = must_allocate(REGION_BYTES + PADDING);
        region->line_bytes = 32;
    }
    region->ownership = &ownership;
}

static void prepare(bool has_devices)
{
    static const struct ferrule_owned_buffer places[BUFFERS] = {
        {.address = 0x20000000u, .bytes = 64, .last = 0, .input = 1},
        {.address = 0x20000040u, .bytes = 46, .last = 3},
        {.address = 0x200003F0u, .bytes = 32, .last = 2}, /* in both regions */
        {.address = 0x20000500u, .bytes = 1, .last = 1},
        {.address = 0x20000720u, .bytes = 124, .last = 4}, /* to the workspace's last byte */
        {.address = 0x20000000u, .bytes = 60, .last = 3},
    };
    static const struct ferrule_owned_use each[] = {
        {3, FERRULE_ROLE_READS},  {4, FERRULE_ROLE_WRITES},
        {4, FERRULE_ROLE_READS},  {5, FERRULE_ROLE_WRITES},
        {6, FERRULE_ROLE_WRITES}, {5, FERRULE_ROLE_READS | FERRULE_ROLE_REPLACES},
        {8, FERRULE_ROLE_WRITES}, {4, FERRULE_ROLE_READS},
        {7, FERRULE_ROLE_WRITES},
    };
    static const uint32_t first[STEPS + 1] = {0, 2, 5, 7, 9};
    static const int32_t devices[STEPS] = {FERRULE_OWNED_CORE, 0, 2, FERRULE_OWNED_CORE};
    static const uint8_t begins[STEPS] = {0, 1, 1, 0};
    struct ferrule_owned_buffer *buffers = must_allocate(sizeof places);
    struct ferrule_owned_use *uses = must_allocate(sizeof each);
    uint32_t *first_use = must_allocate(sizeof first);
    int32_t *device = must_allocate(sizeof devices);
    uint8_t *begun = must_allocate(sizeof begins);

    memcpy(buffers, places, sizeof places);
    memcpy(uses, each, sizeof each);
    memcpy(first_use, first, sizeof first);
    memcpy(device, devices, sizeof devices);
    memcpy(begun, begins, has_devices ? sizeof begins : 0);
    ownership.buffers = buffers;
    ownership.uses = uses;
    ownership.first_use = first_use;
    ownership.device = device;
    ownership.begun = begun;
    ownership.flying = must_allocate(STEPS * sizeof(uint32_t));
    ownership.flying_roles = must_allocate(FERRULE_HOLDER_BUFFERS + BUFFERS);
    ownership.roles = must_allocate(FERRULE_HOLDER_BUFFERS + BUFFERS);
    ownership.buffer_count = FERRULE_HOLDER_BUFFERS + BUFFERS;
    ownership.step_count = STEPS;
    ownership.run = RUN;
    ownership.info_argument = 3; /* of ferrule_<model>_run() */
    ownership.next = has_devices ? NEXT : 0;
    ownership.ran = has_devices ? RAN : 0;
    ownership.finish = has_devices ? FINISH : 0;
    ownership.region_count = REGIONS;
    for (uint32_t i = 0; i < REGIONS; ++i) {
        watch(i);
    }
    ferrule_ownership_start(&ownership, &guest);
}

/* ---- the calls */

/* Forgets a violation, as the next session does; so each kind is reached often. */
static void note_violation(void)
{
    const struct ferrule_violated *found = &ownership.violated;

    if (found->violation == FERRULE_ALLOWED) {
        return;
    }
    expect(found->violation <= FERRULE_SHARES_LINE, "a violation is one of the list");
    expect(found->holder < ownership.buffer_count, "a violation has a holder");
    expect(found->actor >= FERRULE_OWNED_CORE && found->actor < DEVICES, "it has an actor");
    ++violations[found->violation];
    memset(&ownership.violated, 0, sizeof ownership.violated);
    guest.stop = FERRULE_GUEST_RUNS;
}

static void block(void)
{
    static const uint32_t starts[] = {RUN,     NEXT,   NEXT,     NEXT,  RAN, ON_OPERATOR,
                                      RETURNS, FINISH, FINISHED, 0x600, 0};

    registers[FERRULE_R1] = dice(STEPS + 2);
    registers[FERRULE_R3] = dice(2) * 0x1000u;
    const uint32_t start = starts[dice(sizeof starts / sizeof starts[0])];

    registers[FERRULE_R2] = dice(STEPS + 1);
    registers[FERRULE_LR] = (start == FINISH ? FINISHED : RETURNS) | 1u;
    ferrule_ownership_on_block(&ownership, start);
    expect(ownership.flying_count <= STEPS, "a step flies once");
}

/* unicorn makes accesses of 1, 2, 4 and 8 bytes, all of them aligned. */
static void access(void)
{
    struct ferrule_owned_region *region = &ownership.regions[dice(REGIONS)];
    const uint32_t bytes = 1u << dice(4);
    const uint64_t offset = dice(REGION_BYTES / bytes) * bytes;
    const uint64_t value = (uint64_t)dice(1u << 24) << 32 | dice(1u << 24);

    if (ownership.exact != 0) {
        const uint32_t before = dice(4);
        const uint32_t address = (uint32_t)(region->address + offset) - before;

        (void)ferrule_ownership_notes(&ownership, address, bytes, 0);
    }
    if (dice(2) == 0) {
        uint64_t stored = 0;

        memcpy(&stored, region->data + offset, bytes);
        expect(ferrule_ownership_read(NULL, offset, bytes, region) == stored,
               "a read is unchanged");
        return;
    }
    ferrule_ownership_write(NULL, offset, bytes, value, region);
    expect(memcmp(region->data + offset, &value, bytes) == 0, "a write arrives");
}

static void transfer(void)
{
    const uint32_t address = addresses[0] - 64u + dice(REGIONS * REGION_BYTES + 128u);

    ownership.busy = dice(1u << DEVICES);
    (void)ferrule_ownership_transfer(&ownership, (int32_t)dice(DEVICES), address, dice(96),
                                     dice(2));
}

static void maintain(void)
{
    const uint32_t value = addresses[0] - 64u + dice(REGIONS * REGION_BYTES + 128u);

    caches = dice(8) != 0;
    ferrule_ownership_maintain(&ownership, dice(2 * FERRULE_CACHE_ALL), value);
    (void)ferrule_ownership_models_cache(&ownership);
    (void)ferrule_ownership_notes(NULL, value, 1, 0);
}

int main(int count, char **arguments)
{
    expect(count >= 2, "the first argument is the seed");
    state = (uint32_t)strtoul(arguments[1], NULL, 10);
    ownership.exact = state % 4 / 2;
    prepare(state % 2 == 0);
    for (uint32_t i = 0; i < CALLS; ++i) {
        switch (dice(16)) {
        case 0:
            block();
            break;
        case 1:
            transfer();
            break;
        case 2:
            maintain();
            break;
        default:
            access();
            break;
        }
        note_violation();
    }
    if (count > 2) {
        (void)ferrule_ownership_read(NULL, REGION_BYTES, 8, &ownership.regions[0]);
    }
    for (uint32_t i = FERRULE_READS_NOTHING; i <= FERRULE_SHARES_LINE; ++i) {
        (void)printf("%u %llu\n", i, (unsigned long long)violations[i]);
    }
    (void)printf("inferences %llu\n", (unsigned long long)ownership.inferences);
    return 0;
}
