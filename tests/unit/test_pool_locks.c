/* Every function of the pool that takes its lock waits while another thread holds it, and gives it
 * back. */
#include "pool_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pool/alloc/state.h"

enum { MOVED = 4, LIMIT = 32, HOST = 16, MOST = 64 };

/* A pool with a block that is being moved, one that is being exported, and one more. */
struct world {
    struct pool_fixture f;
    struct spw_pool *pool;
    struct spw_account accounts[SPW_ACCOUNTS];
    struct spw_move *move;
    struct spw_move *other_move;
    void *fence;
    uint64_t moved, exported, exported_id, block;
    void (*call)(struct world *w);
    _Atomic pid_t caller;
    _Atomic bool done;
};

static const struct spw_move_request to_host = {.to = SPW_TIER_HOST, .bytes = GRANULE};
static const struct spw_pool_placement account = {.limit_bytes = UINT64_MAX, .account = 1};
static const struct spw_block_attributes attributes = {.prioritize = true};

static void visit(void *cookie, uint64_t address, uint64_t bytes, uint32_t site, uint64_t age)
{
}

/* ---- the calls ---- */

static void alloc(struct world *w)
{
    uint64_t address;

    (void)pool_try(w->pool, GRANULE, &stream_a, NULL, &address);
}

static void find(struct world *w)
{
    struct spw_block block;

    (void)spw_pool_find(w->pool, w->block, &block);
}

static void usage(struct world *w)
{
    struct spw_pool_usage figures;

    spw_pool_usage(w->pool, &figures);
}

static void open_host(struct world *w)
{
    bool moves;

    (void)spw_pool_open_host(w->pool, GRANULE, &moves);
}

static void find_on_host(struct world *w)
{
    struct spw_move_place places[SPW_MOVE_GRANULES];
    uint64_t bytes;

    (void)spw_pool_find_on_host(w->pool, NULL, 0, places, &bytes);
}

static void scan_granules(struct world *w)
{
    struct spw_granule_info infos[MOST];
    uint64_t address;
    int64_t room;

    (void)spw_pool_scan_granules(w->pool, infos, MOST, &address, &room);
}

static void places(struct world *w)
{
    struct spw_move_place listed[SPW_MOVE_GRANULES];

    (void)spw_pool_move_places(w->pool, w->move, listed);
}

static void copy_parts(struct world *w)
{
    size_t parts;

    (void)spw_pool_move_copy_parts(w->pool, w->move, &parts);
}

static void commit(struct world *w)
{
    uint64_t bytes;

    (void)spw_pool_move_commit(w->pool, w->move, &bytes);
}

static void commit_part(struct world *w)
{
    uint64_t bytes;

    (void)spw_pool_move_commit_part(w->pool, w->move, 0, &bytes);
}

static void lost(struct world *w)
{
    uint64_t bytes;

    (void)spw_pool_move_lost(w->pool, &bytes);
}

static void export_begin(struct world *w)
{
    bool done;

    (void)spw_pool_export_begin(w->pool, w->exported, w->exported_id, &done);
}

static void export_chunks(struct world *w)
{
    struct spw_exported_chunk chunks[2];
    uint64_t offset;

    (void)spw_pool_export_chunks(w->pool, w->exported, chunks, 2, &offset);
}

static void record(struct world *w)
{
    void *fence;

    (void)spw_pool_fence_record(w->pool, NULL, &fence);
}

static void visit_free(uint64_t address, uint64_t bytes, void *context)
{
    (void)address;
    (void)bytes;
    (void)context;
}

