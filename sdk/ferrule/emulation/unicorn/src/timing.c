/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include <stddef.h>
#include <string.h>

#include "core.h"
#include "guest.h"

/* Values of unicorn's enums uc_hook_type and uc_mem_type. */
enum { UC_HOOK_CODE = 4, UC_MEM_WRITE = 17 };

uint64_t ferrule_timing_bytes(void)
{
    return sizeof(struct ferrule_timing);
}

uint64_t ferrule_memory_timing_bytes(void)
{
    return sizeof(struct ferrule_memory_timing);
}

const char *ferrule_core_timing_name(uint32_t index)
{
#define NAME(name) #name,
    static const char *const NAMES[] = {FERRULE_CORE_TIMING(NAME)};
#undef NAME
    return index < sizeof NAMES / sizeof NAMES[0] ? NAMES[index] : NULL;
}

void ferrule_timing_set_core(struct ferrule_timing *timing, const struct ferrule_core_timing *core)
{
    timing->core = *core;
}

/* Returns the logarithm of a power of 2. */
static uint32_t logarithm(uint32_t power)
{
    uint32_t bits = 0;
    for (; power > 1; power /= 2) {
        ++bits;
    }
    return bits;
}

void ferrule_timing_add_memory(struct ferrule_timing *timing,
                               const struct ferrule_memory_timing *memory)
{
    struct ferrule_memory_timing *added = &timing->memories[timing->memory_count++];
    *added = *memory;
    added->width_shift = logarithm(memory->width_bytes);
    if (memory->code_cache < FERRULE_TIMED_CACHES) {
        added->line_shift =
            logarithm(timing->caches[memory->code_cache].line_bytes) - added->width_shift;
    }
}

void ferrule_timing_set_cache(struct ferrule_timing *timing, uint32_t cache, uint32_t sets,
                              uint32_t ways, uint32_t line_bytes)
{
    timing->caches[cache].sets = sets;
    timing->caches[cache].ways = ways;
    timing->caches[cache].line_bytes = line_bytes;
}

static void forget_blocks(struct ferrule_timing *timing)
{
    timing->kept = *timing->last;
    timing->last = &timing->kept;
    memset(timing->blocks, 0, sizeof timing->blocks);
}

void ferrule_timing_forget(struct ferrule_timing *timing, struct ferrule_guest *guest)
{
    forget_blocks(timing);
    timing->kept.waits = 0;
    if (timing->waits.count != 0) {
        ferrule_waits_forget(&timing->waits, guest);
    }
}

void ferrule_timing_repeat(struct ferrule_timing *timing)
{
    ferrule_waits_repeat(&timing->waits);
}

void ferrule_timing_begin(struct ferrule_timing *timing)
{
    ferrule_waits_begin(&timing->waits);
}

uint32_t ferrule_timing_end(struct ferrule_timing *timing, struct ferrule_guest *guest)
{
    return ferrule_waits_end(&timing->waits, guest);
}

uint32_t ferrule_timing_watches(const struct ferrule_timing *timing)
{
    return timing->waits.watched;
}

static uint32_t halfword(const uint8_t *code)
{
    return code[0] | (uint32_t)code[1] << 8;
}

/* Decodes the instruction at an offset of a block. */
static struct ferrule_operation operation_at(const uint8_t *code, uint32_t bytes, uint32_t at)
{
    const bool wide = ferrule_code_width(code + at) == 4 && at + 4 <= bytes;
    return ferrule_operation_of(halfword(code + at), wide ? halfword(code + at + 2) : 0u);
}

/* Returns the pipeline of a state. */
static struct ferrule_pipeline pipeline_of(const struct ferrule_timing *timing, uint32_t state)
{
    return timing->states[state & ((1u << FERRULE_FETCHED_SHIFT) - 1)];
}

/* Returns the part of a state that is the number of the fetches' state. */
static uint32_t fetches_of(uint32_t state)
{
    return state >> FERRULE_FETCHED_SHIFT << FERRULE_FETCHED_SHIFT;
}

/* Returns the number of a pipeline's state, which is kept. */
static uint32_t number_of(struct ferrule_timing *timing, const struct ferrule_pipeline *state)
{
    for (uint32_t i = 0; i < timing->state_count; ++i) {
        if (memcmp(&timing->states[i], state, sizeof *state) == 0) {
            return i;
        }
    }
    timing->states[timing->state_count] = *state;
    return timing->state_count++;
}

