/* SPDX-License-Identifier: Apache-2.0 */
#include "execute.h"

#include <stddef.h>

enum {
    MAX_SHIFT = 63,
};

typedef int16_t __attribute__((aligned(1), may_alias)) s16;
typedef int32_t __attribute__((aligned(1), may_alias)) s32;

/* ---- feature maps */

static int32_t element_size(int32_t type)
{
    return type == FERRULE_ETHOS_U_S32 ? 4 : type == FERRULE_ETHOS_U_S16 ? 2 : 1;
}

static void load(int32_t type, const uint8_t *from, int32_t count, int32_t zero_point, int32_t *to)
{
    switch (type) {
    case FERRULE_ETHOS_U_U8:
        for (int32_t i = 0; i < count; i++) {
            to[i] = from[i] - zero_point;
        }
        break;
    case FERRULE_ETHOS_U_S8:
        for (int32_t i = 0; i < count; i++) {
            to[i] = (int8_t)from[i] - zero_point;
        }
        break;
    case FERRULE_ETHOS_U_S16:
        for (int32_t i = 0; i < count; i++) {
            to[i] = ((const s16 *)from)[i] - zero_point;
        }
        break;
    default:
        for (int32_t i = 0; i < count; i++) {
            to[i] = ((const s32 *)from)[i];
        }
    }
}

static void store(int32_t type, uint8_t *to, int32_t count, const int32_t *from)
{
    switch (type) {
    case FERRULE_ETHOS_U_U8:
    case FERRULE_ETHOS_U_S8:
        for (int32_t i = 0; i < count; i++) {
            to[i] = (uint8_t)from[i];
        }
        break;
    case FERRULE_ETHOS_U_S16:
        for (int32_t i = 0; i < count; i++) {
            ((s16 *)to)[i] = (int16_t)from[i];
        }
        break;
    default:
        for (int32_t i = 0; i < count; i++) {
            ((s32 *)to)[i] = from[i];
        }
    }
}

/* The two directions differ in one call each; `writes` is a constant where this is inlined. */
static inline void transfer(const struct ferrule_ethos_u_map *map, int32_t y, int32_t *row,
                            int32_t writes)
{
    const int32_t size = element_size(map->type);
    for (int32_t t = 0; t < map->tile_count; t++) {
        const struct ferrule_ethos_u_tile *tile = &map->tile[t];
        if (y < tile->y0 || y >= tile->y1) {
            continue;
        }
        uint8_t *line = tile->first + (y - tile->y0) * map->stride_y;
        int32_t step = map->brick;
        int32_t pixels = tile->x1 - tile->x0;
        int32_t run = 1;
        if (map->depth == step && map->stride_x == (int64_t)map->depth * size) {
            run = pixels; /* the whole line lies together */
        }
        for (int32_t x = 0; x < pixels; x += run) {
            uint8_t *pixel = line + x * map->stride_x;
            int32_t *element = row + (ptrdiff_t)(tile->x0 + x) * map->depth;
            for (int32_t c = 0; c < map->depth; c += step) {
                int32_t left = map->depth - c;
                int32_t count = (left < step ? left : step) * run;
                uint8_t *memory = pixel + (c / step) * map->stride_c;
                if (writes) {
                    store(map->type, memory, count, element + c);
                } else {
                    load(map->type, memory, count, map->zero_point, element + c);
                }
            }
        }
    }
}

static void load_row(const struct ferrule_ethos_u_map *map, int32_t y, int32_t *row)
{
    transfer(map, y, row, 0);
}

static void store_row(const struct ferrule_ethos_u_map *map, int32_t y, int32_t *row)
{
    transfer(map, y, row, 1);
}

/* ---- scaling and activation */

static inline int64_t shifted(int64_t value, int64_t shift, int32_t mode, int32_t headroom)
{
    int64_t half = shift > 0 ? (int64_t)1 << (shift - 1) : 0;
    if (mode == FERRULE_ETHOS_U_DOUBLE && shift > 31 - headroom) {
        int64_t nudge = (int64_t)1 << (30 - headroom);
        half += value >= 0 ? nudge : -nudge;
    }
    return (value + half) >> shift;
}

