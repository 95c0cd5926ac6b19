/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The C interface of dynamic backends.
 *
 * A dynamic backend is a shared object called <vendor>_<name>_backend.so[.<version>] with the three
 * entry points at the end of this file. docs/dynamic_backends.md leads through them, and
 * examples/dynamic_backend is a complete one.
 *
 * Versions: the major version changes when something here changes its meaning or its place. The
 * minor version changes when fields are added, which happens at the end of structs only. A host
 * takes backends of its own major version and of no newer minor version. So whatever the host hands
 * over holds at least what the backend knows of; and each table that a backend hands over begins
 * with its own size, behind which the host reads nothing. Structs that stand in arrays or in other
 * structs (ferrule_option, ferrule_quantization) do not grow.
 *
 * Tables: a null table, and a null function that is called optional, stand for what the backend
 * does not have. Tables and the texts in them are constants of the shared object: they stay as they
 * are until it is unloaded. It is unloaded after everything that was made by it was destroyed.
 *
 * Threads: any function may be called in any thread, and different objects (workloads, handles,
 * memories, contexts) at the same time; one object is used by one thread at a time.
 *
 * Failures: functions return FERRULE_OK or a negative enum ferrule_status. Where `reason` is
 * handed over they then put a sentence there: text that ends with a zero byte, at most
 * `reason_bytes` with it. No C++ exception may leave a function.
 *
 * Memory: what the host hands over (texts, layers, tensors, options) lasts as long as the call,
 * except where it is said.
 */
#ifndef FERRULE_BACKEND_H
#define FERRULE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/layers.h"
#include "ferrule/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface, for GetVersion and for struct ferrule_backend. */
#define FERRULE_BACKEND_API_MAJOR 1u
#define FERRULE_BACKEND_API_MINOR 1u

struct ferrule_backend;

/** Kinds of memory that can be imported or exported; flags. */
enum ferrule_memory_source {
    FERRULE_MEMORY_UNDEFINED = 0,
    FERRULE_MEMORY_MALLOC = 1, /**< plain memory of the process */
    FERRULE_MEMORY_DMA_BUF = 2,
    FERRULE_MEMORY_DMA_BUF_PROTECTED = 4,
    FERRULE_MEMORY_DEVICE = 8, /**< memory of a device that the process does not see */
};

/** What holds for the handles of a factory; flags. */
enum ferrule_handle_capability {
    FERRULE_HANDLE_PADDING_REQUIRED = 1, /**< tensors need room around them: none is imported */
    FERRULE_HANDLE_FALLBACK_IMPORT_DISABLED = 2, /**< what others computed is not imported */
};

/** Which field of a struct ferrule_option counts. */
enum ferrule_option_kind {
    FERRULE_OPTION_BOOL = 0,  /**< `integer`, 0 or 1 */
    FERRULE_OPTION_INT = 1,   /**< `integer` */
    FERRULE_OPTION_FLOAT = 2, /**< `number` */
    FERRULE_OPTION_TEXT = 3,  /**< `text` */
};

/** A name and a value: an option of the user's, or a capability of the backend. */
struct ferrule_option {
    const char *name;
    int32_t kind; /**< enum ferrule_option_kind */
    int64_t integer;
    double number;
    const char *text;
};

/** real = scale * (stored - zero point). */
struct ferrule_quantization {
    const float *scales;        /**< `count` of them */
    const int64_t *zero_points; /**< `count` of them */
    uint32_t count; /**< 0: not quantised; 1: per tensor; more: one per index of `axis` */
    int32_t axis;
};

/** A tensor: what is known of it, and where its elements are. */
struct ferrule_tensor {
    const char *name;
    const int64_t *dims; /**< outermost first; images are NHWC */
    uint32_t rank;       /**< number of dims; 0 is a scalar */
    int32_t type;        /**< enum ferrule_data_type */
    struct ferrule_quantization quantization;
    size_t size_bytes;
    /**
     * The elements, dense and in row-major order. Null where they are not known yet (a tensor that
     * is no constant, outside of execute) and where `handle` is set.
     */
    void *data;
    /** In execute: the handle that one of the backend's own factories made for it, or null. */
    void *handle;
};

/** A layer: an operator, its parameters and its tensors. */
struct ferrule_layer {
    const char *name;
    int32_t type; /**< enum ferrule_layer_type */
    /** Size of the descriptor, 0 if the operator has no parameters. */
    uint32_t descriptor_bytes;
    /** The struct of layers.h that belongs to the type; struct ferrule_pre_compiled for
     * PRE_COMPILED.
     */
    const void *descriptor;
    const struct ferrule_tensor *const *inputs; /**< null for an optional input that is absent */
    uint32_t input_count;
    const struct ferrule_tensor *const *outputs;
    uint32_t output_count;
};