/* Returns the sum of the lines of the caches of code. */
static uint32_t code_lines(const struct ferrule_timing *timing)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < FERRULE_TIMED_CACHES; ++i) {
        if (timing->holds_code[i] != 0) {
            lines += timing->caches[i].sets * timing->caches[i].ways;
        }
    }
    return lines;
}

/* Returns what was fetched last and the lines of the caches of code. */
static struct ferrule_fetched take_fetches(const struct ferrule_timing *timing)
{
    struct ferrule_fetched fetched = {.memory = timing->fetched_memory, .piece = timing->fetched};
    uint32_t *lines = fetched.lines;
    for (uint32_t i = 0; i < FERRULE_TIMED_CACHES; ++i) {
        const struct ferrule_cache_timing *cache = &timing->caches[i];
        const uint32_t count = timing->holds_code[i] != 0 ? cache->sets * cache->ways : 0;
        for (uint32_t at = 0; at < count; ++at) { /* behind those of its set that were used later */
            const uint32_t first = at - at % cache->ways;
            uint32_t rank = first;
            for (uint32_t other = first; other < first + cache->ways; ++other) {
                rank += cache->used[other] > cache->used[at];
            }
            if (cache->used[at] != 0) {
                lines[rank] = cache->lines[at] + 1;
            }
        }
        lines += count;
    }
    return fetched;
}

/* Brings what was fetched last and the caches of code up to date. */
static void put_fetches(struct ferrule_timing *timing)
{
    const struct ferrule_fetched *fetched =
        &timing->numbers[timing->state >> FERRULE_FETCHED_SHIFT];
    const uint32_t *lines = fetched->lines;
    timing->fetched_memory = fetched->memory;
    timing->fetched = fetched->piece;
    for (uint32_t i = 0; i < FERRULE_TIMED_CACHES; ++i) {
        struct ferrule_cache_timing *cache = &timing->caches[i];
        const uint32_t count = timing->holds_code[i] != 0 ? cache->sets * cache->ways : 0;
        cache->uses += count;
        for (uint32_t at = 0; at < count; ++at, ++lines) {
            cache->lines[at] = *lines - 1;
            cache->used[at] = *lines != 0 ? cache->uses - at % cache->ways : 0;
        }
    }
}

/* Returns the number of the present state of the fetches, which is kept, as a part of a state. */
static uint32_t number_of_fetches(struct ferrule_timing *timing)
{
    const struct ferrule_fetched fetched = take_fetches(timing);
    for (uint32_t i = (fetched.piece * 0x9E5u) ^ (fetched.lines[1] * 0x2F35u);; ++i) {
        uint16_t *place = &timing->places[i % FERRULE_TIMED_PLACES];
        if (*place == 0) {
            timing->numbers[timing->fetched_count] = fetched;
            *place = (uint16_t)++timing->fetched_count;
        }
        if (memcmp(&timing->numbers[*place - 1], &fetched, sizeof fetched) == 0) {
            return (uint32_t)(*place - 1) << FERRULE_FETCHED_SHIFT;
        }
    }
}

/* Makes room for more states and fetches: if there is none, all are forgotten but the states of the
 * present, with the blocks that refer to them. */
static void make_room(struct ferrule_timing *timing)
{
    if (timing->state_count + 4 <= FERRULE_TIMED_STATES &&
        timing->crossing_count + FERRULE_TIMED_FETCHES <= FERRULE_TIMED_CROSSINGS &&
        timing->fetched_count + 2 <= FERRULE_TIMED_FETCHED) {
        return;
    }
    const struct ferrule_pipeline state = pipeline_of(timing, timing->state);
    const struct ferrule_pipeline entry = pipeline_of(timing, timing->last->entry);
    uint32_t fetches = 0;
    if (timing->numbered != 0) {
        put_fetches(timing);
        memset(timing->places, 0, sizeof timing->places);
        timing->fetched_count = 0;
        fetches = number_of_fetches(timing);
    }
    forget_blocks(timing);
    timing->crossing_count = 0;
    timing->state_count = 1;
    timing->state = number_of(timing, &state) | fetches;
    timing->kept.entry = number_of(timing, &entry);
}