static inline int64_t scaled(const struct ferrule_ethos_u_scale *scale, int64_t value)
{
    return shifted(value * scale->factor, scale->shift, scale->mode, scale->headroom);
}

static inline int64_t clamped(int64_t value, int64_t low, int64_t high)
{
    int64_t raised = value < low ? low : value; /* as numpy: if low > high, the result is high */
    return raised > high ? high : raised;
}

static int32_t looked_up(const struct ferrule_ethos_u_activation *last, int32_t value)
{
    switch (last->type) {
    case FERRULE_ETHOS_U_U8:
        return last->entries[value];
    case FERRULE_ETHOS_U_S8:
        return (int8_t)last->entries[value + 128];
    case FERRULE_ETHOS_U_S16: {
        const s16 *pair = (const s16 *)last->entries + 2 * ((value + 32768) >> 7);
        return pair[0] + ((pair[1] * ((value + 32768) & 127) + 64) >> 7);
    }
    default:
        return ((const s32 *)last->entries)[value + 128];
    }
}

static inline int32_t activated(const struct ferrule_ethos_u_activation *last, int64_t value)
{
    value += last->zero_point;
    if (last->clips) {
        value = clamped(value, last->low, last->high);
    }
    if (last->entries != NULL) {
        return looked_up(last, (int32_t)value);
    }
    return last->type == FERRULE_ETHOS_U_S32 ? (int32_t)clamped(value, INT32_MIN, INT32_MAX)
                                             : (int32_t)value;
}

/* ---- CONV and DEPTHWISE */

/* The elements of a row of the IFM with padding. */
static ptrdiff_t line_elements(const struct ferrule_ethos_u_convolution *op)
{
    const struct ferrule_ethos_u_window *w = &op->window;
    return (ptrdiff_t)(w->left + w->width + w->right) * op->ifm.depth;
}