/* ---- the target of a question, since version 1.1 */

/** Where a network is to run. */
enum ferrule_face {
    FERRULE_FACE_HOST = 0,     /**< in this process */
    FERRULE_FACE_FIRMWARE = 1, /**< on a board */
};

/** A memory on the bus of a board's core; stands in arrays and does not grow. */
struct ferrule_core_memory {
    const char *name;
    uint64_t address;
    uint64_t size_bytes;
    bool writable;       /**< RAM; else flash */
    bool cacheable;      /**< the core's data cache may hold its lines */
    uint32_t line_bytes; /**< of that cache; 0 where nothing is cached */
};

/** Where a layer is to run; the same in each question about one device. */
struct ferrule_target {
    size_t size_bytes;                    /**< of this struct, as the host knows it */
    int32_t face;                         /**< enum ferrule_face */
    const char *device;                   /**< name of the device instance */
    const struct ferrule_option *binding; /**< the device's, integers and texts */
    uint32_t binding_count;
    const char *const *regions; /**< names of the memories that the device reaches */
    uint32_t region_count;      /**< 0: all of them */
    const char *core; /**< as GCC's -mcpu names it; null on the host, and without a board */
    bool fpu;         /**< of the core: single precision in hardware */
    bool dsp;
    bool mve;
    const struct ferrule_core_memory *memories;
    uint32_t memory_count;                /**< 0 on the host, and without a board */
    const struct ferrule_option *options; /**< the user's for this backend */
    uint32_t option_count;
};

/** The descriptor of a PRE_COMPILED layer: what the backend's optimizer gave for it. */
struct ferrule_pre_compiled {
    const void *object;
    size_t object_bytes;
};

/* ---- layer support, required */

/** Which layers the backend takes. */
struct ferrule_layer_support {
    size_t size_bytes; /**< of this table */
    /**
     * @brief Answer whether the backend runs a layer; constants have their data.
     *
     * @retval FERRULE_OK              it does
     * @retval FERRULE_ERR_UNSUPPORTED it does not; `reason` names the tensor, type or parameter
     */
    int32_t (*supports)(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes);
    /** @brief Answer the same for one device; asked instead of `supports`. Optional, since 1.1. */
    int32_t (*supports_on)(const struct ferrule_backend *backend,
                           const struct ferrule_target *target, const struct ferrule_layer *layer,
                           char *reason, size_t reason_bytes);
};

/* ---- capabilities, optional */

/** What the backend can do besides running layers. */
struct ferrule_capabilities {
    size_t size_bytes; /**< of this table */
    /** @brief Return `*count` names and values, constants of the shared object. */
    const struct ferrule_option *(*list)(const struct ferrule_backend *backend, uint32_t *count);
};

/* ---- optimizer, optional */

/** Connected layers, all of which the backend takes. Equal tensor pointers are the same tensor. */
struct ferrule_subgraph {
    const struct ferrule_layer *const *layers; /**< in an order that can be executed */
    uint32_t layer_count;
    const struct ferrule_tensor *const *inputs; /**< from outside, constants left out */
    uint32_t input_count;
    const struct ferrule_tensor *const *outputs; /**< that the outside reads */
    uint32_t output_count;
};

/**
 * Through which the backend answers. Layers are named by their index in the subgraph; each may be
 * named once; those that are not named stay untouched.
 */
struct ferrule_optimizer_answers {
    void *host; /**< the first argument of each */
    /** @brief The backend cannot run the layer after all: it is offered to the next backend. */
    int32_t (*fail)(void *host, uint32_t layer, const char *reason);
    /** @brief The layer is not needed: its one input is its one output. */
    int32_t (*erase)(void *host, uint32_t layer);
    /**
     * @brief Some layers become one PRE_COMPILED layer.
     *
     * Its inputs are the tensors that come from outside of these layers, constants left out, in the
     * order of their first reader; its outputs those that the outside reads, in the order of their
     * writers. The object is copied; workloads find it in struct ferrule_pre_compiled.
     */
    int32_t (*pre_compile)(void *host, const uint32_t *layers, uint32_t layer_count,
                           const char *label, uint64_t macs, const void *object,
                           size_t object_bytes);
};

