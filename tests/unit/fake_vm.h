/* A device in plain memory for tests of the pool: granules, chunks, streams and fences.
 *
 * Fences complete when the test says so (fake_vm_complete), at once (`immediate`) or after a random
 * time (`seed`); those of one stream in order. Violations are counted: mapping over a mapping,
 * unmapping an unmapped granule or one that is being copied, releasing a mapped chunk, using a
 * destroyed stream. Calls may come from several threads. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/vm_ops.h"

enum { FAKE_GRANULE = 2 << 20, FAKE_STREAMS = 64 };

/* Start of the addresses of page-locked memory. */
#define FAKE_PINNED (1ull << 44)

enum fake_call {
    FAKE_RESERVE,
    FAKE_CREATE,
    FAKE_RELEASE,
    FAKE_MAP,
    FAKE_ACCESS,
    FAKE_UNMAP,
    FAKE_FENCE,
    FAKE_QUERY,
    FAKE_WAIT_HOST,
    FAKE_WAIT_SOON,
    FAKE_WAIT_STREAM,
    FAKE_PROBE,
    FAKE_COPY,
    FAKE_READ,
    FAKE_WRITE,
    FAKE_HASH,
    FAKE_PIN,
    FAKE_UNPIN,
    FAKE_CALLS
};

struct fake_vm {
    struct spw_vm seam; /* for the pool */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool holding;   /* host waits do not return */
    bool impatient; /* wait_soon fails */
    size_t waiters; /* host waits that are held */
    uint64_t base, bytes;
    uint64_t *mapped; /* chunk + 1 per granule */
    bool *accessible;
    uint64_t *copied; /* per granule: the fence of the last copy to or from it */
    size_t shared;    /* granules, in all calls */
    size_t granules;
    size_t chunks, most_chunks; /* created now, and the device's size (0: no limit) */
    size_t memory, others; /* of a bounded pool: granules of all, and what others have of them */
    size_t host_chunks, most_host_chunks; /* chunks created on the host, and the most that the
                                             driver gives (0: no limit) */
    uint8_t *chunk_used;                  /* per chunk number: 1 created, one more per mapping */
    uint8_t *chunk_tier;                  /* enum spw_tier, per chunk number */
    uint8_t *chunk_size;   /* in granules; a chunk has as many numbers, from its own on */
    uint64_t *chunk_value; /* the content, as one number */
    bool no_host, no_moves, no_pinned; /* results of probing the host */
    size_t seeks;                      /* how often seek_host was called */
    bool defers;                       /* fences complete only when they are waited for */
    enum spw_err refusal;              /* of a create that fails; 0: NO_MEMORY */
    uint64_t pinned_end, pinned_bytes; /* page-locked memory: the end of its addresses, its size */
    size_t pinned_pieces;
    bool pins_apart; /* each context has page-locked memory of its own, which goes with it */
    size_t chunk_numbers;
    uint64_t clock, finished; /* fences recorded, and completed up to, on any stream */
    uint64_t stream_finished[FAKE_STREAMS]; /* likewise, for the stream of this id */
    bool stream_gone[FAKE_STREAMS];         /* using it is a violation */
    bool immediate;                         /* every fence completes when it is recorded */
    uint64_t seed;           /* not 0: fences complete after a random number of calls */
    bool capturing;          /* fences can be neither recorded, queried nor waited for */
    uint64_t fenced_stream;  /* id that the newest fence was recorded on */
    uint64_t waiting_stream; /* id that was last made to wait */
    uint64_t waited_stream;  /* id, below FAKE_STREAMS, that it waits for */
    size_t live_fences;
    size_t violations;
    size_t calls[FAKE_CALLS];
    bool unmap_fails;        /* every unmap fails and does nothing */
    bool keeps_inaccessible; /* likewise, of memory without access */
    /* Called, with the lock held, when work may have been completed: up to the time `finished`. */
    void (*on_finished)(struct fake_vm *vm);
    int fail_call;     /* enum fake_call that fails once; -1: none */
    size_t fail_after; /* number of calls that succeed before it fails */
    size_t fail_more;  /* number of calls that fail after the first failure */
};

void fake_vm_init(struct fake_vm *vm);
void fake_vm_fini(struct fake_vm *vm);

/* Lets everything submitted so far complete, or everything on one stream. */
void fake_vm_complete(struct fake_vm *vm);

/* Submits some work. Returns the time at which it is complete. */
uint64_t fake_vm_submit(struct fake_vm *vm);
void fake_vm_complete_stream(struct fake_vm *vm, uint64_t stream_id);

/* Hold host waits back until called again with false; block until a thread waits. */
void fake_vm_hold_waits(struct fake_vm *vm, bool hold);
void fake_vm_await_waiter(struct fake_vm *vm);

/* Calls that touch memory: create, release, map, access, unmap. */
size_t fake_vm_memory_calls(const struct fake_vm *vm);
/* All calls. */
size_t fake_vm_calls(const struct fake_vm *vm);

/* Returns how many granules of a range are on the host. */
size_t fake_vm_on_host(const struct fake_vm *vm, uint64_t address, uint64_t bytes);

/* Write consecutive numbers to the granules of a range, from `value` up; count those that differ.
 */
void fake_vm_write(struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t value);
size_t fake_vm_differs(const struct fake_vm *vm, uint64_t address, uint64_t bytes, uint64_t value);

/* True if every granule of a range is mapped and accessible. */
bool fake_vm_usable(const struct fake_vm *vm, uint64_t address, uint64_t bytes);