/* Gives numbers to the states of the fetches, if none depends on when it begins, and the caches are
 * so small that few states occur. */
static void number_fetches(struct ferrule_timing *timing)
{
    bool timeless = true;
    for (uint32_t i = 0; i < timing->memory_count; ++i) {
        const struct ferrule_memory_timing *memory = &timing->memories[i];
        timeless = timeless && memory->prefetch == 0 && memory->line_shift == 0;
        if (memory->code_cache < FERRULE_TIMED_CACHES) {
            timing->holds_code[memory->code_cache] = 1;
        }
    }
    timing->numbered = timeless && code_lines(timing) <= FERRULE_NUMBERED_LINES;
    timing->state = timing->numbered != 0 ? number_of_fetches(timing) : 0;
}

void ferrule_timing_start(struct ferrule_timing *timing, struct ferrule_guest *guest)
{
    ferrule_pipeline_clear(&timing->states[0]);
    timing->state_count = 1;
    timing->settled = 1;
    timing->last = &timing->kept;
    timing->fetched_memory = FERRULE_TIMED_MEMORIES;
    guest->timing = timing;
    if (timing->memory_count != 0) {
        ferrule_waits_start(&timing->waits);
        number_fetches(timing);
    }
}

static uint32_t memory_of(const struct ferrule_timing *timing, uint32_t address)
{
    for (uint32_t i = 0; i < timing->memory_count; ++i) {
        const struct ferrule_memory_timing *memory = &timing->memories[i];
        if (address - memory->address < memory->bytes && address >= memory->address) {
            return i;
        }
    }
    return FERRULE_TIMED_MEMORIES;
}

/* Executes a block's instructions up to an offset. Notes in `crossed`, if that is not NULL, the
 * cycles before each instruction that needs other bytes than those that a memory has delivered with
 * the ones before. */
static struct ferrule_passage execute(const struct ferrule_timing *timing,
                                      struct ferrule_pipeline *pipeline,
                                      struct ferrule_timed_block *block, const uint8_t *code,
                                      uint32_t until, uint16_t *crossed)
{
    struct ferrule_passage passage = {0};
    const bool waits = block->memory < FERRULE_TIMED_MEMORIES;
    const uint32_t width = waits ? timing->memories[block->memory].width_bytes : UINT32_MAX;
    uint32_t delivered = block->address / width;
    uint32_t noted = 0;
    block->cycles = 0;
    block->jump_at = 0;
    for (uint32_t at = 0; at < until;) {
        const struct ferrule_operation operation = operation_at(code, block->bytes, at);
        for (; delivered < (block->address + at + operation.bytes - 1) / width; ++delivered) {
            if (crossed != NULL && noted < FERRULE_TIMED_FETCHES) {
                crossed[noted++] = block->cycles;
            }
        }
        passage = ferrule_pipeline_step(&timing->core, pipeline, &operation);
        block->cycles = (uint16_t)(block->cycles + passage.cycles);
        block->jump_at = passage.jumps ? block->address + at : 0;
        block->it = block->it != 0 || operation.kind == FERRULE_IT;
        block->accesses = block->accesses != 0 || ferrule_operation_accesses(operation.kind);
        at += operation.bytes;
    }
    return passage;
}

/* Counts the fetches of a block in a memory that waits. */
static void count_fetches(const struct ferrule_timing *timing, struct ferrule_timed_block *block)
{
    const uint32_t shift = timing->memories[block->memory].width_shift;
    const uint32_t others =
        ((block->address + block->bytes - 1) >> shift) - (block->address >> shift);
    block->first = block->address >> shift;
    block->fetches = (uint16_t)(others < FERRULE_TIMED_FETCHES ? others : FERRULE_TIMED_FETCHES);
}

/* Looks for a line where the hint does not lead, and replaces the oldest one if it is not found. */
static bool search(struct ferrule_cache_timing *cache, uint32_t line, uint16_t *hint)
{
    const uint32_t first = (line & (cache->sets - 1)) * cache->ways;
    uint32_t oldest = first;
    for (uint32_t i = first; i < first + cache->ways; ++i) {
        if (cache->lines[i] == line && cache->used[i] != 0) {
            cache->used[i] = cache->uses;
            *hint = (uint16_t)i;
            return true;
        }
        if (cache->used[i] < cache->used[oldest]) {
            oldest = i;
        }
    }
    cache->lines[oldest] = line;
    cache->used[oldest] = cache->uses;
    *hint = (uint16_t)oldest;
    return false;
}