/** What the backend makes of layers before they are loaded. */
struct ferrule_optimizer {
    size_t size_bytes; /**< of this table */
    /** @brief Answer for one subgraph; the options are the user's for this backend. */
    int32_t (*optimize)(const struct ferrule_backend *backend,
                        const struct ferrule_subgraph *subgraph,
                        const struct ferrule_option *options, uint32_t option_count,
                        const struct ferrule_optimizer_answers *answers, char *reason,
                        size_t reason_bytes);
    /** @brief Answer the same for one device; asked instead of `optimize`. Optional, since 1.1. */
    int32_t (*optimize_on)(const struct ferrule_backend *backend,
                           const struct ferrule_target *target,
                           const struct ferrule_subgraph *subgraph,
                           const struct ferrule_optimizer_answers *answers, char *reason,
                           size_t reason_bytes);
};

/* ---- workloads, optional: without them the backend runs nothing */

/** What a workload is made from. */
struct ferrule_workload_info {
    /** Lasts as long as the workload, with its tensors and the data of constants. */
    const struct ferrule_layer *layer;
    const char *device;                   /**< name of the device instance */
    const struct ferrule_option *options; /**< the user's for this backend and network */
    uint32_t option_count;
    void *memory; /**< what `create` of struct ferrule_memory made for this network, or null */
    /** The device, with its binding. Since 1.1. */
    const struct ferrule_target *target;
};

/** Layers made ready to run. */
struct ferrule_workloads {
    size_t size_bytes; /**< of this table */
    /** @brief Prepare a layer: whatever can be done once is done here. */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_workload_info *info, void **workload, char *reason,
                      size_t reason_bytes);
    /**
     * @brief Run it.
     *
     * The arrays have the tensors of the layer, in its order, with `data` or `handle` set. The
     * memory is the one that the tensors live in: nothing was copied. `event` is null if the
     * backend has no events. Else `*event` is null, and if it is set, then the outputs are written
     * when the event ends, and the arrays and the memory last until then. Of tensors with handles
     * of its own the backend itself keeps the order.
     */
    int32_t (*execute)(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes);
    /** @brief Give up a workload; none of its events is pending. */
    void (*destroy)(void *workload);
};

/* ---- events, optional: without them workloads have ended when execute returns */

/** The ends of what workloads started. */
struct ferrule_events {
    size_t size_bytes; /**< of this table */
    /** @brief Return when it is over, with what became of it; may be called again. */
    int32_t (*wait)(void *event, char *reason, size_t reason_bytes);
    /** @brief Return at once whether it is over. */
    bool (*done)(void *event);
    /** @brief Give up an event that is over. */
    void (*release)(void *event);
};

/* ---- memory, optional */

/** Memory of the application's own; lasts as long as what is made with it. */
struct ferrule_allocator {
    void *host;      /**< the first argument of each */
    uint32_t source; /**< enum ferrule_memory_source */
    /** @brief Return memory of that size and alignment, null if there is none. */
    void *(*allocate)(void *host, size_t size_bytes, size_t alignment_bytes);
    /** @brief Take back what `allocate` gave. */
    void (*release)(void *host, void *memory);
};

/** Who owns the memory of one loaded network. */
struct ferrule_memory {
    size_t size_bytes; /**< of this table */
    /** @brief Make one for a network; the allocator is null unless the backend accepted one. */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_allocator *allocator, void **memory, char *reason,
                      size_t reason_bytes);
    /** @brief Get the memory, before the first run; does nothing while it is held. */
    int32_t (*acquire)(void *memory, char *reason, size_t reason_bytes);
    /** @brief Give the memory back, at unload. */
    void (*release)(void *memory);
    /** @brief Give up the manager, after all handles that were made with it. */
    void (*destroy)(void *memory);
    /**
     * @brief Answer whether the backend would take its memory from an allocator; optional.
     *
     * @retval FERRULE_ERR_UNSUPPORTED it would not; `reason` says why
     */
    int32_t (*accept)(const struct ferrule_backend *backend,
                      const struct ferrule_allocator *allocator, char *reason, size_t reason_bytes);
};

/* ---- tensor handles, optional: without them tensors live in memory of the host */

