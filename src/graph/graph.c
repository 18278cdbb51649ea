#include "graph/graph.h"

#include "device/lookup.h"
#include "device/spill.h"
#include "graph/state.h"
#include "graph/uses.h"
#include "pool/pool.h"
#include "program/users.h"
#include "submit/indirect.h"
#include "submit/use.h"
#include "system/lock.h"
#include "system/log.h"

#include <stdlib.h>

/* How many executable graphs name a block, and how many of these keep the block in its place. A
 * value of the map spw_graph.graphs.named. */
struct graph_count {
    uint32_t naming, keeping;
};

/* ---- the places of blocks; the lock is held ---- */

static void fix_all(void)
{
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            spw_pool_fix_all(pool);
        }
    }
}

static void settle(void)
{
    const struct spw_graphs *graphs = &spw_graph.graphs;

    if (graphs->captured.count > 0 || graphs->unreadable > 0 ||
        atomic_load(&spw_process_driver()->captures_open) > 0) {
        return;
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_pool *pool = spw_device_opened(spw_device_at(i));

        if (pool != NULL) {
            spw_pool_release_all(pool);
        }
    }
}

/* Sets the attributes of the block that begins at `address`, by its count. */
static void set_attributes(uint64_t address, const struct graph_count *count)
{
    uint8_t fix = (uint8_t)((count->naming > 0 ? SPW_NAMED_BY_GRAPH : 0) |
                            (count->keeping > 0 ? SPW_FIXED_BY_GRAPH : 0));
    const struct spw_block_attributes attributes = {
        .fix = fix, .unfix = (SPW_NAMED_BY_GRAPH | SPW_FIXED_BY_GRAPH) & ~fix};
    struct spw_pool *pool;

    if (spw_device_owner(address, &pool) != NULL) {
        (void)spw_pool_set_attributes_of(pool, address, &attributes);
    }
}

/* Returns the count of a block; NULL without memory. */
static struct graph_count *count_of(uint64_t address)
{
    struct spw_map *named = &spw_graph.graphs.named;
    struct graph_count *count = spw_map_get(named, address);

    if (count == NULL) {
        count = calloc(1, sizeof(*count));
        if (count != NULL && !spw_map_put(named, address, count)) {
            free(count);
            return NULL;
        }
    }
    return count;
}

/* Counts a graph that names the block at `address` or, with `keeps`, keeps it in its place. Always
 * sets the block's attributes: the count may be from an earlier block at that address. False
 * without memory. */
static bool enter_block(uint64_t address, bool keeps)
{
    struct graph_count *count = count_of(address);

    if (count == NULL) {
        return false;
    }
    (*(keeps ? &count->keeping : &count->naming))++;
    set_attributes(address, count);
    return true;
}

static void leave_block(uint64_t address, bool keeps)
{
    struct spw_map *named = &spw_graph.graphs.named;
    struct graph_count *count = spw_map_get(named, address);

    if (count == NULL || --*(keeps ? &count->keeping : &count->naming) > 0) {
        return;
    }
    set_attributes(address, count);
    if (count->naming == 0 && count->keeping == 0) {
        free(spw_map_take(named, address));
    }
}

static void leave_blocks(const struct spw_graph_blocks *blocks, bool keeps)
{
    for (size_t i = 0; i < blocks->count; i++) {
        leave_block(blocks->addresses[i], keeps);
    }
}

/* Frees the uses of a graph unless a launch still reads them. */
static void drop_reference(struct spw_graph_uses *uses)
{
    if (--uses->references == 0) {
        spw_graph_uses_free(uses);
    }
}

/* Ends the uses of one executable graph. */
static void release(struct spw_graph_uses *uses)
{
    leave_blocks(&uses->kept, /* keeps */ true);
    leave_blocks(&uses->named, /* keeps */ false);
    spw_graph.graphs.unreadable -= !uses->known;
    drop_reference(uses);
}

static void tell_unreadable(void)
{
    if (!spw_graph.graphs.unreadable_reported) {
        spw_graph.graphs.unreadable_reported = true;
        spw_log(SPW_LOG_INFO, "nodes of a CUDA graph cannot be read: memory that lives now stays "
                              "where it is until the graph is destroyed");
    }
}

/* Enters blocks. The list ends before the first that cannot be entered. */
static void enter_blocks(struct spw_graph_uses *uses, struct spw_graph_blocks *blocks, bool keeps)
{
    for (size_t i = 0; i < blocks->count; i++) {
        if (!enter_block(blocks->addresses[i], keeps)) {
            blocks->count = i;
            uses->known = false;
        }
    }
}

