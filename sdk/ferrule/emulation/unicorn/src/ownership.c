/* SPDX-License-Identifier: Apache-2.0 */
#include "ownership.h"

#include <stddef.h>
#include <string.h>

#include "core.h"
#include "owned_layers.h"

#define NO_HOLDERS  UINT64_MAX /* equal to no holders of an access */
#define STALE_BYTES 0x0202020202020202u
#define DIRTY_BYTES 0x0101010101010101u
#define PAGE_BYTES  1024u

uint64_t ferrule_ownership_bytes(void)
{
    return sizeof(struct ferrule_ownership);
}

static void forget(struct ferrule_ownership *ownership)
{
    for (uint32_t i = 0; i < sizeof ownership->accepted / sizeof ownership->accepted[0]; ++i) {
        ownership->accepted[i] = NO_HOLDERS;
        ownership->granted[i][0] = NO_HOLDERS;
    }
}

/* Whether the device that runs the layer is at work. */
static bool is_busy(const struct ferrule_ownership *ownership)
{
    const int32_t device =
        ownership->step < 0 ? FERRULE_OWNED_CORE : ownership->device[ownership->step];
    return device >= 0 && (ownership->busy >> device & 1u) != 0;
}

/* Whether the data cache is on. */
static bool is_on(const struct ferrule_ownership *ownership)
{
    return ferrule_core_caches(ownership->guest->core);
}

static struct ferrule_owned_region *region_of(struct ferrule_ownership *ownership, uint32_t address)
{
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        struct ferrule_owned_region *region = &ownership->regions[i];
        if (address - region->address < region->bytes && address >= region->address) {
            return region;
        }
    }
    return NULL;
}

/* Sets the target of a range's bytes that belong to the workspace. */
static void aim(struct ferrule_ownership *ownership, uint32_t address, uint32_t bytes,
                uint16_t target)
{
    const uint64_t end = (uint64_t)address + bytes;
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        struct ferrule_owned_region *region = &ownership->regions[i];
        uint64_t at = address > region->address ? address - region->address : 0;
        for (; at < region->bytes && region->address + at < end; ++at) {
            if (region->holder[at] != FERRULE_HOLDER_OUTSIDE) {
                region->target[at] = target;
            }
        }
    }
}

static void aim_at_all(struct ferrule_ownership *ownership, uint16_t target)
{
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        const struct ferrule_owned_region *region = &ownership->regions[i];
        aim(ownership, (uint32_t)region->address, (uint32_t)region->bytes, target);
    }
}

/* Whether a byte's value is needed after the running layer has started to write its outputs. */
static bool is_needed(const struct ferrule_ownership *ownership, uint32_t holder)
{
    return ferrule_owned_is_needed(ownership, ownership->step, ownership->roles[holder], holder);
}

/* Applies the uses of the step, or takes them back. */
static void use(struct ferrule_ownership *ownership, bool applies)
{
    const uint32_t step = (uint32_t)ownership->step;
    for (uint32_t i = ownership->first_use[step]; i < ownership->first_use[step + 1]; ++i) {
        const struct ferrule_owned_use *each = &ownership->uses[i];
        const struct ferrule_owned_buffer *buffer =
            ferrule_owned_buffer_of(ownership, each->buffer);
        ownership->roles[each->buffer] = applies ? (uint8_t)each->roles : 0;
        if ((each->roles & FERRULE_ROLE_WRITES) != 0) {
            aim(ownership, buffer->address, buffer->bytes, applies ? (uint16_t)each->buffer : 0);
        }
    }
}

static void set_roles(struct ferrule_ownership *ownership, uint8_t roles)
{
    memset(ownership->roles, roles, ownership->buffer_count);
    ownership->roles[FERRULE_HOLDER_OUTSIDE] = FERRULE_ROLE_READS;
    ownership->roles[FERRULE_HOLDER_UNKNOWN] = FERRULE_ROLE_READS;
}

