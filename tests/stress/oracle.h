/* The happens-before oracle: a device that knows the true order of all work, to judge the pool.
 *
 * Every stream of the device has a slot and counts its work items. A vector clock per stream tells
 * which items of every other stream are complete before its next item starts. Every unit of address
 * space remembers the last free that covered it. A block that the pool returns must come after the
 * last free of each of its units: in the order of its stream, or because the pool was told that the
 * free is complete. A granule that the pool unmaps must hold no block, and the pool must have been
 * told that the last free of each of its units is complete. Work that is complete only by chance
 * does not count, so luck does not hide a bug. Other errors, such as a dead handle, a double map or
 * a leak, are findings too.
 *
 * A slot whose stream is gone is reused when all its work is complete. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool/vm_ops.h"

enum { ORACLE_SLOTS = 24, ORACLE_HANDLES = 12 };

/* For each slot, how many of its items are covered. */
struct oracle_clock {
    uint64_t at[ORACLE_SLOTS];
};

struct oracle_slot {
    struct spw_stream stream;
    bool live; /* the handle is valid */
    uint64_t submitted, completed;
    struct oracle_clock now;       /* items before its next one; its own part is `submitted` */
    struct oracle_marker *markers; /* waits that were not passed yet, oldest first */
    size_t marker_first, marker_count, marker_capacity;
};

struct oracle {
    struct spw_vm seam; /* for the pool */
    uint64_t granule_bytes, unit_bytes;
    uint64_t base, bytes;
    uint64_t *mapped; /* chunk + 1, per granule */
    bool *accessible; /* per granule */
    bool *live;       /* per unit: under a block */
    uint32_t *freed;  /* per unit: index of its last free, 0: never */
    uint8_t *chunk_state;
    size_t chunk_numbers, chunks, most_chunks;
    struct oracle_slot slots[ORACLE_SLOTS];
    struct oracle_clock known; /* items that the pool was told are complete */
    struct oracle_free *frees;
    uint32_t free_count, free_capacity, free_unused;
    bool capturing;        /* fences can be neither recorded nor queried */
    unsigned failure_odds; /* one in so many calls fails; 0: none */
    uint64_t random;       /* state of the generator */
    uint64_t next_stream_id;
    bool handle_used[ORACLE_HANDLES];
    struct oracle_fence *pending; /* every fence that was not dropped */
    size_t fences, waits, unmaps, failures;
    size_t findings;
    char first[160]; /* the first finding, as a sentence */
};

void oracle_init(struct oracle *oracle, uint64_t granule_bytes, uint64_t unit_bytes, uint64_t seed);
/* Frees everything. Chunks and fences that are left are findings. */
void oracle_fini(struct oracle *oracle);

/* Returns a random number below `bound`. */
uint64_t oracle_random(struct oracle *oracle, uint64_t bound);
/* Records a finding; the first one is kept. */
void oracle_find(struct oracle *oracle, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Creates a stream, with a recycled handle if there is one; -1 when there are enough. */
int oracle_stream_create(struct oracle *oracle);
/* Destroys a stream: the handle is invalid at once, its work goes on. */
void oracle_stream_destroy(struct oracle *oracle, int slot);
/* Adds one item to a stream and returns its number. */
uint64_t oracle_submit(struct oracle *oracle, int slot);
/* Makes later items of `slot` wait for everything submitted to `other`. */
void oracle_order(struct oracle *oracle, int slot, int other);
/* Lets some items of one stream complete, as far as its waits allow. */
void oracle_progress(struct oracle *oracle, int slot);
/* Lets item `number` of a stream complete, with everything that it waits for. */
void oracle_complete(struct oracle *oracle, int slot, uint64_t number);

/* Returns the items submitted by now: to one stream, or (slot -1) to all. */
struct oracle_clock oracle_submitted(const struct oracle *oracle, int slot);
/* Lets the program wait on the host for the items of a clock; the pool will be told. */
void oracle_synchronize(struct oracle *oracle, const struct oracle_clock *clock);

/* Judges a block that the pool returned for a stream, or for all (slot -1), and marks it live. */
void oracle_judge_alloc(struct oracle *oracle, uint64_t address, uint64_t bytes, int slot);
/* Notes a free at item `number` of a stream, or after everything (slot -1). */
void oracle_note_free(struct oracle *oracle, uint64_t address, uint64_t bytes, int slot,
                      uint64_t number);
/* Returns the number of granules that hold a block. */
size_t oracle_pinned(const struct oracle *oracle);