#define EXTEND(name, type)                                                                         \
    void name(const struct ferrule_ethos_u_convolution *op, int32_t *row, type *out)               \
    {                                                                                              \
        const ptrdiff_t depth = op->ifm.depth;                                                     \
        const ptrdiff_t line = line_elements(op);                                                  \
        const ptrdiff_t left = op->window.left * depth;                                            \
        const ptrdiff_t right = left + op->window.width * depth;                                   \
        const int32_t rows = op->window.top + op->window.height + op->window.bottom;               \
        for (int32_t y = 0; y < rows; y++, out += line) {                                          \
            const int32_t inside = y - op->window.top;                                             \
            const int32_t is_inside = inside >= 0 && inside < op->window.height;                   \
            if (is_inside) {                                                                       \
                load_row(&op->ifm, inside, row);                                                   \
            }                                                                                      \
            for (ptrdiff_t i = 0; i < (is_inside ? left : line); i++) {                            \
                out[i] = 0;                                                                        \
            }                                                                                      \
            for (ptrdiff_t i = left; is_inside && i < right; i++) {                                \
                out[i] = (type)row[i - left];                                                      \
            }                                                                                      \
            for (ptrdiff_t i = right; is_inside && i < line; i++) {                                \
                out[i] = 0;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

EXTEND(ferrule_ethos_u_extend, float)
EXTEND(ferrule_ethos_u_extend_short, int16_t)

void ferrule_ethos_u_patches(const struct ferrule_ethos_u_convolution *op, const float *extended,
                             int32_t y0, int32_t y1, float *out)
{
    const struct ferrule_ethos_u_window *w = &op->window;
    const ptrdiff_t depth = op->ifm.depth;
    const ptrdiff_t line = line_elements(op);
    const int32_t parts = w->dilation_x == 1 ? 1 : w->taps_x;
    const ptrdiff_t run = w->dilation_x == 1 ? w->taps_x * depth : depth;
    for (int32_t y = y0; y < y1; y++) {
        for (int32_t x = 0; x < op->ofm.width; x++) {
            const float *corner =
                extended + (ptrdiff_t)y * w->stride_y * line + x * w->stride_x * depth;
            for (int32_t row = 0; row < w->taps_y; row++) {
                for (int32_t part = 0; part < parts; part++) {
                    const float *from =
                        corner + row * w->dilation_y * line + part * w->dilation_x * depth;
                    for (ptrdiff_t i = 0; i < run; i++) {
                        out[i] = from[i];
                    }
                    out += run;
                }
            }
        }
    }
}

/* The same result as by `shifted` and `activated`, in float64: see struct ferrule_ethos_u_real. */
#define FINISH_PIXEL(name, type)                                                                   \
    static void name##_pixel(const struct ferrule_ethos_u_convolution *op,                         \
                             const type *restrict sums, int32_t *restrict to)                      \
    {                                                                                              \
        const double *restrict bias = op->real.bias;                                               \
        const double *restrict factor = op->real.factor;                                           \
        const double *restrict above = op->real.above;                                             \
        const double *restrict below = op->real.below;                                             \
        const int32_t zero_point = op->activation.zero_point;                                      \
        const int32_t low = (int32_t)op->activation.low;                                           \
        const int32_t high = (int32_t)op->activation.high;                                         \
        const int32_t depth = op->ofm.depth;                                                       \
        const double limit = 1 << 30;                                                              \
        for (int32_t c = 0; c < depth; c++) {                                                      \
            const double product = ((double)sums[c] + bias[c]) * factor[c];                        \
            const double up = above[c];                                                            \
            const double down = below[c];                                                          \
            const double nudged = product + (product >= 0 ? up : down);                            \
            const double raised = nudged < -limit ? -limit : nudged;                               \
            const double value = raised > limit ? limit : raised;                                  \
            const int32_t whole = (int32_t)value;                                                  \
            const int32_t shifted = whole - ((double)whole > value ? 1 : 0) + zero_point;          \
            const int32_t clamped = shifted < low ? low : shifted;                                 \
            to[c] = clamped > high ? high : clamped;                                               \
        }                                                                                          \
    }

#define FINISH(name, type)                                                                         \
    FINISH_PIXEL(name, type)                                                                       \
    void name(const struct ferrule_ethos_u_convolution *op, const type *sums, int32_t y0,          \
              int32_t y1, int32_t *row)                                                            \
    {                                                                                              \
        const int32_t depth = op->ofm.depth;                                                       \
        for (int32_t y = y0; y < y1; y++) {                                                        \
            int32_t *to = row;                                                                     \
            for (int32_t x = 0; x < op->ofm.width; x++, sums += depth, to += depth) {              \
                if (op->real.bias != NULL) {                                                       \
                    name##_pixel(op, sums, to);                                                    \
                    continue;                                                                      \
                }                                                                                  \
                for (int32_t c = 0; c < depth; c++) {                                              \
                    const int64_t value = ((int64_t)sums[c] + op->bias[c]) * op->factor[c];        \
                    to[c] = activated(&op->activation, shifted(value, op->shift[c], op->mode, 0)); \
                }                                                                                  \
            }                                                                                      \
            store_row(&op->ofm, y, row);                                                           \
        }                                                                                          \
    }

FINISH(ferrule_ethos_u_finish, float)
FINISH(ferrule_ethos_u_finish_wide, double)
FINISH(ferrule_ethos_u_finish_short, int32_t)

void ferrule_ethos_u_depthwise(const struct ferrule_ethos_u_convolution *op,
                               const int16_t *extended, const int16_t *weights, int32_t *sums,
                               int32_t *row)
{
    const struct ferrule_ethos_u_window *w = &op->window;
    const int32_t depth = op->ofm.depth;
    const ptrdiff_t line = line_elements(op);
    for (int32_t y = 0; y < op->ofm.height; y++) {
        for (int32_t x = 0; x < op->ofm.width; x++) {
            const int16_t *corner =
                extended + (ptrdiff_t)y * w->stride_y * line + (ptrdiff_t)x * w->stride_x * depth;
            int32_t *restrict sum = sums + (ptrdiff_t)x * depth;
            const int16_t *weight = weights;
            for (int32_t c = 0; c < depth; c++) {
                sum[c] = 0;
            }
            for (int32_t ky = 0; ky < w->taps_y; ky++) {
                for (int32_t kx = 0; kx < w->taps_x; kx++, weight += depth) {
                    const int16_t *restrict met =
                        corner + ky * w->dilation_y * line + kx * w->dilation_x * depth;
                    for (int32_t c = 0; c < depth; c++) {
                        sum[c] += met[c] * weight[c];
                    }
                }
            }
        }
        ferrule_ethos_u_finish_short(op, sums, y, y + 1, row);
    }
}

/* ---- POOL */

static int32_t taps_inside(const struct ferrule_ethos_u_window *w, int32_t y, int32_t x,
                           int32_t *ys, int32_t *xs)
{
    int32_t top = y * w->stride_y - w->top;
    int32_t left = x * w->stride_x - w->left;
    int32_t bottom = top + w->taps_y;
    int32_t right = left + w->taps_x;
    ys[0] = top < 0 ? 0 : top;
    xs[0] = left < 0 ? 0 : left;
    ys[1] = bottom > w->height ? w->height : bottom;
    xs[1] = right > w->width ? w->width : right;
    return ys[1] > ys[0] && xs[1] > xs[0] ? (ys[1] - ys[0]) * (xs[1] - xs[0]) : 0;
}

static int64_t pooled(const struct ferrule_ethos_u_pooling *op, const int32_t *in,
                      const int32_t *ys, const int32_t *xs)
{
    const ptrdiff_t depth = op->ifm.depth;
    int64_t sum = 0;
    int64_t largest = -((int64_t)1 << 40);
    for (int32_t y = ys[0]; y < ys[1]; y++) {
        for (int32_t x = xs[0]; x < xs[1]; x++) {
            int64_t value = in[((ptrdiff_t)y * op->window.width + x) * depth];
            sum += value;
            largest = value > largest ? value : largest;
        }
    }
    return op->mode == 0 ? largest : sum;
}

static int64_t divided(int64_t total, int64_t count)
{
    int64_t half = count / 2;
    return total >= 0 ? (total + half) / count : -((half - total) / count);
}

static void sum_channels(const struct ferrule_ethos_u_pooling *op, const int32_t *in, int32_t *out)
{
    const ptrdiff_t pixels = (ptrdiff_t)op->ofm.height * op->ofm.width;
    for (ptrdiff_t i = 0; i < pixels; i++) {
        int64_t sum = 0;
        for (int32_t c = 0; c < op->ifm.depth; c++) {
            sum += *in++;
        }
        out[i] = activated(&op->activation, scaled(&op->scale, sum));
    }
}

static void slide(const struct ferrule_ethos_u_pooling *op, const int32_t *in, int32_t *out)
{
    for (int32_t y = 0; y < op->ofm.height; y++) {
        for (int32_t x = 0; x < op->ofm.width; x++) {
            int32_t ys[2];
            int32_t xs[2];
            int32_t count = taps_inside(&op->window, y, x, ys, xs);
            for (int32_t c = 0; c < op->ofm.depth; c++) {
                int64_t value = pooled(op, in + c, ys, xs);
                if (op->divides) {
                    value = divided(value, count > 0 ? count : 1);
                } else {
                    value = scaled(&op->scale, value);
                }
                *out++ = activated(&op->activation, value);
            }
        }
    }
}

void ferrule_ethos_u_pooling(const struct ferrule_ethos_u_pooling *op, int32_t *in, int32_t *out)
{
    for (int32_t y = 0; y < op->ifm.height; y++) {
        load_row(&op->ifm, y, in + (ptrdiff_t)y * op->ifm.width * op->ifm.depth);
    }
    if (op->mode == 2) {
        sum_channels(op, in, out);
    } else {
        slide(op, in, out);
    }
    for (int32_t y = 0; y < op->ofm.height; y++) {
        store_row(&op->ofm, y, out + (ptrdiff_t)y * op->ofm.width * op->ofm.depth);
    }
}

/* ---- ELEMENTWISE */

enum {
    MUL,
    ADD,
    SUB,
    MIN,
    MAX,
    LRELU,
    ABS,
    CLZ,
    SHR,
    SHL,
};

static int64_t leading_zeros(uint32_t word)
{
    return word == 0 ? 32 : __builtin_clz(word);
}

static inline int64_t rescaled(const struct ferrule_ethos_u_elementwise *op, int64_t value)
{
    return op->ifm.type == FERRULE_ETHOS_U_S32 ? shifted(value, op->scale.shift, op->scale.mode, 0)
                                               : scaled(&op->scale, value);
}

static inline int64_t combined(const struct ferrule_ethos_u_elementwise *op, int32_t mode,
                               int64_t a, int64_t b)
{
    switch (mode) {
    case MUL:
        return rescaled(op, a * b);
    case ADD:
    case SUB: {
        int64_t left = scaled(&op->first, a);
        int64_t right = scaled(&op->second, b);
        int64_t total = mode == ADD ? left + right : left - right;
        return op->is_scaled ? rescaled(op, total) : total;
    }
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case LRELU:
        return a >= 0 ? a : scaled(&op->scale, a);
    case ABS:
        return scaled(&op->scale, a < 0 ? -a : a);
    case CLZ:
        return leading_zeros((uint32_t)a);
    case SHR:
        return shifted(a, b, op->scale.mode, 0);
    default:
        return (int32_t)(uint32_t)((uint64_t)a << b);
    }
}

/* One loop for each mode, so that the compiler hoists the decisions out of it. */
#define EACH(mode)                                                                                 \
    case mode:                                                                                     \
        for (int32_t i = 0; i < count; i++) {                                                      \
            int64_t mine = first[i];                                                               \
            int64_t other = second[i * step];                                                      \
            int64_t value =                                                                        \
                op->swapped ? combined(op, mode, other, mine) : combined(op, mode, mine, other);   \
            first[i] = activated(&op->activation, value);                                          \
        }                                                                                          \
        break;

static void combine(const struct ferrule_ethos_u_elementwise *op, int32_t *first,
                    const int32_t *second, int32_t step, int32_t count)
{
    switch (op->mode) {
        EACH(MUL)
        EACH(ADD)
        EACH(SUB)
        EACH(MIN)
        EACH(MAX)
        EACH(LRELU)
        EACH(ABS)
        EACH(CLZ)
        EACH(SHR)
    default:
        EACH(SHL)
    }
}

static int32_t are_shifts(const int32_t *values, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] > MAX_SHIFT) {
            return 0;
        }
    }
    return 1;
}