#define CALLS(X)                                                                                   \
    X(alloc, alloc(w))                                                                             \
    X(free, spw_pool_free(w->pool, w->block, &stream_a))                                           \
    X(free_unknown, spw_pool_free(w->pool, w->block + 512, &stream_a))                             \
    X(commit, spw_pool_commit(w->pool, false))                                                     \
    X(free_context, spw_pool_free_context(w->pool, w))                                             \
    X(forget_context, spw_pool_forget_context(w->pool, w))                                         \
    X(find, find(w))                                                                               \
    X(run, spw_pool_run(w->pool, w->block, GRANULE))                                               \
    X(each_free, spw_pool_each_free(w->pool, visit_free, NULL))                                    \
    X(usage, usage(w))                                                                             \
    X(reset_ordered_peak, spw_pool_reset_ordered_peak(w->pool))                                    \
    X(reset_reserved_peak, spw_pool_reset_reserved_peak(w->pool))                                  \
    X(clock, spw_pool_clock(w->pool))                                                              \
    X(synchronized, spw_pool_synchronized(w->pool, NULL, 0))                                       \
    X(retire_stream, spw_pool_retire_stream(w->pool, &stream_b))                                   \
    X(refresh_access, spw_pool_refresh_access(w->pool))                                            \
    X(set_limit, spw_pool_set_limit(w->pool, GRANULE))                                             \
    X(set_host_limit, spw_pool_set_host_limit(w->pool, GRANULE))                                   \
    X(trim, spw_pool_trim(w->pool, 0))                                                             \
    X(trim_host, spw_pool_trim_host(w->pool))                                                      \
    X(open_host, open_host(w))                                                                     \
    X(uses_pinned, spw_pool_uses_pinned(w->pool))                                                  \
    X(map_ahead, spw_pool_map_ahead(w->pool, 1))                                                   \
    X(charge, spw_pool_charge(w->pool, GRANULE, 0, false))                                         \
    X(discharge, spw_pool_discharge(w->pool, 0, 0))                                                \
    X(charge_host, spw_pool_charge_host(w->pool, GRANULE, 0, false))                               \
    X(discharge_host, spw_pool_discharge_host(w->pool, 0, 0))                                      \
    X(account_add, spw_pool_account_add(w->pool, &account, GRANULE, false))                        \
    X(account_remove, spw_pool_account_remove(w->pool, 1, 0, false))                               \
    X(account_to_device, spw_pool_account_to_device(w->pool, 1, 0))                                \
    X(check, spw_pool_check(w->pool))                                                              \
    X(shut, spw_pool_shut(w->pool))                                                                \
    X(set_attributes, spw_pool_set_attributes(w->pool, w->block, 1, &attributes))                  \
    X(room, spw_pool_room(w->pool))                                                                \
    X(find_on_host, find_on_host(w))                                                               \
    X(scan_granules, scan_granules(w))                                                             \
    X(each_large, spw_pool_each_large(w->pool, visit, NULL))                                       \
    X(fix_all, spw_pool_fix_all(w->pool))                                                          \
    X(release_all, spw_pool_release_all(w->pool))                                                  \
    X(let_graphs_move, spw_pool_let_graphs_move(w->pool, true))                                    \
    X(move_begin, spw_pool_move_begin(w->pool, &to_host, &w->other_move))                          \
    X(move_places, places(w))                                                                      \
    X(move_copy, spw_pool_move_copy(w->pool, w->move, false))                                      \
    X(move_copy_parts, copy_parts(w))                                                              \
    X(move_poll, spw_pool_move_poll(w->pool, w->move))                                             \
    X(move_poll_part, spw_pool_move_poll_part(w->pool, w->move, 0))                                \
    X(move_drain, spw_pool_move_drain(w->pool, w->move))                                           \
    X(move_leave_out, spw_pool_move_leave_out(w->pool, w->move, w->moved))                         \
    X(move_commit, commit(w))                                                                      \
    X(move_commit_part, commit_part(w))                                                            \
    X(move_remap_lost, spw_pool_move_remap_lost(w->pool))                                          \
    X(move_lost, lost(w))                                                                          \
    X(move_end, spw_pool_move_end(w->pool, w->move))                                               \
    X(move_leave, spw_pool_move_leave(w->pool, w->move))                                           \
    X(move_hash, spw_pool_move_hash(w->pool, w->move))                                             \
    X(move_verify, spw_pool_move_verify(w->pool, w->move))                                         \
    X(move_detach, spw_pool_move_detach(w->pool, w->move))                                         \
    X(attach, spw_pool_attach(w->pool, w->moved, w->moved + GRANULE))                              \
    X(attach_all, spw_pool_attach_all(w->pool))                                                    \
    X(export_begin, export_begin(w))                                                               \
    X(export_drain, spw_pool_export_drain(w->pool))                                                \
    X(export_copy, spw_pool_export_copy(w->pool))                                                  \
    X(export_poll, spw_pool_export_poll(w->pool))                                                  \
    X(export_commit, spw_pool_export_commit(w->pool))                                              \
    X(export_end, spw_pool_export_end(w->pool))                                                    \
    X(export_chunks, export_chunks(w))                                                             \
    X(fence_record, record(w))                                                                     \
    X(fence_query, spw_pool_fence_query(w->pool, w->fence))                                        \
    X(fence_drop, spw_pool_fence_drop(w->pool, w->fence))