/* Enters the blocks of a graph. If not all are known, fixes all live blocks. */
static void fix(struct spw_graph_uses *uses)
{
    enter_blocks(uses, &uses->named, /* keeps */ false);
    enter_blocks(uses, &uses->kept, /* keeps */ true);
    if (!uses->known) {
        spw_graph.graphs.unreadable++;
        fix_all();
        tell_unreadable();
    }
}

/* Fixes all live blocks for good, since there is no memory to remember the blocks of a graph. */
static void give_up(void)
{
    spw_graph.graphs.unreadable++;
    fix_all();
}

/* ---- events ---- */

void spw_graph_fix_all(void)
{
    spw_lock(&spw_locks.graphs);
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

void spw_graph_settle(void)
{
    spw_lock(&spw_locks.graphs);
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_graph_captured(CUgraph graph)
{
    struct spw_map *captured = &spw_graph.graphs.captured;
    char *mark = malloc(1);

    spw_lock(&spw_locks.graphs);
    fix_all();
    if (spw_map_get(captured, (uintptr_t)graph) == NULL) {
        if (mark != NULL && spw_map_put(captured, (uintptr_t)graph, mark)) {
            mark = NULL;
        } else {
            give_up();
        }
    }
    spw_unlock(&spw_locks.graphs);
    free(mark);
}

bool spw_graph_forget(CUgraph graph)
{
    void *mark;

    spw_lock(&spw_locks.graphs);
    mark = spw_map_take(&spw_graph.graphs.captured, (uintptr_t)graph);
    spw_unlock(&spw_locks.graphs);
    free(mark);
    return mark != NULL;
}

/* Replaces the uses of an executable graph. The lock is held. */
static void enter(CUgraphExec executable, struct spw_graph_uses *uses)
{
    struct spw_map *executables = &spw_graph.graphs.executables;
    struct spw_graph_uses *before = spw_map_get(executables, (uintptr_t)executable);

    if (uses == NULL) {
        give_up();
        return;
    }
    fix(uses);
    if (!spw_map_put(executables, (uintptr_t)executable, uses)) {
        give_up();
        release(uses);
    } else if (before != NULL) {
        release(before);
    }
}

void spw_graph_instantiate_begin(void)
{
    spw_lock(&spw_locks.graphs);
    spw_graph.graphs.unreadable++;
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

/* True when kernels can launch an executable graph that was known before. */
static bool is_from_device(CUgraphExec executable)
{
    const struct spw_graph_uses *before;
    bool from_device;

    spw_lock(&spw_locks.graphs);
    before = spw_map_get(&spw_graph.graphs.executables, (uintptr_t)executable);
    from_device = before != NULL && before->from_device;
    spw_unlock(&spw_locks.graphs);
    return from_device;
}

void spw_graph_instantiate_end(CUgraphExec executable, CUgraph graph, bool from_device)
{
    struct spw_graph_uses *uses = NULL;

    if (executable != NULL) {
        uses = spw_graph_uses_read(graph, from_device || is_from_device(executable));
    }
    spw_lock(&spw_locks.graphs);
    spw_graph.graphs.unreadable--;
    if (executable != NULL) {
        enter(executable, uses);
        free(spw_map_take(&spw_graph.graphs.captured, (uintptr_t)graph));
    }
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_graph_changed(CUgraphExec executable)
{
    struct spw_graph_uses *uses;

    spw_lock(&spw_locks.graphs);
    uses = spw_map_get(&spw_graph.graphs.executables, (uintptr_t)executable);
    if (uses == NULL || uses->known) {
        spw_graph.graphs.unreadable++;
        tell_unreadable();
    }
    if (uses != NULL) {
        uses->known = false;
    }
    fix_all();
    spw_unlock(&spw_locks.graphs);
}

struct spw_graph_uses *spw_graph_take(CUgraphExec executable)
{
    struct spw_graph_uses *uses;

    spw_lock(&spw_locks.graphs);
    uses = spw_map_take(&spw_graph.graphs.executables, (uintptr_t)executable);
    spw_unlock(&spw_locks.graphs);
    return uses;
}

void spw_graph_drop(struct spw_graph_uses *uses)
{
    if (uses == NULL) {
        return;
    }
    spw_lock(&spw_locks.graphs);
    release(uses);
    settle();
    spw_unlock(&spw_locks.graphs);
}

void spw_graph_put_back(CUgraphExec executable, struct spw_graph_uses *uses)
{
    if (uses == NULL) {
        return;
    }
    spw_lock(&spw_locks.graphs);
    if (!spw_map_put(&spw_graph.graphs.executables, (uintptr_t)executable, uses)) {
        give_up();
        release(uses);
    }
    spw_unlock(&spw_locks.graphs);
}

/* ---- launches ---- */

/* The bytes of all devices that have gone to the host so far. */
static uint64_t spilled_bytes(void)
{
    uint64_t bytes = 0;

    for (int i = 0; i < spw_device_count(); i++) {
        bytes += spw_counter_get(&spw_device_at(i)->counters->spilled_bytes);
    }
    return bytes;
}

/* Brings the blocks that a graph names back to their devices. Does nothing if no memory has gone to
 * the host since all these blocks were on their devices. */
static void bring_back(struct spw_graph_uses *uses)
{
    uint64_t spilled = spilled_bytes();
    bool whole = true;

    if (spilled == atomic_load(&uses->whole_since)) {
        return;
    }
    for (int i = 0; i < spw_device_count(); i++) {
        whole =
            spw_device_fetch(spw_device_at(i), uses->named.addresses, uses->named.count) && whole;
    }
    if (whole) {
        atomic_store(&uses->whole_since, spilled);
    }
}

/* The uses of an executable graph, with one more reference; NULL when they are not known. */
static struct spw_graph_uses *get_uses(CUgraphExec executable)
{
    struct spw_graph_uses *uses;

    spw_lock(&spw_locks.graphs);
    uses = spw_map_get(&spw_graph.graphs.executables, (uintptr_t)executable);
    if (uses != NULL && !uses->known) {
        uses = NULL;
    }
    if (uses != NULL) {
        uses->references++;
    }
    spw_unlock(&spw_locks.graphs);
    return uses;
}

void spw_graph_note_users(CUgraphExec executable, CUstream stream, bool per_thread)
{
    struct spw_graph_uses *uses;

    if (!atomic_load(&spw_devices.uses_several)) {
        return;
    }
    uses = get_uses(executable);
    if (uses == NULL) {
        spw_program_users_note_anywhere(stream, per_thread);
        return;
    }
    spw_program_users_note(uses->named.addresses, uses->named.count, stream, per_thread);
    spw_lock(&spw_locks.graphs);
    drop_reference(uses);
    spw_unlock(&spw_locks.graphs);
}

struct spw_graph_uses *spw_graph_expect(CUgraphExec executable, CUstream stream, bool per_thread)
{
    struct spw_graph_uses *uses = get_uses(executable);

    if (uses != NULL) {
        spw_submit_use_expect(uses->named.addresses, uses->named.count, stream, per_thread);
        bring_back(uses);
    }
    return uses;
}

/* True if a block that a graph names contains addresses. The graph's kernels may use these to reach
 * other memory. */
static bool is_indirect(const struct spw_graph_uses *uses)
{
    size_t i = 0;

    while (i < uses->named.count &&
           !spw_submit_indirect_at(uses->named.addresses[i], /* ours */ true)) {
        i++;
    }
    return i < uses->named.count || spw_submit_indirect_everywhere();
}

void spw_graph_note(struct spw_graph_uses *uses)
{
    const struct spw_use use = {.known = uses->direct && !is_indirect(uses),
                                .kernel = true,
                                .count = uses->named.count,
                                .addresses = uses->named.addresses};

    spw_submit_use_note(&use);
    spw_lock(&spw_locks.graphs);
    drop_reference(uses);
    spw_unlock(&spw_locks.graphs);
}

/* ---- fork ---- */

static void free_uses(struct spw_map *map)
{
    struct spw_graph_uses *uses;
    size_t cursor = 0;

    while ((uses = spw_map_next(map, &cursor)) != NULL) {
        free(uses->named.addresses);
        free(uses->kept.addresses);
    }
    spw_map_clear(map);
}

void spw_graph_reset(void)
{
    spw_lock(&spw_locks.graphs);
    free_uses(&spw_graph.graphs.executables);
    spw_map_clear(&spw_graph.graphs.captured);
    spw_map_clear(&spw_graph.graphs.named);
    spw_graph.graphs.unreadable = 0;
    spw_unlock(&spw_locks.graphs);
}
