/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "weights.h"

#define END_OF_SLICES    7u /* in place of the divisor of zero runs: filler up to the next byte */
#define NO_ZERO_RUNS     6u
#define UNCOMPRESSED     7u /* in place of the divisor of weights: they have a fixed width */
#define RESERVED_DIVISOR 6u
#define MAX_MAGNITUDE    255u
#define CHUNK            12u /* symbols in a chunk; some kinds of chunks have 8 */
#define SHORT_CHUNK      8u
#define LEAD             8u /* weights are read until they are so many ahead of the runs */
#define PALETTE          32u

struct bits {
    const uint8_t *data;
    uint64_t at;  /* the next bit */
    uint64_t end; /* the number of bits */
    bool ended;   /* bits were read that are not there; they count as 0 */
};

struct palette {
    uint32_t direct_offset;
    uint32_t bits;
    uint32_t size;
    uint32_t entries[PALETTE];
};

/* A chunk's quotients. */
struct quotients {
    uint64_t of[CHUNK];
    uint32_t count;
    bool is_read; /* there is such a chunk, which may have completed no quotient */
};

/* Numbers whose remainders follow a chunk after their quotients. */
struct symbols {
    uint32_t divisor; /* bits of a remainder */
    uint32_t needed;
    uint32_t begun; /* those of which at least the quotient is read */
    uint32_t done;
    uint64_t carry; /* the part of a quotient that the last chunk began */
    struct quotients last;
    struct quotients next;
};

/* A slice's header. */
struct slice_header {
    uint32_t zero_divisor;
    uint32_t count;
    uint32_t divisor;
    bool is_short;
    bool has_palette;
};

uint64_t ferrule_weight_slice_bytes(void)
{
    return sizeof(struct ferrule_weight_slice);
}

/* Returns the next bits, at most 32, of which the first is the lowest. */
static uint32_t take(struct bits *bits, uint32_t count)
{
    const uint8_t *from = bits->data + (bits->at >> 3);
    const uint64_t left = bits->end - bits->at;
    const uint32_t shift = (uint32_t)(bits->at & 7u);
    uint64_t value = 0;

    if (count > left) {
        bits->at = bits->end;
        bits->ended = true;
        return 0;
    }
    if (left + shift >= 64) {
        value = (uint64_t)from[0] | (uint64_t)from[1] << 8 | (uint64_t)from[2] << 16 |
                (uint64_t)from[3] << 24 | (uint64_t)from[4] << 32 | (uint64_t)from[5] << 40 |
                (uint64_t)from[6] << 48 | (uint64_t)from[7] << 56;
    } else {
        const uint32_t bytes = (shift + count + 7) >> 3;
        for (uint32_t i = 0; i < bytes; ++i) {
            value |= (uint64_t)from[i] << 8 * i;
        }
    }
    bits->at += count;
    return (uint32_t)(value >> shift & ((1ull << count) - 1));
}

static void read_palette(struct bits *bits, struct palette *palette)
{
    palette->direct_offset = take(bits, 5);
    palette->size = take(bits, 5);
    palette->bits = take(bits, 3) + 2;
    palette->size += palette->size != 0 ? 1 : 0;
    for (uint32_t i = 0; i < palette->size; ++i) {
        palette->entries[i] = take(bits, palette->bits);
    }
}

static void begin(struct symbols *symbols, uint64_t quotient)
{
    symbols->next.of[symbols->next.count++] = quotient;
    symbols->begun++;
}

/* Quotients of zero runs: each is as many ones as its value, and a zero. */
static void read_unary(struct symbols *runs, uint32_t chunk, uint32_t length)
{
    for (uint32_t i = 0; i < length; ++i) {
        if ((chunk >> i & 1u) != 0) {
            runs->carry++;
        } else {
            begin(runs, runs->carry);
            runs->carry = 0;
        }
    }
}

