/* A driver in plain memory for tests of the backend: chunks, mappings, contexts, streams and
 * events.
 *
 * The functions of a driver are given no instance, so there is one, `fake_driver`. Work completes
 * when the test says so. A violation is counted for each use of an event or a context that is gone,
 * for each mapping over another, and for each release of a chunk that does not exist. A thread has
 * a stack of current contexts of its own; the rest is not protected against several threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

enum {
    FAKE_DRIVER_GRANULE = 2 << 20,
    FAKE_DRIVER_GRANULES = 64,
    FAKE_DRIVER_CHUNKS = 64,
    FAKE_DRIVER_EVENTS = 64,
    FAKE_DRIVER_CONTEXTS = 8,
    FAKE_DRIVER_STREAMS = 8,
    FAKE_DRIVER_COPIES = 64
};

/* The start of the reserved addresses, and what is added to the host's address of page-locked
 * memory. */
#define FAKE_DRIVER_BASE   (1ull << 40)
#define FAKE_DRIVER_PINNED (1ull << 50)

/* The effect of one call that covers several mappings. */
enum fake_driver_range { FAKE_RANGE_ALL, FAKE_RANGE_REFUSED, FAKE_RANGE_FIRST_ONLY };

struct fake_driver_event {
    CUcontext context; /* NULL: there is no such event, or no more */
    bool complete;
    CUcontext recorded_for; /* context or, */
    CUstream recorded_on;   /* stream that it was recorded for last */
};

struct fake_driver_copy {
    CUdeviceptr to, from;
    size_t bytes;
    CUstream stream;
};

struct fake_driver {
    struct spw_driver driver;
    _Atomic uint64_t calls[SPW_CALL_COUNT]; /* of device 0 */
    size_t violations;
    enum spw_own_call fail_call; /* SPW_CALL_COUNT: none */
    size_t fail_after;           /* calls that succeed before it fails */
    size_t fail_count;           /* calls that fail then */
    CUresult fail_result;

    /* memory */
    enum fake_driver_range unmap_range, access_range;
    bool rdma;                        /* the device says that it can; chunks with the flag exist */
    CUresult rdma_result;             /* of creating a chunk with the flag */
    size_t reserved;                  /* reservations */
    uint64_t reserved_bytes;          /* of all of them */
    bool chunks[FAKE_DRIVER_CHUNKS];  /* by handle less 1 */
    bool flagged[FAKE_DRIVER_CHUNKS]; /* for network cards */
    size_t mapped[FAKE_DRIVER_GRANULES];       /* the handle, at the first granule of a mapping */
    size_t mapped_count[FAKE_DRIVER_GRANULES]; /* granules of the mapping that begins here */
    bool accessible[FAKE_DRIVER_GRANULES];
    CUmemAccessDesc access[8]; /* of the last call that gave access */
    size_t access_count;
    int supported;                                 /* whether the device has virtual memory */
    size_t granule;                                /* of chunks; 0: the usual one */
    bool no_granule;                               /* the driver says that chunks have 0 bytes */
    CUmemAllocationProp props[FAKE_DRIVER_CHUNKS]; /* of each chunk */
    int pci[3];                                    /* the device's domain, bus and number */
    int version;

    /* contexts, streams and events */
    bool gone[FAKE_DRIVER_CONTEXTS];
    struct fake_driver_event events[FAKE_DRIVER_EVENTS];
    CUevent waited[FAKE_DRIVER_EVENTS]; /* by a stream */
    size_t waited_count;
    CUstream waiting; /* the last one that was made to wait */
    CUstreamCaptureStatus capturing;
    CUresult capturing_result;
    void (*on_synchronize)(CUcontext context); /* called inside cuCtxSynchronize */
    bool synchronized[FAKE_DRIVER_CONTEXTS];

    /* copies, which are made at once */
    unsigned char *content;                             /* of the reserved addresses */
    bool forgets;                                       /* copies change nothing */
    bool busy;                                          /* no stream is idle */
    CUcontext streams[FAKE_DRIVER_STREAMS];             /* by handle less 1: where it was created */
    struct fake_driver_copy copies[FAKE_DRIVER_COPIES]; /* the first ones */
    size_t copy_count;

    /* page-locked memory */
    size_t pinned;       /* pieces */
    CUcontext pinned_in; /* where the last one was allocated */
    unsigned int pinned_flags;
    bool primary_active; /* context 7 is the device's primary one */
    size_t primary_retained;
};

extern struct fake_driver fake_driver;

/* Makes the driver anew: nothing exists, all succeeds. */
struct spw_driver *fake_driver_reset(void);

/* Lets the next calls of a function succeed, `after` of them, and then fail, `count` of them. */
void fake_driver_fail(enum spw_own_call call, size_t after, size_t count, CUresult result);

/* The handle of context `number`, from 0 on. */
CUcontext fake_driver_context(size_t number);

/* Makes a context the calling thread's only current one; NULL: none. */
void fake_driver_set_current(CUcontext context);
CUcontext fake_driver_current(void);

/* Destroys a context with its events. It may be made again with the same handle. */
void fake_driver_destroy(size_t number);
void fake_driver_remake(size_t number);

/* Completes all events that were recorded for a context, or all of them (NULL). */
void fake_driver_complete(CUcontext context);

/* Chunks, mappings and events that exist. */
size_t fake_driver_chunk_count(void);
size_t fake_driver_mapped_count(void);
size_t fake_driver_event_count(void);