/* Looks for a line, which is in the cache afterwards; returns whether it was before. */
static inline bool look_up(struct ferrule_cache_timing *cache, uint32_t line)
{
    uint16_t *hint = &cache->hints[line & (FERRULE_TIMED_HINTS - 1)];
    ++cache->uses;
    if (cache->lines[*hint] == line && cache->used[*hint] != 0) {
        cache->used[*hint] = cache->uses;
        return true;
    }
    return search(cache, line, hint);
}

/* Returns the cycles that a fetch waits, which begins at a time of `pace`. */
static uint32_t fetch(struct ferrule_timing *timing, uint32_t index, uint32_t piece,
                      uint64_t begins)
{
    const struct ferrule_memory_timing *memory = &timing->memories[index];
    const bool same = timing->fetched_memory == index;
    if (same && timing->fetched == piece) {
        return 0;
    }
    const bool next = same && timing->fetched + 1 == piece;
    bool waits = true;
    bool follows = next && memory->prefetch != 0;
    if (memory->code_cache < FERRULE_TIMED_CACHES) {
        struct ferrule_cache_timing *cache = &timing->caches[memory->code_cache];
        const uint32_t line = piece >> memory->line_shift;
        const bool fills = next && timing->filling == line + 1;
        waits = !look_up(cache, line) || fills;
        follows = follows || fills;
        timing->filling = waits ? line + 1 : 0;
    }
    uint32_t cycles = waits ? memory->wait_states : 0;
    if (waits && follows) { /* its fetch began with the execution of the bytes before */
        const uint64_t arrives = timing->fetch_began + memory->wait_states + 1;
        cycles = arrives > begins ? (uint32_t)(arrives - begins) : 0;
        cycles = cycles < memory->wait_states ? cycles : memory->wait_states;
    }
    timing->fetched_memory = index;
    timing->fetched = piece;
    timing->fetch_began = begins + cycles;
    return cycles;
}

/* Returns the cycles that the fetches of a block wait. */
static uint32_t fetch_block(struct ferrule_timing *timing, const struct ferrule_timed_block *block)
{
    const uint16_t *crossed = timing->crossings + block->crossed;
    uint32_t waited = fetch(timing, block->memory, block->first, timing->pace);
    for (uint32_t i = 0; i < block->fetches; ++i) {
        waited +=
            fetch(timing, block->memory, block->first + 1 + i, timing->pace + crossed[i] + waited);
    }
    return waited;
}

static void decode(struct ferrule_timing *timing, struct ferrule_timed_block *block,
                   const uint8_t *code, uint32_t address, uint32_t bytes)
{
    struct ferrule_pipeline pipeline = pipeline_of(timing, timing->state);
    uint32_t fetches = fetches_of(timing->state);
    *block = (struct ferrule_timed_block){
        .address = address,
        .bytes = (uint16_t)bytes,
        .entry = timing->state,
        .memory = (uint8_t)memory_of(timing, address),
        .wide = ferrule_code_width(code) == 4 && (address & 2u) != 0,
        .it = pipeline.it_left != 0,
        .crossed = timing->crossing_count,
    };
    const struct ferrule_passage passage =
        execute(timing, &pipeline, block, code, bytes, timing->crossings + block->crossed);
    const uint32_t mask = ((1u << timing->core.predictor_bits) - 1u) & (FERRULE_TIMED_BRANCHES - 1);
    block->branch = (uint16_t)(block->jump_at >> 1 & mask);
    block->conditional = passage.conditional;
    block->refill = (uint16_t)passage.refill;
    if (timing->waits.count != 0) {
        block->waits = ferrule_waits_number(&timing->waits, address, bytes, block->accesses != 0);
    }
    if (block->memory < FERRULE_TIMED_MEMORIES) {
        count_fetches(timing, block);
        block->follows = timing->numbered == 0;
    }
    if (block->memory < FERRULE_TIMED_MEMORIES && block->follows == 0) {
        put_fetches(timing);
        block->waited = (uint16_t)fetch_block(timing, block);
        fetches = number_of_fetches(timing);
    }
    block->waits_never = block->follows == 0 && timing->waits.count == 0;
    block->exit = number_of(timing, &pipeline) | fetches;
    ferrule_pipeline_pass(&pipeline, passage.refill);
    pipeline.it_left = 0;
    block->jumped = number_of(timing, &pipeline) | fetches;
}