/* Quotients of 0, 1 and 2, of which those above 0 have a bit in `second`. */
static void read_short(struct symbols *weights, uint32_t first, uint32_t second)
{
    for (uint32_t i = 0; i < CHUNK; ++i) {
        const uint32_t set = first >> i & 1u;
        begin(weights, set + (set & second));
        second >>= set;
    }
}

/* Quotients in unary form: each bit that is set in `first` is one or, with `second`, two ones. */
static void read_two_step(struct symbols *weights, uint32_t first, uint32_t second)
{
    for (uint32_t i = 0; i < CHUNK; ++i) {
        const uint32_t set = first >> i & 1u;
        if ((set & second) != 0) {
            weights->carry += 2;
        } else {
            begin(weights, weights->carry + set);
            weights->carry = 0;
        }
        second >>= set;
    }
}

static uint32_t ones(uint32_t word)
{
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) {
        count++;
    }
    return count;
}

/* Returns the number of quotients of the last chunk that are wanted. */
static uint32_t wanted(const struct symbols *symbols)
{
    const uint32_t left = symbols->needed - symbols->done;
    return symbols->last.count < left ? symbols->last.count : left;
}

/* Stores a code's weight: an entry of the palette, or a direct value, whose lowest bit is the sign.
 */
static bool store_weight(const struct palette *palette, uint64_t code, int16_t *out)
{
    const uint64_t value = code < palette->size ? palette->entries[code]
                                                : code - palette->size + palette->direct_offset;
    const int16_t magnitude = (int16_t)(value >> 1 & MAX_MAGNITUDE);

    *out = (value & 1u) != 0 ? (int16_t)-magnitude : magnitude;
    return value >> 1 <= MAX_MAGNITUDE;
}

static bool finish_weights(struct bits *bits, struct symbols *weights,
                           const struct palette *palette, int16_t *out)
{
    const uint32_t count = wanted(weights);
    bool is_right = true;

    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t code = weights->last.of[i] << weights->divisor;
        is_right &=
            store_weight(palette, code + take(bits, weights->divisor), &out[weights->done++]);
    }
    weights->last = weights->next;
    return is_right;
}

static void finish_runs(struct bits *bits, struct symbols *runs, uint64_t *out)
{
    const uint32_t count = wanted(runs);

    for (uint32_t i = 0; i < count; ++i) {
        out[runs->done++] = (runs->last.of[i] << runs->divisor) + take(bits, runs->divisor);
    }
    runs->last = runs->next;
}

/* Reads the quotients of a chunk of weights, and of one of runs, which lies inside of the first. */
static void read_quotients(struct bits *bits, const struct slice_header *header,
                           struct symbols *weights, struct symbols *runs)
{
    const bool is_compressed = header->divisor != UNCOMPRESSED;
    const uint32_t first = weights->next.is_read && is_compressed ? take(bits, CHUNK) : 0;

    if (runs->next.is_read) {
        const uint32_t length = runs->divisor < 3 ? CHUNK : SHORT_CHUNK;
        read_unary(runs, take(bits, length), length);
    }
    if (!weights->next.is_read) {
        return;
    }
    if (!is_compressed) {
        const uint32_t length = weights->divisor > 5 ? SHORT_CHUNK : CHUNK;
        for (uint32_t i = 0; i < length; ++i) {
            begin(weights, 0);
        }
    } else if (header->is_short) {
        read_short(weights, first, take(bits, ones(first)));
    } else {
        read_two_step(weights, first, take(bits, ones(first)));
    }
}

/* Returns the bits of an uncompressed weight: those of an index of the palette, if there is one. */
static uint32_t fixed_width(const struct palette *palette)
{
    uint32_t bits = 0;

    if (palette->size == 0) {
        return palette->bits;
    }
    while ((palette->size - 1) >> bits != 0) {
        bits++;
    }
    return bits;
}