/* Begins a layer, or the time without an inference, or an inference whose layers are unknown. */
static void enter(struct ferrule_ownership *ownership, int32_t step)
{
    const int32_t before = ownership->step;
    ferrule_owned_fly(ownership);
    if (before >= 0) {
        use(ownership, false);
    }
    ownership->step = step;
    ownership->ended = 0;
    ownership->finishing = 0;
    ownership->flying_count = step < 0 ? 0 : ownership->flying_count;
    ferrule_owned_set_flying_roles(ownership);
    forget(ownership);
    if (step >= 0) {
        if (before < 0) {
            set_roles(ownership, 0);
            aim_at_all(ownership, FERRULE_HOLDER_NOTHING);
        }
        use(ownership, true);
        return;
    }
    set_roles(ownership, FERRULE_ROLE_READS);
    if (step == FERRULE_STEP_UNKNOWN) { /* what no layer has written, no layer may read */
        ownership->roles[FERRULE_HOLDER_NOTHING] = 0;
    }
    aim_at_all(ownership, FERRULE_HOLDER_UNKNOWN);
    for (uint32_t i = FERRULE_HOLDER_BUFFERS;
         step == FERRULE_STEP_IDLE && i < ownership->buffer_count; ++i) {
        const struct ferrule_owned_buffer *buffer = ferrule_owned_buffer_of(ownership, i);
        if (buffer->input != 0) {
            aim(ownership, buffer->address, buffer->bytes, (uint16_t)i);
        }
    }
}

/* Marks all inputs as written, for a caller that wrote none: it runs on what is there. */
static void accept_inputs(struct ferrule_ownership *ownership)
{
    for (uint32_t i = FERRULE_HOLDER_BUFFERS; i < ownership->buffer_count; ++i) {
        const struct ferrule_owned_buffer *buffer = ferrule_owned_buffer_of(ownership, i);
        const bool is_given = buffer->input == FERRULE_INPUT_CALLER;
        for (uint32_t at = 0; is_given && at < buffer->bytes; ++at) {
            struct ferrule_owned_region *region = region_of(ownership, buffer->address + at);
            if (region != NULL) {
                region->holder[buffer->address + at - region->address] = (uint16_t)i;
            }
        }
    }
}

/* Gives the buffers that are kept the values that the last inference has left in their places. */
static void keep(struct ferrule_ownership *ownership)
{
    for (uint32_t i = FERRULE_HOLDER_BUFFERS; i < ownership->buffer_count; ++i) {
        const struct ferrule_owned_buffer *kept = ferrule_owned_buffer_of(ownership, i);
        for (uint32_t at = 0; kept->input == FERRULE_INPUT_KEPT && at < kept->bytes; ++at) {
            struct ferrule_owned_region *region = region_of(ownership, kept->address + at);
            if (region == NULL) {
                continue;
            }
            uint16_t *holder = &region->holder[kept->address + at - region->address];
            const struct ferrule_owned_buffer *left = ferrule_owned_buffer_of(ownership, *holder);
            if (*holder == FERRULE_HOLDER_UNKNOWN || (left != NULL && left->becomes == i)) {
                *holder = (uint16_t)i;
            }
        }
    }
}

/* Keeps only the values of the inputs; those of the last inference are gone. */
static void discard(struct ferrule_ownership *ownership)
{
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        struct ferrule_owned_region *region = &ownership->regions[i];
        for (uint64_t at = 0; at < region->bytes; ++at) {
            const struct ferrule_owned_buffer *buffer =
                ferrule_owned_buffer_of(ownership, region->holder[at]);
            if (region->holder[at] != FERRULE_HOLDER_OUTSIDE &&
                (buffer == NULL || buffer->input == 0)) {
                region->holder[at] = FERRULE_HOLDER_NOTHING;
            }
        }
    }
}

void ferrule_ownership_start(struct ferrule_ownership *ownership, struct ferrule_guest *guest)
{
    ownership->guest = guest;
    ownership->step = FERRULE_STEP_UNKNOWN;
    guest->ownership = ownership;
    enter(ownership, FERRULE_STEP_IDLE);
}

