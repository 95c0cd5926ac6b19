/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The C interface of dynamic backends.
 *
 * A dynamic backend is a shared object called <vendor>_<name>_backend.so[.<version>] with the three
 * entry points at the end of this file. docs/dynamic_backends.md explains them step by step, and
 * examples/dynamic_backend is a complete example.
 *
 * Versions: the major version changes when a declaration here changes its meaning or its position.
 * The minor version changes when fields are added, which happens at the end of structs only. A host
 * accepts backends of its own major version whose minor version is not newer than its own. Every
 * struct passed by the host therefore has at least the fields that the backend knows. Each table
 * passed by a backend begins with its own size, and the host reads nothing beyond that size.
 * Structs that are elements of arrays or members of other structs (ferrule_option,
 * ferrule_quantization) do not grow.
 *
 * Tables: a null table, or a null pointer for an optional function, means that the backend lacks
 * the feature. Tables and the texts in them are constants of the shared object: they do not change
 * until it is unloaded. It is unloaded only after every object that it created has been destroyed.
 *
 * Threads: any function may be called in any thread. Different objects (workloads, handles,
 * memories, contexts) may be used concurrently; a single object is used by one thread at a time.
 *
 * Failures: functions return FERRULE_OK or a negative enum ferrule_status. A function with a
 * `reason` parameter describes its failure there in one sentence: zero-terminated text of at most
 * `reason_bytes` bytes, terminator included. No C++ exception may leave a function.
 *
 * Memory: arguments passed by the host (texts, layers, tensors, options) are valid for the duration
 * of the call, unless stated otherwise.
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

/** The version of this interface, reported by GetVersion and in struct ferrule_backend. */
#define FERRULE_BACKEND_API_MAJOR 1u
#define FERRULE_BACKEND_API_MINOR 3u

struct ferrule_backend;

/** Kinds of memory that can be imported or exported; flags. */
enum ferrule_memory_source {
    FERRULE_MEMORY_UNDEFINED = 0,
    FERRULE_MEMORY_MALLOC = 1, /**< ordinary memory of the process */
    FERRULE_MEMORY_DMA_BUF = 2,
    FERRULE_MEMORY_DMA_BUF_PROTECTED = 4,
    FERRULE_MEMORY_DEVICE = 8, /**< device memory that the process cannot access */
};

/** Properties of the handles that a factory makes; flags. */
enum ferrule_handle_capability {
    FERRULE_HANDLE_PADDING_REQUIRED = 1,         /**< tensors need padding: no memory is imported */
    FERRULE_HANDLE_FALLBACK_IMPORT_DISABLED = 2, /**< outputs of other backends are not imported */
    /** Shared in memory that both backends import, not by the factory's export. Since 1.2. */
    FERRULE_HANDLE_FALLBACK_IMPORT_MEMORY_REQUIRED = 4,
};

/** The field of a struct ferrule_option that holds its value. */
enum ferrule_option_kind {
    FERRULE_OPTION_BOOL = 0,  /**< `integer`, 0 or 1 */
    FERRULE_OPTION_INT = 1,   /**< `integer` */
    FERRULE_OPTION_FLOAT = 2, /**< `number` */
    FERRULE_OPTION_TEXT = 3,  /**< `text` */
};

/** A name and a value: a user option, or a capability of the backend. */
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

/** A tensor: its properties and the location of its elements. */
struct ferrule_tensor {
    const char *name;
    const int64_t *dims; /**< outermost first; images are NHWC */
    uint32_t rank;       /**< number of dims; 0 is a scalar */
    int32_t type;        /**< enum ferrule_data_type */
    struct ferrule_quantization quantization;
    size_t size_bytes;
    /**
     * The elements, dense and in row-major order. Null if they are not known yet (a tensor that is
     * not a constant, outside execute) or if `handle` is set.
     */
    void *data;
    /** In execute: the tensor's handle, made by one of the backend's own factories, or null. */
    void *handle;
};