int32_t ferrule_ethos_u_elementwise(const struct ferrule_ethos_u_elementwise *op, int32_t *first,
                                    int32_t *second)
{
    const struct ferrule_ethos_u_map *ofm = &op->ofm;
    const struct ferrule_ethos_u_map *other = &op->ifm2;
    const ptrdiff_t line = (ptrdiff_t)ofm->width * ofm->depth;
    const ptrdiff_t other_line = (ptrdiff_t)other->width * other->depth;
    for (int32_t y = 0; y < ofm->height; y++) {
        load_row(&op->ifm, y, first + y * line);
    }
    for (int32_t y = 0; y < other->height; y++) {
        load_row(other, y, second + y * other_line);
    }
    if (other->tile_count == 0) {
        second[0] = (int32_t)op->scalar;
    }
    if (op->mode == SHR || op->mode == SHL) {
        const int32_t *shifts = op->swapped ? first : second;
        if (!are_shifts(shifts, op->swapped ? ofm->height * line : other->height * other_line)) {
            return 1;
        }
    }
    for (int32_t y = 0; y < ofm->height; y++) {
        int32_t *row = first + y * line;
        const int32_t *from = second + (other->height == 1 ? 0 : y * other_line);
        if (other->width == ofm->width && other->depth == ofm->depth) {
            combine(op, row, from, 1, (int32_t)line);
            continue;
        }
        for (int32_t x = 0; x < ofm->width; x++) {
            const int32_t *pixel = from + (other->width == 1 ? 0 : (ptrdiff_t)x * other->depth);
            combine(op, row + (ptrdiff_t)x * ofm->depth, pixel, other->depth == 1 ? 0 : 1,
                    ofm->depth);
        }
    }
    for (int32_t y = 0; y < ofm->height; y++) {
        store_row(ofm, y, first + y * line);
    }
    return 0;
}