static void begin(struct ferrule_ownership *ownership)
{
    struct ferrule_guest *guest = ownership->guest;
    const uint32_t info = ferrule_guest_read(guest, FERRULE_ARGUMENT + ownership->info_argument);
    ownership->returns = ferrule_guest_read(guest, FERRULE_LINK) & ~1u;
    ownership->stack = ferrule_guest_read(guest, FERRULE_SP);
    ownership->on_operator = 0;
    if (ownership->next == 0 && info != 0) {
        (void)ferrule_guest_load(guest, info + 4u, &ownership->on_operator); /* 0 if it fails */
        ownership->on_operator &= ~1u;
    }
    keep(ownership);
    discard(ownership);
    if (ownership->given == 0) {
        accept_inputs(ownership);
    }
    ownership->given = 0;
    enter(ownership, FERRULE_STEP_UNKNOWN);
}

bool ferrule_ownership_notes(struct ferrule_ownership *ownership, uint32_t address, uint32_t bytes,
                             uint32_t program_counter)
{
    if (ownership == NULL || region_of(ownership, address) == NULL) {
        return false;
    }
    ownership->program_counter = program_counter;
    ownership->asked = address;
    ownership->asked_bytes = bytes;
    return true;
}

static struct ferrule_violated describe(const struct ferrule_ownership *ownership,
                                        enum ferrule_violation violation, int32_t actor,
                                        uint32_t write, uint64_t address, uint32_t holder,
                                        uint32_t target)
{
    const uint32_t block = ownership->guest->block_address;
    return (struct ferrule_violated){
        .violation = violation,
        .actor = actor,
        .write = write,
        .address = address,
        .step = ownership->step,
        .holder = holder,
        .target = target,
        .busy = ownership->busy,
        .block = block,
        .exact = ownership->exact,
        .program_counter = ownership->exact != 0 ? ownership->program_counter : block,
    };
}

/* Records the first violation; one of the core stops the guest. */
static uint32_t violate(struct ferrule_ownership *ownership, enum ferrule_violation violation,
                        int32_t actor, uint32_t write, uint64_t address, uint32_t holder,
                        uint32_t target)
{
    if (ownership->violated.violation == FERRULE_ALLOWED) {
        ownership->violated = describe(ownership, violation, actor, write, address, holder, target);
        if (actor == FERRULE_OWNED_CORE) {
            ferrule_guest_stop(ownership->guest, FERRULE_GUEST_OWNERSHIP);
        }
    }
    return violation;
}

static void size(struct ferrule_ownership *ownership, uint64_t address, uint32_t bytes)
{
    if (ownership->violated.address >= address && ownership->violated.address - address < bytes &&
        ownership->violated.bytes == 0) {
        ownership->violated.bytes = bytes;
    }
}

/* Judges a read of the core. */
static enum ferrule_violation judge_read(const struct ferrule_ownership *ownership, uint32_t holder)
{
    const uint32_t roles = ownership->roles[holder];
    const enum ferrule_violation found = ferrule_owned_judge_use(holder, roles);
    if ((ownership->flying_roles[holder] & FERRULE_ROLE_WRITES) != 0) {
        return FERRULE_ACCESSES_BUSY;
    }
    return found == FERRULE_ALLOWED && (roles & FERRULE_ROLE_WRITES) != 0 && is_busy(ownership)
               ? FERRULE_ACCESSES_BUSY
               : found;
}

/* Judges a write of the core. */
static enum ferrule_violation judge_write(const struct ferrule_ownership *ownership,
                                          uint32_t holder, uint32_t target)
{
    const bool owned = ownership->step >= 0 && holder != FERRULE_HOLDER_OUTSIDE;
    if (owned && is_busy(ownership) &&
        (ownership->roles[holder] != 0 || target != FERRULE_HOLDER_NOTHING)) {
        return FERRULE_ACCESSES_BUSY;
    }
    if (ownership->flying_roles[holder] != 0 || ownership->flying_roles[target] != 0) {
        return FERRULE_ACCESSES_BUSY;
    }
    if (holder != target && owned && is_needed(ownership, holder)) {
        return FERRULE_OVERWRITES;
    }
    return target == FERRULE_HOLDER_NOTHING ? FERRULE_WRITES_OUTSIDE : FERRULE_ALLOWED;
}