/** A layer: an operator, its parameters and its tensors. */
struct ferrule_layer {
    const char *name;
    int32_t type; /**< enum ferrule_layer_type */
    /** Size of the descriptor, 0 if the operator has no parameters. */
    uint32_t descriptor_bytes;
    /** The descriptor struct in layers.h for the type; struct ferrule_pre_compiled for
     * PRE_COMPILED.
     */
    const void *descriptor;
    const struct ferrule_tensor *const *inputs; /**< null for an optional input that is absent */
    uint32_t input_count;
    const struct ferrule_tensor *const *outputs;
    uint32_t output_count;
    int32_t rounding; /**< enum ferrule_rounding. Since 1.3. */
};

/* ---- the target of a query, since version 1.1 */

/** The environment in which a network runs. */
enum ferrule_face {
    FERRULE_FACE_HOST = 0,     /**< in this process */
    FERRULE_FACE_FIRMWARE = 1, /**< on a board */
};

/** A memory on the bus of a board's core; used in arrays, so the struct does not grow. */
struct ferrule_core_memory {
    const char *name;
    uint64_t address;
    uint64_t size_bytes;
    bool writable;       /**< true for RAM, false for flash */
    bool cacheable;      /**< the core's data cache may hold its lines */
    uint32_t line_bytes; /**< line size of that cache; 0 if the memory is not cached */
};

/** The target on which a layer runs; the same in every query about one device. */
struct ferrule_target {
    size_t size_bytes;                    /**< size of this struct in the host's version */
    int32_t face;                         /**< enum ferrule_face */
    const char *device;                   /**< name of the device instance */
    const struct ferrule_option *binding; /**< binding of the device: integers and texts */
    uint32_t binding_count;
    const char *const *regions; /**< names of the memories that the device can access */
    uint32_t region_count;      /**< 0: all of them */
    const char *core;           /**< name for GCC's -mcpu; null on the host and without a board */
    bool fpu;                   /**< the core has single-precision floating point */
    bool dsp;
    bool mve;
    const struct ferrule_core_memory *memories;
    uint32_t memory_count;                /**< 0 on the host and without a board */
    const struct ferrule_option *options; /**< user options for this backend */
    uint32_t option_count;
};

/** The descriptor of a PRE_COMPILED layer: the object that the backend's optimizer produced for it.
 */
struct ferrule_pre_compiled {
    const void *object;
    size_t object_bytes;
};

/* ---- layer support, required */

/** The functions that answer which layers the backend supports. */
struct ferrule_layer_support {
    size_t size_bytes; /**< of this table */
    /**
     * @brief Answer whether the backend supports a layer; the data of constants is present.
     *
     * @retval FERRULE_OK              the layer is supported
     * @retval FERRULE_ERR_UNSUPPORTED it is not; `reason` names the offending tensor, type or
     *                                 parameter
     */
    int32_t (*supports)(const struct ferrule_backend *backend, const struct ferrule_layer *layer,
                        char *reason, size_t reason_bytes);
    /** @brief Answer the same for one device; called instead of `supports`. Optional, since 1.1. */
    int32_t (*supports_on)(const struct ferrule_backend *backend,
                           const struct ferrule_target *target, const struct ferrule_layer *layer,
                           char *reason, size_t reason_bytes);
};

/* ---- capabilities, optional */

/** Capabilities of the backend besides running layers. */
struct ferrule_capabilities {
    size_t size_bytes; /**< of this table */
    /** @brief Return the array of capabilities, constants of the shared object, and set `*count` to
     * its length. */
    const struct ferrule_option *(*list)(const struct ferrule_backend *backend, uint32_t *count);
};

/* ---- optimizer, optional */

/** Connected layers, all supported by the backend. Equal tensor pointers mean the same tensor. */
struct ferrule_subgraph {
    const struct ferrule_layer *const *layers; /**< in execution order */
    uint32_t layer_count;
    const struct ferrule_tensor *const *inputs; /**< tensors from outside, without constants */
    uint32_t input_count;
    const struct ferrule_tensor *const *outputs; /**< tensors that are read outside */
    uint32_t output_count;
};

/**
 * The callbacks through which the backend returns its decisions. A layer is identified by its index
 * in the subgraph. Each layer may be passed to one callback at most; the other layers stay
 * unchanged.
 */