/** Makes the handles of one kind of memory. */
struct ferrule_handle_factory {
    size_t size_bytes;        /**< of this table */
    const char *id;           /**< unique among all factories, such as "Vendor/Name/Shared" */
    uint32_t import_flags;    /**< enum ferrule_memory_source: what its handles can import */
    uint32_t export_flags;    /**< as what their bytes can be given away */
    uint32_t capabilities;    /**< enum ferrule_handle_capability */
    uint32_t alignment_bytes; /**< of imported memory, a power of two; 0 counts as 1 */
    bool supports_map;        /**< whether the process can see the bytes */
    /** @brief Make a handle; `managed` if `memory` gives it its bytes, else it gets some by import.
     */
    int32_t (*create)(const struct ferrule_backend *backend, void *memory,
                      const struct ferrule_tensor *tensor, bool managed, void **handle,
                      char *reason, size_t reason_bytes);
    /** @brief The bytes are needed from here on: the producer's turn; optional. */
    void (*manage)(void *handle);
    /** @brief The bytes are not needed any more: the last reader had its turn; optional. */
    void (*allocate)(void *handle);
    /** @brief Give the elements, dense and in row-major order, for the process to see. */
    int32_t (*map)(void *handle, void **data, char *reason, size_t reason_bytes);
    /** @brief End what `map` began: what was written is seen by the backend. */
    void (*unmap)(void *handle);
    /**
     * @brief Use foreign memory from now on; false if it does not fit.
     *
     * It lasts until other memory or null is imported, or the handle is destroyed; null means that
     * the handle goes back to its own. With `try_only` nothing changes. Optional.
     */
    bool (*import_memory)(void *handle, void *data, uint32_t source, bool try_only);
    /** @brief Give up the handle. */
    void (*destroy)(void *handle);
};

/** The factories of the backend. */
struct ferrule_handles {
    size_t size_bytes;                                     /**< of this table */
    const struct ferrule_handle_factory *const *factories; /**< the preferred one first */
    uint32_t factory_count;
};

/* ---- contexts, optional */

/** How a runtime was made. */
struct ferrule_creation_options {
    bool profiling;
    bool protected_mode;
    const struct ferrule_option *options; /**< the user's for this backend */
    uint32_t option_count;
};

/** The backend's part of a runtime. */
struct ferrule_contexts {
    size_t size_bytes; /**< of this table */
    /**
     * @brief Make the backend's part of a new runtime.
     *
     * @retval FERRULE_ERR_UNAVAILABLE the backend cannot work here; the runtime goes on without it
     */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_creation_options *options, void **context, char *reason,
                      size_t reason_bytes);
    /** @brief Called before a network is loaded; false refuses the load. */
    bool (*before_load)(void *context, int64_t network);
    /** @brief Called after a network was loaded, or after its load failed half-way. */
    bool (*after_load)(void *context, int64_t network);
    /** @brief Called before a network is unloaded; false stops the unload. */
    bool (*before_unload)(void *context, int64_t network);
    /** @brief Called after a network was unloaded. */
    bool (*after_unload)(void *context, int64_t network);
    /** @brief Give up the context, with the runtime. */
    void (*destroy)(void *context);
};

/* ---- profiling, optional */

/** The backend's own events. */
struct ferrule_profiling {
    size_t size_bytes; /**< of this table */
    /** @brief Make the profiling of a new runtime. */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_creation_options *options, void **profiling,
                      char *reason, size_t reason_bytes);
    /** @brief Switch it; return whether it is as asked. */
    bool (*enable)(void *profiling, bool enabled);
    /**
     * @brief Hand over what was recorded since the last call, event by event.
     *
     * Times are in nanoseconds, of clock_gettime(CLOCK_MONOTONIC) where there is one.
     */
    void (*take_events)(void *profiling, void *host,
                        void (*event)(void *host, const char *name, int64_t start_ns,
                                      int64_t duration_ns));
    /** @brief Give up the profiling, with the runtime. */
    void (*destroy)(void *profiling);
};

/* ---- the backend */

/** What BackendFactory returns. */
struct ferrule_backend {
    size_t size_bytes;  /**< sizeof(struct ferrule_backend) */
    uint32_t api_major; /**< FERRULE_BACKEND_API_MAJOR, as GetVersion says */
    uint32_t api_minor; /**< FERRULE_BACKEND_API_MINOR, as GetVersion says */
    const struct ferrule_layer_support *layer_support; /**< required */
    const struct ferrule_capabilities *capabilities;
    const struct ferrule_optimizer *optimizer;
    const struct ferrule_workloads *workloads;
    const struct ferrule_events *events;
    const struct ferrule_memory *memory;
    const struct ferrule_handles *handles;
    const struct ferrule_contexts *contexts;
    const struct ferrule_profiling *profiling;
};

/** Makes an entry point visible, whatever the compiler's default is. */
#define FERRULE_BACKEND_EXPORT __attribute__((visibility("default")))

/** @brief Return the id: a text that is neither empty nor "Unknown". */
FERRULE_BACKEND_EXPORT const char *GetBackendId(void);

/** @brief Give the version of this interface that the backend was built with. */
FERRULE_BACKEND_EXPORT void GetVersion(uint32_t *major, uint32_t *minor);

/** @brief Return the backend, a constant of the shared object; called any number of times. */
FERRULE_BACKEND_EXPORT const struct ferrule_backend *BackendFactory(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_BACKEND_H */