/* Reports the doubted read, which is no half of an unaligned one. */
static void confirm(struct ferrule_ownership *ownership)
{
    if (ownership->pending != 0 && ownership->violated.violation == FERRULE_ALLOWED) {
        ownership->violated = ownership->doubted;
        ferrule_guest_stop(ownership->guest, FERRULE_GUEST_OWNERSHIP);
    }
    ownership->pending = 0;
}

/* Judges the bytes of a read that the core asks for; returns whether these are all, and allowed. */
static bool check_asked(struct ferrule_owned_region *region, uint64_t offset, uint32_t bytes)
{
    struct ferrule_ownership *ownership = region->ownership;
    const uint32_t address = (uint32_t)(region->address + offset);
    bool all = true;
    for (uint32_t i = 0; i < bytes && offset + i < region->bytes; ++i) {
        const uint32_t holder = region->holder[offset + i];
        const enum ferrule_violation found = judge_read(ownership, holder);
        if (address + i - ownership->asked >= ownership->asked_bytes) {
            all = false;
        } else if (found != FERRULE_ALLOWED) {
            (void)violate(ownership, found, FERRULE_OWNED_CORE, 0, address + i, holder,
                          region->target[offset + i]);
            size(ownership, ownership->asked, ownership->asked_bytes);
            return false;
        } else {
            /* an allowed byte */
        }
    }
    return all;
}

/*
 * unicorn makes an unaligned read of two aligned ones, which read more bytes. So bytes before the
 * first byte that is allowed may belong to a first half, which the second half follows at once; and
 * those after the last one may belong to a second half. Returns whether all bytes are allowed.
 */
static bool check_read(struct ferrule_owned_region *region, uint64_t offset, uint32_t bytes)
{
    struct ferrule_ownership *ownership = region->ownership;
    const uint32_t address = (uint32_t)(region->address + offset);
    if (ownership->asked_bytes != 0) {
        return check_asked(region, offset, bytes);
    }
    enum ferrule_violation first = FERRULE_ALLOWED;
    enum ferrule_violation last = FERRULE_ALLOWED;
    uint32_t wrong = bytes;
    for (uint32_t i = 0; i < bytes && offset + i < region->bytes; ++i) {
        last = judge_read(ownership, region->holder[offset + i]);
        first = i == 0 ? last : first;
        wrong = last != FERRULE_ALLOWED && wrong == bytes ? i : wrong;
    }
    if (wrong == bytes || (first == FERRULE_ALLOWED && ownership->read_end == address)) {
        return wrong == bytes;
    }
    const uint32_t holder = region->holder[offset + wrong];
    const uint32_t target = region->target[offset + wrong];
    const enum ferrule_violation found = judge_read(ownership, holder);
    if (last != FERRULE_ALLOWED) {
        (void)violate(ownership, found, FERRULE_OWNED_CORE, 0, address + wrong, holder, target);
        size(ownership, address, bytes);
        return false;
    }
    ownership->doubted =
        describe(ownership, found, FERRULE_OWNED_CORE, 0, address + wrong, holder, target);
    ownership->doubted.bytes = bytes;
    ownership->pending = address + bytes;
    return false;
}

/* The core waits for the result of a layer, which is as if it ran there. */
static void finish(struct ferrule_ownership *ownership)
{
    const uint32_t step = ferrule_guest_read(ownership->guest, FERRULE_ARGUMENT + 2);
    if (ownership->step >= 0 && step < ownership->step_count) {
        enter(ownership, (int32_t)step);
        ferrule_owned_land(ownership, step);
        ownership->finishing = 1;
        ownership->finish_returns = ferrule_guest_read(ownership->guest, FERRULE_LINK) & ~1u;
        ownership->finish_stack = ferrule_guest_read(ownership->guest, FERRULE_SP);
    }
}