struct ferrule_optimizer_answers {
    void *host; /**< the first argument of each callback */
    /** @brief The backend cannot run the layer after all: it is offered to the next backend. */
    int32_t (*fail)(void *host, uint32_t layer, const char *reason);
    /** @brief Remove a layer whose only output equals its only input. */
    int32_t (*erase)(void *host, uint32_t layer);
    /**
     * @brief Replace several layers by one PRE_COMPILED layer.
     *
     * Its inputs are the tensors produced outside these layers, without constants, in the order of
     * their first reader. Its outputs are the tensors read outside these layers, in the order of
     * their writers. The object is copied; workloads receive it in struct ferrule_pre_compiled.
     */
    int32_t (*pre_compile)(void *host, const uint32_t *layers, uint32_t layer_count,
                           const char *label, uint64_t macs, const void *object,
                           size_t object_bytes);
};

/** The backend's transformation of layers before they are loaded. */
struct ferrule_optimizer {
    size_t size_bytes; /**< of this table */
    /** @brief Optimise one subgraph; `options` are the user options for this backend. */
    int32_t (*optimize)(const struct ferrule_backend *backend,
                        const struct ferrule_subgraph *subgraph,
                        const struct ferrule_option *options, uint32_t option_count,
                        const struct ferrule_optimizer_answers *answers, char *reason,
                        size_t reason_bytes);
    /** @brief Optimise for one device; called instead of `optimize`. Optional, since 1.1. */
    int32_t (*optimize_on)(const struct ferrule_backend *backend,
                           const struct ferrule_target *target,
                           const struct ferrule_subgraph *subgraph,
                           const struct ferrule_optimizer_answers *answers, char *reason,
                           size_t reason_bytes);
};

/* ---- workloads, optional: without them the backend runs no layers */

/** The data from which a workload is made. */
struct ferrule_workload_info {
    /** Valid for the lifetime of the workload, with its tensors and the data of constants. */
    const struct ferrule_layer *layer;
    const char *device;                   /**< name of the device instance */
    const struct ferrule_option *options; /**< user options for this backend and network */
    uint32_t option_count;
    void *memory; /**< from `create` of struct ferrule_memory for this network, or null */
    /** The device, with its binding. Since 1.1. */
    const struct ferrule_target *target;
};

/** Layers made ready to run. */
struct ferrule_workloads {
    size_t size_bytes; /**< of this table */
    /** @brief Prepare a layer, including all work that is needed only once. */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_workload_info *info, void **workload, char *reason,
                      size_t reason_bytes);
    /**
     * @brief Run a workload.
     *
     * The arrays contain the layer's tensors in the layer's order, with `data` or `handle` set. The
     * pointers refer to the tensors' actual memory: nothing was copied. `event` is null if the
     * backend has no events. Otherwise `*event` is null on entry. If the function sets it, the
     * outputs are complete when the event ends, and the arrays and the memory stay valid until
     * then. The backend itself must order accesses to tensors that have its own handles.
     */
    int32_t (*execute)(void *workload, const struct ferrule_tensor *const *inputs,
                       const struct ferrule_tensor *const *outputs, void **event, char *reason,
                       size_t reason_bytes);
    /** @brief Destroy a workload; none of its events is pending. */
    void (*destroy)(void *workload);
};

/* ---- events, optional: without them a workload is complete when execute returns */

/** The completion of asynchronous workloads. */
struct ferrule_events {
    size_t size_bytes; /**< of this table */
    /** @brief Wait for the event to end and return the status of its workload; may be called again.
     */
    int32_t (*wait)(void *event, char *reason, size_t reason_bytes);
    /** @brief Return whether the event has ended, without waiting; true once `wait` has returned.
     */
    bool (*done)(void *event);
    /** @brief Release an event that has ended. */
    void (*release)(void *event);
};

/* ---- memory, optional */

/** An application's allocator; it outlives everything allocated with it. */
struct ferrule_allocator {
    void *host;      /**< the first argument of both functions */
    uint32_t source; /**< enum ferrule_memory_source */
    /** @brief Return memory of that size and alignment, or null if it is exhausted. */
    void *(*allocate)(void *host, size_t size_bytes, size_t alignment_bytes);
    /** @brief Free memory that `allocate` returned. */
    void (*release)(void *host, void *memory);
};