#define DEFINE(name, expression)                                                                   \
    static void call_##name(struct world *w)                                                       \
    {                                                                                              \
        (void)(expression);                                                                        \
    }
CALLS(DEFINE)

#define ROW(name, expression) {#name, call_##name},
static const struct {
    const char *name;
    void (*call)(struct world *w);
} calls[] = {CALLS(ROW)};

/* ---- the threads ---- */

static void open_world(struct world *w)
{
    struct spw_block block;
    size_t parts;
    bool done = true;

    pool_open_as(&w->f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                  .arena_bytes = 256ull * GRANULE,
                                                  .limit_bytes = (uint64_t)LIMIT * GRANULE,
                                                  .host_limit_bytes = (uint64_t)HOST * GRANULE,
                                                  .accounts = w->accounts});
    w->pool = w->f.pool;
    w->f.vm.immediate = true;
    w->moved = pool_alloc(&w->f, (uint64_t)MOVED * GRANULE, &stream_a);
    w->exported = pool_alloc(&w->f, GRANULE, &stream_a);
    w->block = pool_alloc(&w->f, GRANULE, &stream_a);
    assert_int_equal(spw_pool_move_begin(w->pool, &to_host, &w->move), SPW_OK);
    assert_int_equal(spw_pool_move_copy_parts(w->pool, w->move, &parts), SPW_OK);
    assert_true(spw_pool_find(w->pool, w->exported, &block));
    w->exported_id = block.id;
    assert_int_equal(spw_pool_export_begin(w->pool, w->exported, block.id, &done), SPW_OK);
    assert_false(done);
    assert_int_equal(spw_pool_fence_record(w->pool, NULL, &w->fence), SPW_OK);
}

static void close_world(struct world *w)
{
    spw_pool_destroy(w->pool);
    fake_vm_fini(&w->f.vm);
}

static void *run(void *argument)
{
    struct world *w = argument;

    w->caller = (pid_t)syscall(SYS_gettid);
    w->call(w);
    w->done = true;
    return NULL;
}

/* True if a thread of this process sleeps. */
static bool sleeps(pid_t thread)
{
    char path[64], state = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
    file = fopen(path, "r");
    if (file != NULL) {
        (void)fscanf(file, "%*d (%*[^)]) %c", &state);
        (void)fclose(file);
    }
    return state == 'S';
}

/* Calls while the lock is held. True if the call waited until it was free, and left it free. */
static bool waits_for_the_lock(void (*call)(struct world *w))
{
    struct world w = {.call = call};
    pthread_t thread;
    bool waited, is_free;

    open_world(&w);
    spw_pool_lock(w.pool);
    assert_int_equal(pthread_create(&thread, NULL, run, &w), 0);
    while (!w.done && !(w.caller != 0 && sleeps(w.caller))) {
        usleep(50);
    }
    waited = !w.done;
    spw_pool_unlock(w.pool);
    (void)pthread_join(thread, NULL);
    is_free = spw_lock_try(&w.pool->lock);
    if (is_free) {
        spw_pool_unlock(w.pool);
        close_world(&w);
    }
    return waited && is_free;
}

static void test_calls(void **state)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (!waits_for_the_lock(calls[i].call)) {
            fail_msg("spw_pool_%s does not wait for the lock, or keeps it", calls[i].name);
        }
    }
}

/* The lock is one of those that are taken around fork, as long as the pool exists. */
static void test_fork(void **state)
{
    enum { POOLS = 200 /* more than there are places for locks */ };
    struct pool_fixture f;

    for (int i = 0; i < POOLS; i++) {
        pool_open_small(&f, 64, 8, 0);
        pool_close(&f);
    }
    pool_open_small(&f, 64, 8, 0);
    assert_int_equal(f.pool->lock.rank, SPW_LOCK_RANK_pool);
    spw_lock_all();
    assert_false(spw_lock_try(&f.pool->lock));
    spw_lock_release_all(/* child */ false);
    assert_true(spw_lock_try(&f.pool->lock));
    spw_pool_unlock(f.pool);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
