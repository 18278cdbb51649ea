/* A pool on the device in plain memory, and allocations that check its invariants each time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_vm.h"
#include "pool/pool.h"

enum { MIB = 1 << 20, GRANULE = FAKE_GRANULE };

struct pool_fixture {
    struct fake_vm vm;
    struct spw_counters counters;
    struct spw_pool *pool;
    struct spw_move *move; /* the last one that a test began */
};

/* Streams with the ids 1 and up; handles differ from ids and may be given another id. */
extern const struct spw_stream stream_a, stream_b, stream_c;

/* Opens a pool with this configuration. */
void pool_open_as(struct pool_fixture *fixture, const struct spw_pool_config *config);
/* Opens a pool of 64 GiB of addresses without a practical limit; `growth` as in the configuration.
 */
void pool_open(struct pool_fixture *fixture, uint32_t growth);
/* Opens a pool with an arena and a limit counted in granules. */
void pool_open_small(struct pool_fixture *fixture, uint64_t arena_granules, uint64_t limit_granules,
                     uint32_t growth);
/* Destroys the pool and checks that nothing is left on the device. */
void pool_close(struct pool_fixture *fixture);
/* Likewise, for a pool whose counters are another's as well: its invariants do not hold. */
void pool_close_unchecked(struct pool_fixture *fixture);

/* The same of a pool without blocks, which keeps no chunk after it was trimmed. */
void pool_close_empty(struct pool_fixture *fixture);

/* Runs a test again and again while it is told to fail a later call each time: it answers whether
 * it reached the call. `more` is passed on. */
void pool_sweep(bool (*run)(int call, size_t after, size_t more), enum fake_call call, size_t more);

/* Allocates without a site; writes *ret_address on success only. */
enum spw_err pool_try(struct spw_pool *pool, uint64_t bytes, const struct spw_stream *stream,
                      void *context, uint64_t *ret_address);
/* Allocates on a stream (NULL: without one) and checks alignment, backing and invariants. */
uint64_t pool_alloc(struct pool_fixture *fixture, uint64_t bytes, const struct spw_stream *stream);
/* Allocates, which must fail with `expected` and hold nothing. */
void pool_refuse(struct pool_fixture *fixture, uint64_t bytes, const struct spw_stream *stream,
                 enum spw_err expected);
/* Tries to allocate on the device or the host; *ret_host_bytes of the block are on the host. */
enum spw_err pool_try_anywhere(struct pool_fixture *fixture, uint64_t bytes,
                               const struct spw_stream *stream, uint64_t *ret_address,
                               uint64_t *ret_host_bytes);
/* Leaves so many granules of chunks that are mapped nowhere: an allocation fails that has created
 * them. */
void pool_leave_spare(struct pool_fixture *fixture, size_t granules);
void pool_free(struct pool_fixture *fixture, uint64_t address, const struct spw_stream *stream);
void pool_check(struct pool_fixture *fixture);

/* Returns the memory calls to the device since the last call of this function. */
size_t pool_memory_calls(struct pool_fixture *fixture);

/* Whole granules are usable, hold what fake_vm_write wrote, and so many of them are on the host. */
void pool_expect(struct pool_fixture *fixture, uint64_t address, uint64_t granules, uint64_t value,
                 size_t on_host);