/** Manager of the memory of one loaded network. */
struct ferrule_memory {
    size_t size_bytes; /**< of this table */
    /** @brief Create a manager for a network; `allocator` is null unless the backend accepted one.
     */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_allocator *allocator, void **memory, char *reason,
                      size_t reason_bytes);
    /** @brief Acquire the memory, before the first run; does nothing if it is already held. */
    int32_t (*acquire)(void *memory, char *reason, size_t reason_bytes);
    /** @brief Release the memory, at unload. */
    void (*release)(void *memory);
    /** @brief Destroy the manager, after all handles made with it. */
    void (*destroy)(void *memory);
    /**
     * @brief Answer whether the backend can take its memory from this allocator; optional.
     *
     * @retval FERRULE_ERR_UNSUPPORTED it cannot; `reason` explains why
     */
    int32_t (*accept)(const struct ferrule_backend *backend,
                      const struct ferrule_allocator *allocator, char *reason, size_t reason_bytes);
};

/* ---- tensor handles, optional: without them tensors live in host memory */

/**
 * A region of memory: a part of a block that has an address, a file descriptor, or both. Since 1.2.
 *
 * A backend whose code accesses a dma-buf by its address brackets that with DMA_BUF_IOCTL_SYNC.
 */
struct ferrule_memory_ref {
    uint32_t source;    /**< enum ferrule_memory_source: all kinds as which it can be imported */
    void *address;      /**< of the block; null if the process cannot access it */
    int32_t fd;         /**< of the block, owned by the host; -1 if it has none */
    size_t offset;      /**< of the region, from the address and from the beginning of the file */
    size_t bytes;       /**< size of the region */
    size_t block_bytes; /**< size of the block */
};

/** Factory for the handles of one kind of memory. */
struct ferrule_handle_factory {
    size_t size_bytes;        /**< of this table */
    const char *id;           /**< unique among all factories, such as "Vendor/Name/Shared" */
    uint32_t import_flags;    /**< enum ferrule_memory_source: memory its handles can import */
    uint32_t export_flags;    /**< kinds of memory in which their bytes can be exported */
    uint32_t capabilities;    /**< enum ferrule_handle_capability */
    uint32_t alignment_bytes; /**< of imported memory, a power of two; 0 counts as 1 */
    bool supports_map;        /**< whether the process can map the bytes; if not, `map` and `unmap`
                                   may be null, and workloads work on imported memory alone */
    /** @brief Make a handle; if `managed`, `memory` provides its bytes, otherwise they are
     * imported.
     */
    int32_t (*create)(const struct ferrule_backend *backend, void *memory,
                      const struct ferrule_tensor *tensor, bool managed, void **handle,
                      char *reason, size_t reason_bytes);
    /** @brief Begin the lifetime of the bytes: the producer is next in load order; optional. */
    void (*manage)(void *handle);
    /** @brief End the lifetime of the bytes: the last reader has been visited; optional. */
    void (*allocate)(void *handle);
    /** @brief Make the elements accessible to the process, dense and in row-major order. */
    int32_t (*map)(void *handle, void **data, char *reason, size_t reason_bytes);
    /** @brief End a mapping: data written meanwhile becomes visible to the backend. */
    void (*unmap)(void *handle);
    /**
     * @brief Use external memory from now on; return false if it is unsuitable.
     *
     * The memory stays valid until other memory or null is imported, or the handle is destroyed.
     * Null makes the handle use its own memory again. With `try_only` nothing changes. Optional.
     */
    bool (*import_memory)(void *handle, void *data, uint32_t source, bool try_only);
    /** @brief Destroy the handle. */
    void (*destroy)(void *handle);
    /**
     * @brief Return the alignment of imported memory of one kind of enum ferrule_memory_source.
     *
     * A power of two; 0 counts as 1. Called instead of reading `alignment_bytes`. Optional, since
     * 1.2.
     */
    uint32_t (*memory_alignment)(const struct ferrule_backend *backend, uint32_t source);
    /**
     * @brief Return the flags of enum ferrule_handle_capability for one connection.
     *
     * `layer` writes a tensor that `connected` reads; one of them is null at an input of the
     * network. They have no tensors here, and the descriptor is null if another backend compiled
     * the layer. Called instead of reading `capabilities`, which hold for all connections.
     * Optional, since 1.2.
     */
    uint32_t (*connection_capabilities)(const struct ferrule_backend *backend,
                                        const struct ferrule_layer *layer,
                                        const struct ferrule_layer *connected);
    /**
     * @brief Use a region of memory from now on; return false if it is unsuitable.
     *
     * As `import_memory`, and called instead of it: the region stays valid until another region or
     * null is imported, or the handle is destroyed. `memory` itself is valid during the call.
     * Optional, since 1.2.
     */
    bool (*import_ref)(void *handle, const struct ferrule_memory_ref *memory, bool try_only);
};

