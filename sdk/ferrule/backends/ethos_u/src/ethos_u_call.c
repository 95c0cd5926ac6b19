/* SPDX-License-Identifier: Apache-2.0 */
#include "ethos_u/ethos_u.h"

#include <stddef.h>
#include <string.h>

#include "ethos_u/registers.h"
#include "ferrule/device.h"
#include "ferrule/port.h"

#define FOURCC       0x31504f43u /* "COP1" */
#define TAG_CONFIG   0x01u       /* CONFIG and ID follow */
#define TAG_COMMANDS 0x02u       /* the command stream follows */
#define TAG_NOP      0x05u
#define TAG_MASK     0xffu
#define CONFIG_WORDS 2u
#define CONFIG_BITS                                                                                \
    (ETHOS_U_CONFIG_PRODUCT_MASK | ETHOS_U_CONFIG_STREAM_VERSION_MASK |                            \
     ETHOS_U_CONFIG_MACS_LOG2_MASK)

static uint32_t word_at(const struct ethos_u_stream *stream, uint32_t index)
{
    uint32_t word;

    (void)memcpy(&word, &stream->payload[index * sizeof(word)], sizeof(word));
    return word;
}

int32_t ethos_u_read_header(const struct ethos_u_stream *stream, struct ethos_u_header *header)
{
    const uint32_t words = stream->payload_bytes / (uint32_t)sizeof(uint32_t);
    bool configured = false;

    if (words == 0u || word_at(stream, 0) != FOURCC) {
        return FERRULE_ERR_ARGUMENT;
    }
    for (uint32_t index = 1; index < words; index++) {
        const uint32_t word = word_at(stream, index);

        switch (word & TAG_MASK) {
        case TAG_NOP:
            break;
        case TAG_CONFIG:
            if (words - index <= CONFIG_WORDS) {
                return FERRULE_ERR_ARGUMENT;
            }
            header->config = word_at(stream, index + 1u);
            header->id = word_at(stream, index + 2u);
            index += CONFIG_WORDS;
            configured = true;
            break;
        case TAG_COMMANDS: {
            const uint32_t length = (word >> 16) | ((word & 0xff00u) << 8);

            header->commands = &stream->payload[(index + 1u) * sizeof(word)];
            header->command_bytes = length * (uint32_t)sizeof(word);
            return configured && length != 0u && length < words - index &&
                           (uintptr_t)header->commands % ETHOS_U_ALIGNMENT == 0u
                       ? FERRULE_OK
                       : FERRULE_ERR_ARGUMENT;
        }
        default:
            return FERRULE_ERR_ARGUMENT;
        }
    }
    return FERRULE_ERR_ARGUMENT;
}

bool ethos_u_is_compatible(const struct ethos_u_header *header, uint32_t config, uint32_t id)
{
    const bool custom_dma = (header->config & ETHOS_U_CONFIG_CUSTOM_DMA) != 0u;

    return ((header->config ^ config) & CONFIG_BITS) == 0u &&
           (!custom_dma || (config & ETHOS_U_CONFIG_CUSTOM_DMA) != 0u) &&
           ((header->id ^ id) & ETHOS_U_ID_ARCH_MAJOR_MASK) == 0u &&
           (id & ETHOS_U_ID_ARCH_MINOR_MASK) >= (header->id & ETHOS_U_ID_ARCH_MINOR_MASK);
}

const uint8_t *ethos_u_region(const struct ethos_u_work *work, uint32_t region)
{
    switch (region) {
    case ETHOS_U_READ_ONLY:
        return work->stream->read_only;
    case ETHOS_U_FAST_SCRATCH:
        return work->fast_scratch != NULL ? work->fast_scratch : work->scratch;
    default:
        return work->scratch;
    }
}

static uint32_t region_bytes(const struct ethos_u_stream *stream, uint32_t region)
{
    return region == ETHOS_U_FAST_SCRATCH && stream->fast_scratch_bytes != 0u
               ? stream->fast_scratch_bytes
               : stream->scratch_bytes;
}