void ferrule_ownership_on_block(struct ferrule_ownership *ownership, uint32_t address)
{
    if (ownership->pending != 0) {
        confirm(ownership);
    }
    if (address != 0 && (address == ownership->run || address == ownership->until)) {
        begin(ownership);
    } else if (ownership->step == FERRULE_STEP_IDLE) {
        return;
    } else if (address == ownership->returns &&
               ferrule_guest_read(ownership->guest, FERRULE_SP) == ownership->stack) {
        ownership->inferences += ownership->step >= 0 ? 1u : 0u;
        enter(ownership, FERRULE_STEP_IDLE);
    } else if (address == (ownership->next != 0 ? ownership->next : ownership->on_operator) &&
               address != 0) {
        const uint32_t step = ferrule_guest_read(ownership->guest, FERRULE_ARGUMENT + 1);
        enter(ownership, step < ownership->step_count ? (int32_t)step : FERRULE_STEP_UNKNOWN);
    } else if (address == ownership->ran && address != 0) {
        ownership->ended = ownership->step < 0 || ownership->begun[ownership->step] == 0 ? 1u : 0u;
    } else if (address == ownership->finish && address != 0) {
        finish(ownership);
    } else if (ownership->finishing != 0 && address == ownership->finish_returns &&
               ferrule_guest_read(ownership->guest, FERRULE_SP) == ownership->finish_stack) {
        ownership->ended = 1;
    } else {
        /* a block inside a layer */
    }
}

/* Returns whether all bytes are allowed. */
static bool check_write(struct ferrule_owned_region *region, uint64_t offset, uint32_t bytes)
{
    struct ferrule_ownership *ownership = region->ownership;
    for (uint32_t i = 0; i < bytes && offset + i < region->bytes; ++i) {
        const uint32_t holder = region->holder[offset + i];
        const uint32_t target = region->target[offset + i];
        const enum ferrule_violation found = judge_write(ownership, holder, target);
        if (ownership->step == FERRULE_STEP_IDLE && target >= FERRULE_HOLDER_BUFFERS &&
            ferrule_owned_buffer_of(ownership, target)->input == FERRULE_INPUT_CALLER) {
            ownership->given = 1;
        }
        if (found != FERRULE_ALLOWED) {
            (void)violate(ownership, found, FERRULE_OWNED_CORE, 1, region->address + offset + i,
                          holder, target);
            size(ownership, region->address + offset, bytes);
            return false;
        }
    }
    return true;
}

/* Returns whether a line has a byte with a mark. */
static bool is_marked(const uint8_t *line, uint32_t bytes, uint64_t mark)
{
    uint64_t found = 0;
    for (uint32_t i = 0; i < bytes; i += (uint32_t)sizeof found) {
        uint64_t word;
        memcpy(&word, line + i, sizeof word);
        found |= word & mark;
    }
    return found != 0;
}

/* Returns the first byte of a line that has a mark and whose value is needed, or `bytes`. */
static uint32_t first_needed(const struct ferrule_owned_region *region, uint64_t line, uint8_t mark)
{
    uint32_t i = 0;
    while (i < region->line_bytes && ((region->cached[line + i] & mark) == 0 ||
                                      !is_needed(region->ownership, region->holder[line + i]))) {
        ++i;
    }
    return i;
}

static bool is_stale(const struct ferrule_owned_region *region, uint64_t at)
{
    return (region->cached[at] & FERRULE_CACHED_STALE) != 0;
}

/* A read with stale bytes at one end only may be half of an unaligned one. */
static void read_cached(struct ferrule_owned_region *region, uint64_t offset, uint32_t bytes)
{
    if (is_stale(region, offset) && is_stale(region, offset + bytes - 1u)) {
        (void)violate(region->ownership, FERRULE_READS_STALE, FERRULE_OWNED_CORE, 0,
                      region->address + offset, region->holder[offset], region->target[offset]);
        size(region->ownership, region->address + offset, bytes);
    }
}

static void write_cached(struct ferrule_owned_region *region, uint64_t offset, uint32_t bytes)
{
    const uint64_t line = offset & ~(uint64_t)(region->line_bytes - 1u);
    for (uint32_t i = 0; i < bytes; ++i) {
        region->cached[offset + i] = FERRULE_CACHED_DIRTY;
    }
    if (is_marked(region->cached + line, region->line_bytes, STALE_BYTES)) {
        const uint32_t other = first_needed(region, line, FERRULE_CACHED_STALE);
        if (other < region->line_bytes) {
            (void)violate(region->ownership, FERRULE_SHARES_LINE, FERRULE_OWNED_CORE, 1,
                          region->address + offset, region->holder[line + other],
                          region->target[offset]);
            size(region->ownership, region->address + offset, bytes);
        }
    }
}