/** The factories of the backend. */
struct ferrule_handles {
    size_t size_bytes;                                     /**< of this table */
    const struct ferrule_handle_factory *const *factories; /**< in order of preference */
    uint32_t factory_count;
};

/* ---- contexts, optional */

/** Options with which a runtime is created. */
struct ferrule_creation_options {
    bool profiling;
    bool protected_mode;
    const struct ferrule_option *options; /**< user options for this backend */
    uint32_t option_count;
};

/** The backend's part of a runtime. */
struct ferrule_contexts {
    size_t size_bytes; /**< of this table */
    /**
     * @brief Create the backend's context for a new runtime.
     *
     * @retval FERRULE_ERR_UNAVAILABLE the backend cannot run here; the runtime continues without it
     */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_creation_options *options, void **context, char *reason,
                      size_t reason_bytes);
    /** @brief Called before a network is loaded; false refuses the load. */
    bool (*before_load)(void *context, int64_t network);
    /** @brief Called after a network was loaded, or after loading failed part-way. */
    bool (*after_load)(void *context, int64_t network);
    /** @brief Called before a network is unloaded; false stops the unload. */
    bool (*before_unload)(void *context, int64_t network);
    /** @brief Called after a network was unloaded. */
    bool (*after_unload)(void *context, int64_t network);
    /** @brief Destroy the context, together with the runtime. */
    void (*destroy)(void *context);
};

/* ---- profiling, optional */

/** Profiling events recorded by the backend itself. */
struct ferrule_profiling {
    size_t size_bytes; /**< of this table */
    /** @brief Create the profiling object of a new runtime. */
    int32_t (*create)(const struct ferrule_backend *backend,
                      const struct ferrule_creation_options *options, void **profiling,
                      char *reason, size_t reason_bytes);
    /** @brief Switch profiling on or off; return whether it is now in the requested state. */
    bool (*enable)(void *profiling, bool enabled);
    /**
     * @brief Pass each event recorded since the last call to `event`.
     *
     * Times are in nanoseconds, from clock_gettime(CLOCK_MONOTONIC) where available.
     */
    void (*take_events)(void *profiling, void *host,
                        void (*event)(void *host, const char *name, int64_t start_ns,
                                      int64_t duration_ns));
    /** @brief Destroy the profiling object, together with the runtime. */
    void (*destroy)(void *profiling);
};

/* ---- the backend */

/** The tables of a backend, returned by BackendFactory. */
struct ferrule_backend {
    size_t size_bytes;  /**< sizeof(struct ferrule_backend) */
    uint32_t api_major; /**< FERRULE_BACKEND_API_MAJOR, as in GetVersion */
    uint32_t api_minor; /**< FERRULE_BACKEND_API_MINOR, as in GetVersion */
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

/** Exports an entry point, whatever the compiler's default visibility. */
#define FERRULE_BACKEND_EXPORT __attribute__((visibility("default")))

/** @brief Return the backend's id: a text that is neither empty nor "Unknown". */
FERRULE_BACKEND_EXPORT const char *GetBackendId(void);

/** @brief Set the version of this interface with which the backend was built. */
FERRULE_BACKEND_EXPORT void GetVersion(uint32_t *major, uint32_t *minor);

/** @brief Return the backend, a constant of the shared object; may be called any number of times.
 */
FERRULE_BACKEND_EXPORT const struct ferrule_backend *BackendFactory(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_BACKEND_H */