/* The address of a tensor in the scratch. */
static uint8_t *place_of(const struct ethos_u_work *work, const struct ethos_u_place *place)
{
    uint8_t *region = place->region == ETHOS_U_FAST_SCRATCH && work->fast_scratch != NULL
                          ? work->fast_scratch
                          : work->scratch;

    return region + place->offset;
}

static bool is_placed(const struct ethos_u_stream *stream, const struct ethos_u_place *place)
{
    const uint32_t bytes = region_bytes(stream, place->region);

    return (place->region == ETHOS_U_SCRATCH || place->region == ETHOS_U_FAST_SCRATCH) &&
           place->offset <= bytes && place->bytes <= bytes - place->offset;
}

static bool is_aligned(const void *pointer, uint32_t bytes)
{
    return bytes == 0u || (pointer != NULL && (uintptr_t)pointer % ETHOS_U_ALIGNMENT == 0u);
}

static bool is_valid(const struct ethos_u_work *work)
{
    const struct ethos_u_stream *stream = work->stream;

    if (!is_aligned(stream->payload, stream->payload_bytes) ||
        !is_aligned(stream->read_only, stream->read_only_bytes) ||
        !is_aligned(work->scratch, stream->scratch_bytes) ||
        !is_aligned(work->fast_scratch, stream->fast_scratch_bytes)) {
        return false;
    }
    for (uint32_t index = 0; index < stream->input_count; index++) {
        if (work->inputs[index] == NULL || !is_placed(stream, &stream->inputs[index])) {
            return false;
        }
    }
    for (uint32_t index = 0; index < stream->output_count; index++) {
        if (work->outputs[index] == NULL || !is_placed(stream, &stream->outputs[index])) {
            return false;
        }
    }
    return true;
}

/* Another device may have written an input, and the core's cache may hold older bytes of it. */
int32_t ethos_u_take(const struct ethos_u_work *work)
{
    const struct ethos_u_stream *stream = work->stream;

    if (!is_valid(work)) {
        return FERRULE_ERR_ARGUMENT;
    }
    for (uint32_t index = 0; index < stream->input_count; index++) {
        const struct ethos_u_place *place = &stream->inputs[index];
        uint8_t *target = place_of(work, place);

        if (work->inputs[index] != target) {
            ferrule_cache_invalidate(work->inputs[index], place->bytes);
            (void)memcpy(target, work->inputs[index], place->bytes);
            ferrule_cache_clean(target, place->bytes);
        }
    }
    return FERRULE_OK;
}

/* The output is cleaned for a device that reads it next: for the executor, a device wrote it. */
void ethos_u_give(const struct ethos_u_work *work)
{
    const struct ethos_u_stream *stream = work->stream;

    for (uint32_t index = 0; index < stream->output_count; index++) {
        const struct ethos_u_place *place = &stream->outputs[index];
        const uint8_t *source = place_of(work, place);

        if (work->outputs[index] != source) {
            ferrule_cache_invalidate(source, place->bytes);
            (void)memcpy(work->outputs[index], source, place->bytes);
            ferrule_cache_clean(work->outputs[index], place->bytes);
        }
    }
}

int32_t ethos_u_start(void *resource_handle, const struct ethos_u_stream *stream, uint8_t *scratch,
                      uint8_t *fast_scratch, const void *const *inputs, void *const *outputs)
{
    const struct ethos_u_work work = {.stream = stream,
                                      .scratch = scratch,
                                      .fast_scratch = fast_scratch,
                                      .inputs = inputs,
                                      .outputs = outputs};

    if (stream == NULL || inputs == NULL || outputs == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    return ferrule_device_submit(resource_handle, &ethos_u_driver, &work);
}

int32_t ethos_u_execute(void *resource_handle, const struct ethos_u_stream *stream,
                        uint8_t *scratch, uint8_t *fast_scratch, const void *const *inputs,
                        void *const *outputs)
{
    const int32_t status =
        ethos_u_start(resource_handle, stream, scratch, fast_scratch, inputs, outputs);

    return status == FERRULE_OK ? ferrule_device_finish(resource_handle, stream->timeout_us)
                                : status;
}