static uint64_t load(const uint8_t *data, uint32_t bytes)
{
    uint64_t value = 0;
    switch (bytes) {
    case 1:
        return *data;
    case 2:
        memcpy(&value, data, 2);
        break;
    case 4:
        memcpy(&value, data, 4);
        break;
    default:
        memcpy(&value, data, bytes);
        break;
    }
    return value;
}

/* Returns the marks of up to four bytes as one number. */
static uint64_t packed(const uint16_t *marks, uint32_t bytes)
{
    uint64_t value = 0;
    switch (bytes) {
    case 1:
        return *marks;
    case 2:
        memcpy(&value, marks, 4);
        break;
    default:
        memcpy(&value, marks, 8);
        break;
    }
    return value;
}

uint64_t ferrule_ownership_read(void *engine, uint64_t offset, unsigned bytes, void *region)
{
    struct ferrule_owned_region *self = region;
    struct ferrule_ownership *ownership = self->ownership;
    (void)engine;
    ownership->accesses += ownership->step >= 0 ? 1u : 0u;
    if (ownership->pending != 0) {
        if (ownership->pending != self->address + offset) {
            confirm(ownership);
        }
        ownership->pending = 0;
    }
    const uint64_t holders = bytes > 4 ? 0 : packed(self->holder + offset, bytes);
    if (bytes > 4 || holders != ownership->accepted[bytes] || ownership->busy != 0) {
        ownership->accepted[bytes] = check_read(self, offset, bytes) ? holders : NO_HOLDERS;
    }
    ownership->read_end = (uint32_t)(self->address + offset) + bytes;
    if (self->cached != NULL && is_on(ownership)) {
        read_cached(self, offset, bytes);
    }
    return load(self->data + offset, bytes);
}

void ferrule_ownership_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                             void *region)
{
    struct ferrule_owned_region *self = region;
    struct ferrule_ownership *ownership = self->ownership;
    (void)engine;
    ownership->accesses += ownership->step >= 0 ? 1u : 0u;
    confirm(ownership);
    ownership->read_end = 0;
    const uint64_t targets = bytes > 4 ? 0 : packed(self->target + offset, bytes);
    const uint64_t holders = bytes > 4 ? 0 : packed(self->holder + offset, bytes);
    uint64_t *granted = ownership->granted[bytes];
    if (bytes > 4 || targets != granted[0] || holders != granted[1] || ownership->busy != 0) {
        granted[0] = check_write(self, offset, bytes) ? targets : NO_HOLDERS;
        granted[1] = holders;
    }
    if (self->cached != NULL && is_on(ownership)) {
        write_cached(self, offset, bytes);
    }
    memcpy(self->holder + offset, self->target + offset, bytes * sizeof *self->holder);
    memcpy(self->data + offset, &value, bytes);
}

/* Checks the line of a byte that a device transfers; returns enum ferrule_violation. */
static uint32_t transfer_cached(struct ferrule_owned_region *region, int32_t device, uint64_t at,
                                uint32_t write)
{
    const uint64_t line = at & ~(uint64_t)(region->line_bytes - 1u);
    if (write == 0 && (region->cached[at] & FERRULE_CACHED_DIRTY) != 0) {
        return violate(region->ownership, FERRULE_READS_UNCLEAN, device, 0, region->address + at,
                       region->holder[at], region->target[at]);
    }
    if (write != 0 && is_marked(region->cached + line, region->line_bytes, DIRTY_BYTES)) {
        return violate(region->ownership, FERRULE_WRITES_UNDER, device, 1, region->address + at,
                       region->holder[at], region->target[at]);
    }
    if (write != 0) {
        region->cached[at] = FERRULE_CACHED_STALE;
    }
    return FERRULE_ALLOWED;
}