static int32_t read_slice(struct bits *bits, const struct slice_header *header,
                          const struct palette *palette, struct ferrule_weight_slice *slice)
{
    const bool has_runs = header->zero_divisor != NO_ZERO_RUNS;
    struct symbols weights = {.divisor = header->divisor, .needed = header->count};
    struct symbols runs = {.divisor = header->zero_divisor};
    bool is_right = true;

    if (header->divisor == UNCOMPRESSED) {
        weights.divisor = fixed_width(palette);
    }
    if (has_runs) {
        runs.needed = header->count + (header->has_palette ? 1 : 0);
    }
    do {
        const int64_t ahead = has_runs ? (int64_t)weights.begun - (int64_t)runs.begun : 0;
        weights.next.count = 0;
        weights.next.is_read = weights.begun < weights.needed && ahead < (int64_t)LEAD;
        runs.next.count = 0;
        runs.next.is_read = runs.begun < runs.needed && ahead >= 0;
        read_quotients(bits, header, &weights, &runs);
        is_right &= finish_weights(bits, &weights, palette, slice->weights);
        finish_runs(bits, &runs, slice->runs);
    } while ((weights.last.is_read || runs.last.is_read) && !bits->ended);
    if (bits->ended) {
        return FERRULE_WEIGHTS_END;
    }
    return is_right ? FERRULE_WEIGHTS_DONE : FERRULE_WEIGHTS_MAGNITUDE;
}

/* Returns how many zeros of a run fit, after storing them. */
static uint64_t put_zeros(int16_t *out, uint64_t at, uint64_t capacity, uint64_t run)
{
    const uint64_t count = run < capacity - at ? run : capacity - at;

    memset(&out[at], 0, count * sizeof out[0]);
    return count;
}

/* Returns how many weights there are after a slice with its zeros was added. */
static uint64_t put_slice(const struct slice_header *header,
                          const struct ferrule_weight_slice *slice, int16_t *out, uint64_t at,
                          uint64_t capacity)
{
    const uint64_t *runs = slice->runs;

    if (header->zero_divisor != NO_ZERO_RUNS && header->has_palette) {
        at += put_zeros(out, at, capacity, *runs++);
    }
    for (uint32_t i = 0; i < header->count && at < capacity; ++i) {
        out[at++] = slice->weights[i];
        if (header->zero_divisor != NO_ZERO_RUNS) {
            at += put_zeros(out, at, capacity, runs[i]);
        }
    }
    return at;
}

int32_t ferrule_weights_decode(const uint8_t *data, uint64_t size_bytes,
                               struct ferrule_weight_slice *slice, int16_t *out, uint64_t capacity,
                               uint64_t *count)
{
    struct bits bits = {.data = data, .end = 8 * size_bytes};
    struct palette palette = {.size = 0};
    bool has_palette = false;

    *count = 0;
    while (*count < capacity && bits.end - bits.at >= 3) {
        struct slice_header header = {.zero_divisor = take(&bits, 3)};
        if (header.zero_divisor == END_OF_SLICES) {
            bits.at = (bits.at + 7) & ~7ull;
            has_palette = false;
            continue;
        }
        header.count = take(&bits, 15) + 1;
        header.divisor = take(&bits, 3);
        header.is_short = take(&bits, 1) != 0;
        header.has_palette = take(&bits, 1) != 0;
        if (bits.ended) {
            return FERRULE_WEIGHTS_END;
        }
        if (header.has_palette) {
            read_palette(&bits, &palette);
            has_palette = true;
        }
        if (!has_palette) {
            return FERRULE_WEIGHTS_PALETTE;
        }
        if (header.divisor == RESERVED_DIVISOR) {
            return FERRULE_WEIGHTS_DIVISOR;
        }
        const int32_t result = read_slice(&bits, &header, &palette, slice);
        if (result != FERRULE_WEIGHTS_DONE) {
            return result;
        }
        *count = put_slice(&header, slice, out, *count, capacity);
    }
    return FERRULE_WEIGHTS_DONE;
}