void ferrule_timing_predict(struct ferrule_timing *timing, struct ferrule_guest *guest, bool jumps)
{
    const struct ferrule_timed_block *last = timing->last;
    uint8_t *taken = &timing->taken[last->branch];
    const bool expected = *taken >= FERRULE_TAKEN_LEAST;
    if (jumps && *taken < FERRULE_TAKEN_MOST) {
        ++*taken;
    } else if (!jumps && *taken > 0) {
        --*taken;
    }
    ferrule_timing_spend(timing, guest,
                         expected != jumps ? timing->core.mispredict
                         : jumps           ? last->refill
                                           : 0);
}

static uint32_t *division_slot(struct ferrule_timing *timing, uint32_t address)
{
    for (uint32_t i = address >> 1;; ++i) {
        uint32_t *slot = &timing->divisions[i % FERRULE_TIMED_DIVISIONS];
        if (*slot == 0 || *slot == (address | 1u)) {
            return slot;
        }
    }
}

static void on_division(void *engine, uint64_t address, uint32_t bytes, void *guest)
{
    struct ferrule_guest *self = guest;
    uint32_t word = 0;
    uint32_t dividend = 0;
    uint32_t divisor = 0;
    (void)bytes;
    if (self->timing == NULL || !ferrule_guest_load(self, (uint32_t)address, &word)) {
        return;
    }
    const struct ferrule_division of = ferrule_division_of(word);
    (void)self->read_register(engine, ferrule_core_register(self->core, of.dividend), &dividend);
    (void)self->read_register(engine, ferrule_core_register(self->core, of.divisor), &divisor);
    self->elapsed +=
        ferrule_pipeline_division(&self->timing->core, dividend, divisor, of.is_signed);
}

static bool lacks_hooks(struct ferrule_timing *timing, const uint8_t *code, uint32_t address,
                        uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes;) {
        const struct ferrule_operation operation = operation_at(code, bytes, at);
        if (operation.kind == FERRULE_DIVIDE && *division_slot(timing, address + at) == 0) {
            return true;
        }
        at += operation.bytes;
    }
    return false;
}

bool ferrule_timing_add_hooks(struct ferrule_timing *timing, struct ferrule_guest *guest,
                              const uint8_t *code, uint32_t address, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes;) {
        const struct ferrule_operation operation = operation_at(code, bytes, at);
        uint32_t *slot = division_slot(timing, address + at);
        uintptr_t hook = 0;
        if (operation.kind == FERRULE_DIVIDE && *slot == 0) {
            if (timing->division_count >= FERRULE_TIMED_DIVISIONS / 2 ||
                guest->add_hook(guest->engine, &hook, UC_HOOK_CODE, (void *)on_division, guest,
                                (uint64_t)address + at, (uint64_t)address + at) != 0) {
                return false;
            }
            *slot = (address + at) | 1u;
            ++timing->division_count;
        }
        at += operation.bytes;
    }
    return true;
}

uint32_t ferrule_timing_step_bytes(const uint8_t *code, uint32_t bytes)
{
    const struct ferrule_operation first = operation_at(code, bytes, 0);
    uint32_t end = first.bytes;
    for (uint32_t i = 0; first.kind == FERRULE_IT && i < first.count && end < bytes; ++i) {
        end += operation_at(code, bytes, end).bytes;
    }
    return end < bytes ? end : bytes;
}