/* Returns enum ferrule_violation; sets the layer for which the transfer was judged. */
static uint32_t transfer_byte(struct ferrule_owned_region *region, int32_t device, uint64_t at,
                              uint32_t write, int32_t *step)
{
    struct ferrule_ownership *ownership = region->ownership;
    const uint32_t holder = region->holder[at];
    const uint32_t address = (uint32_t)(region->address + at);
    uint32_t target = region->target[at];
    enum ferrule_violation found = FERRULE_ALLOWED;
    if (holder != FERRULE_HOLDER_OUTSIDE) {
        found =
            ferrule_owned_judge_transfer(ownership, device, address, holder, write, &target, step);
    }
    if (found != FERRULE_ALLOWED) {
        return violate(ownership, found, device, write, address, holder, target);
    }
    if (region->cached != NULL && is_on(ownership)) {
        const uint32_t fault = transfer_cached(region, device, at, write);
        if (fault != FERRULE_ALLOWED) {
            return fault;
        }
    }
    if (write != 0) {
        region->holder[at] = (uint16_t)target;
    }
    return FERRULE_ALLOWED;
}

uint32_t ferrule_ownership_transfer(struct ferrule_ownership *ownership, int32_t device,
                                    uint32_t address, uint32_t bytes, uint32_t write)
{
    ownership->transfers += ownership->step >= 0 ? 1u : 0u;
    forget(ownership);
    for (uint32_t i = 0; i < bytes; ++i) {
        struct ferrule_owned_region *region = region_of(ownership, address + i);
        if (region != NULL) {
            const uint64_t at = address + i - region->address;
            const bool first = ownership->violated.violation == FERRULE_ALLOWED;
            int32_t step = ownership->step;
            const uint32_t found = transfer_byte(region, device, at, write, &step);
            if (found != FERRULE_ALLOWED) {
                ownership->violated.step = first ? step : ownership->violated.step;
                size(ownership, address, bytes);
                return found;
            }
        }
    }
    return FERRULE_ALLOWED;
}

static void maintain_line(struct ferrule_owned_region *region, uint64_t line, bool cleans,
                          bool invalidates)
{
    if (invalidates && !cleans) {
        const uint32_t dropped = first_needed(region, line, FERRULE_CACHED_DIRTY);
        if (dropped < region->line_bytes) {
            (void)violate(region->ownership, FERRULE_DROPS, FERRULE_OWNED_CORE, 0,
                          region->address + line + dropped, region->holder[line + dropped],
                          region->target[line + dropped]);
            size(region->ownership, region->address + line, region->line_bytes);
        }
    }
    for (uint32_t i = 0; i < region->line_bytes; ++i) {
        uint8_t *byte = &region->cached[line + i];
        *byte &= (uint8_t)~(cleans || invalidates ? FERRULE_CACHED_DIRTY : 0);
        *byte &= (uint8_t)~(invalidates ? FERRULE_CACHED_STALE : 0);
    }
}

void ferrule_ownership_maintain(struct ferrule_ownership *ownership, uint32_t operation,
                                uint32_t address)
{
    const bool all = (operation & FERRULE_CACHE_ALL) != 0;
    const bool cleans = (operation & FERRULE_CACHE_CLEANS) != 0;
    const bool invalidates = (operation & FERRULE_CACHE_INVALIDATES) != 0;
    const uint32_t exact = ownership->exact;
    ownership->exact = 1; /* as at each access to these registers */
    ownership->program_counter = ferrule_guest_read(ownership->guest, FERRULE_PC);
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        struct ferrule_owned_region *region = &ownership->regions[i];
        if (region->cached == NULL) {
            continue;
        }
        for (uint64_t line = 0; all && line < region->bytes; line += region->line_bytes) {
            maintain_line(region, line, cleans, invalidates);
        }
        if (!all && region_of(ownership, address) == region) {
            maintain_line(region,
                          (address - region->address) & ~(uint64_t)(region->line_bytes - 1u),
                          cleans, invalidates);
        }
    }
    ownership->exact = exact;
}

uint32_t ferrule_ownership_models_cache(const struct ferrule_ownership *ownership)
{
    bool cached = false;
    for (uint32_t i = 0; i < ownership->region_count; ++i) {
        cached = cached || ownership->regions[i].cached != NULL;
    }
    return cached && is_on(ownership);
}