bool ferrule_timing_enter(struct ferrule_timing *timing, struct ferrule_guest *guest,
                          const uint8_t *code, uint32_t address, uint32_t bytes, bool fixed)
{
    struct ferrule_timed_block *block = ferrule_timing_slot(timing, address);
    if (block->address != address || block->bytes != bytes || block->entry != timing->state) {
        if (lacks_hooks(timing, code, address, bytes)) {
            return false;
        }
        make_room(timing);
        block = fixed ? ferrule_timing_slot(timing, address) : &timing->kept;
        decode(timing, block, code, address, bytes);
        timing->crossing_count += fixed ? block->fetches : 0;
    }
    if (ferrule_timing_lacks_waits(timing, block)) {
        ferrule_waits_lose(&timing->waits, guest);
        return false;
    }
    if ((timing->jumped & block->wide) != 0) {
        ferrule_timing_spend(timing, guest, timing->core.refill_unaligned);
    }
    const uint32_t waited = block->follows != 0 ? fetch_block(timing, block) : block->waited;
    ferrule_timing_spend(timing, guest, block->cycles + waited);
    timing->last = block;
    timing->settled = 0;
    return true;
}

/* Executes the current block up to an instruction; returns the cycles. */
static uint32_t execute_part(const struct ferrule_timing *timing, const uint8_t *code,
                             uint32_t program_counter, struct ferrule_pipeline *pipeline)
{
    struct ferrule_timed_block part = *timing->last;
    part.memory = FERRULE_TIMED_MEMORIES;
    *pipeline = pipeline_of(timing, part.entry);
    (void)execute(timing, pipeline, &part, code, program_counter - part.address, NULL);
    return part.cycles;
}

uint32_t ferrule_timing_left(const struct ferrule_timing *timing, const uint8_t *code,
                             uint32_t program_counter)
{
    struct ferrule_pipeline pipeline;
    return timing->last->cycles - execute_part(timing, code, program_counter, &pipeline);
}

void ferrule_timing_rewind(struct ferrule_timing *timing, struct ferrule_guest *guest,
                           const uint8_t *code, uint32_t program_counter)
{
    struct ferrule_pipeline pipeline;
    const uint32_t cycles = execute_part(timing, code, program_counter, &pipeline);
    ferrule_waits_break(&timing->waits, guest);
    timing->pace -= timing->last->cycles - cycles;
    timing->state = timing->last->exit; /* all of its fetches count */
    make_room(timing);
    timing->state = number_of(timing, &pipeline) | fetches_of(timing->state);
    timing->settled = 1;
    timing->jumped = 0;
}

void ferrule_timing_drain(struct ferrule_timing *timing, struct ferrule_guest *guest,
                          uint32_t cycles)
{
    if (timing->settled == 0 && timing->waits.count != 0) { /* a block that ends by returning */
        guest->elapsed += ferrule_waits_pass(&timing->waits, timing->last->waits);
    }
    ferrule_timing_spend(timing, guest, cycles);
    ferrule_waits_interrupt(&timing->waits, guest);
    timing->state = fetches_of(timing->settled == 0 ? timing->last->exit : timing->state);
    timing->settled = 1;
    timing->jumped = 0;
}

static bool is_unaligned(uint64_t address, int bytes)
{
    return bytes > 0 && bytes <= 4 && (address & (uint64_t)(bytes - 1)) != 0;
}

/* Returns the cycles that an access waits for its memory. */
static uint32_t wait_for_data(struct ferrule_timing *timing, uint32_t address, bool write)
{
    const uint32_t index = memory_of(timing, address);
    if (index == FERRULE_TIMED_MEMORIES) {
        return 0;
    }
    const struct ferrule_memory_timing *memory = &timing->memories[index];
    if (write) {
        return memory->write_wait_states;
    }
    if (memory->data_cache < FERRULE_TIMED_CACHES) {
        struct ferrule_cache_timing *cache = &timing->caches[memory->data_cache];
        if (look_up(cache, address / cache->line_bytes)) {
            return 0;
        }
    }
    return memory->wait_states;
}

void ferrule_timing_on_access(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest)
{
    struct ferrule_guest *self = guest;
    struct ferrule_timing *timing = self->timing;
    (void)engine;
    (void)value;
    const uint32_t waits = wait_for_data(timing, (uint32_t)address, type == UC_MEM_WRITE) +
                           (is_unaligned(address, bytes) ? timing->core.unaligned : 0);
    self->elapsed += waits;
    timing->waits.current += waits;
    if (timing->last->it != 0) { /* unicorn has restored ITSTATE for this hook */
        ferrule_guest_clear_condition(self);
    }
}
