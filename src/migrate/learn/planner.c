#include "migrate/learn/planner.h"

/* The order of the two queues. On the host the chunk with the first use comes first. On the device
 * the best victim comes first: by low priority, then by late use, then by age. */
static bool is_before(const struct spw_planner_chunk *left, const struct spw_planner_chunk *right)
{
    if (left->host) {
        return left->rank != right->rank ? left->rank < right->rank : left->index < right->index;
    }
    if (left->priority != right->priority) {
        return left->priority < right->priority;
    }
    if (left->rank != right->rank) {
        return left->rank > right->rank;
    }
    if (left->rank == UINT32_MAX && left->age != right->age) {
        return left->age > right->age;
    }
    return left->index < right->index;
}

/* ---- the chunks of a tier, in that order ---- */

/* A binary heap, followed by the chunks taken from it. Only a few of many thousands are taken, so
 * sorting all of them would waste time. */
struct queue {
    struct spw_planner_chunk *chunks;
    size_t count; /* in the heap; those taken follow */
    size_t taken;
};

static void swap(struct spw_planner_chunk *left, struct spw_planner_chunk *right)
{
    struct spw_planner_chunk kept = *left;

    *left = *right;
    *right = kept;
}

static void sift_down(const struct queue *queue, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < queue->count; at = child) {
        if (child + 1 < queue->count &&
            is_before(&queue->chunks[child + 1], &queue->chunks[child])) {
            child++;
        }
        if (!is_before(&queue->chunks[child], &queue->chunks[at])) {
            return;
        }
        swap(&queue->chunks[child], &queue->chunks[at]);
    }
}

static struct queue make_queue(struct spw_planner_chunk *chunks, size_t count)
{
    const struct queue queue = {.chunks = chunks, .count = count};

    for (size_t at = count / 2; at > 0; at--) {
        sift_down(&queue, at - 1);
    }
    return queue;
}

/* Takes the first chunk of a queue that is not empty. */
static struct spw_planner_chunk *take(struct queue *queue)
{
    struct spw_planner_chunk *last = &queue->chunks[--queue->count];

    swap(&queue->chunks[0], last);
    queue->taken++;
    sift_down(queue, 0);
    return last;
}

/* Moves the chunks on the host to the front. Returns their number. */
static size_t part(struct spw_planner_chunk *chunks, size_t count)
{
    size_t hosts = 0;

    for (size_t i = 0; i < count; i++) {
        if (chunks[i].host) {
            swap(&chunks[i], &chunks[hosts++]);
        }
    }
    return hosts;
}

/* ---- the walk ---- */

struct walk {
    const struct spw_planner_input *input;
    uint32_t undo_at; /* when the first chosen chunk is freed */
    struct queue hosts, victims;
    size_t need;
    size_t in, out; /* granules */
    size_t count;   /* of the moves */
    int64_t room;   /* free room at the time of the need */
    int64_t lowest; /* minimum of the room until then; a chunk fetched now takes room for all that
                     * time */
    struct spw_planner_move *moves;
};

static int64_t bytes_of(const struct walk *walk, const struct spw_planner_chunk *chunk)
{
    return (int64_t)(chunk->count * walk->input->granule_bytes);
}

/* True if the plan has room for a chunk in its direction. The first chunk always fits. */
static bool is_within(const struct walk *walk, const struct spw_planner_chunk *chunk)
{
    size_t before = chunk->host ? walk->in : walk->out;

    return before == 0 || before + chunk->count <= walk->input->most;
}

/* Adds a chunk to the plan. */
static void choose(struct walk *walk, struct spw_planner_chunk *chunk)
{
    walk->moves[walk->count++] = (struct spw_planner_move){
        .index = chunk->index, .count = chunk->count, .to_host = !chunk->host};
    *(chunk->host ? &walk->in : &walk->out) += chunk->count;
    chunk->moves = true;
    if (chunk->end < walk->undo_at) {
        walk->undo_at = chunk->end;
    }
}

/* The input counts frees as if no chunk had moved. Corrects the room when a chosen chunk is freed,
 * because it has moved. */
static void undo_freed(struct walk *walk, const struct queue *queue, uint32_t at)
{
    for (size_t i = queue->count; i < queue->count + queue->taken; i++) {
        struct spw_planner_chunk *chunk = &queue->chunks[i];
        int64_t bytes = bytes_of(walk, chunk);

        if (chunk->moves && chunk->end <= at) {
            walk->room += chunk->host ? bytes : -bytes;
            chunk->moves = false;
        } else if (chunk->moves && chunk->end < walk->undo_at) {
            walk->undo_at = chunk->end;
        }
    }
}

static void undo_freed_until(struct walk *walk, uint32_t at)
{
    if (walk->undo_at <= at) {
        walk->undo_at = UINT32_MAX;
        undo_freed(walk, &walk->hosts, at);
        undo_freed(walk, &walk->victims, at);
    }
}

/* Evicts chunks until a need at `at` fits and `kept` bytes are left. False when no further victim
 * is allowed. */
static bool make_room(struct walk *walk, uint32_t at, int64_t kept)
{
    const struct spw_planner_input *input = walk->input;

    if (walk->room < walk->lowest) {
        walk->lowest = walk->room;
    }
    while (walk->lowest < kept) {
        struct spw_planner_chunk *victim;

        if (walk->victims.count == 0) {
            return false;
        }
        victim = take(&walk->victims);
        if (!is_within(walk, victim)) {
            return false;
        }
        if (victim->age < input->least_age || victim->end <= at) {
            continue;
        }
        if (victim->next <= at || victim->next - at < input->least_gap) {
            return false;
        }
        choose(walk, victim);
        walk->room += bytes_of(walk, victim);
        walk->lowest += bytes_of(walk, victim);
    }
    return true;
}

/* Time of the next use of a chunk on the host; UINT32_MAX: none is left to fetch. */
static uint32_t next_fetch(const struct walk *walk)
{
    return walk->input->fetch && walk->hosts.count > 0 && is_within(walk, &walk->hosts.chunks[0])
               ? walk->hosts.chunks[0].next
               : UINT32_MAX;
}

static bool take_need(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_need *need = &walk->input->needs[walk->need++];

    walk->room -= need->bytes;
    *ret_at = need->at;
    undo_freed_until(walk, need->at);
    return make_room(walk, need->at, 0);
}

static bool take_host(struct walk *walk, uint32_t *ret_at)
{
    struct spw_planner_chunk *host = take(&walk->hosts);

    undo_freed_until(walk, host->next);
    walk->room -= bytes_of(walk, host);
    walk->lowest -= bytes_of(walk, host);
    *ret_at = host->next;
    if (!make_room(walk, host->next, walk->input->kept_bytes)) {
        return false;
    }
    choose(walk, host);
    return true;
}

/* Handles the next need in time: an allocation, a free, or a chunk to fetch. False at the end. */
static bool take_next(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_input *input = walk->input;
    uint32_t fetch = next_fetch(walk);

    if (walk->need < input->need_count && input->needs[walk->need].at <= fetch) {
        return take_need(walk, ret_at);
    }
    return fetch != UINT32_MAX && take_host(walk, ret_at);
}

static void rank(const struct spw_planner_input *input)
{
    for (size_t i = 0; i < input->chunk_count; i++) {
        struct spw_planner_chunk *chunk = &input->chunks[i];

        chunk->moves = false;
        chunk->rank = chunk->next == UINT32_MAX || input->grain_events == 0
                          ? chunk->next
                          : chunk->next / input->grain_events;
    }
}

size_t spw_migrate_planner_run(const struct spw_planner_input *input,
                               struct spw_planner_move *ret_moves, uint32_t *ret_at)
{
    struct walk walk = {.input = input,
                        .undo_at = UINT32_MAX,
                        .room = input->room_bytes,
                        .lowest = input->room_bytes,
                        .moves = ret_moves};
    uint32_t at = 0;
    size_t hosts;

    rank(input);
    hosts = part(input->chunks, input->chunk_count);
    walk.hosts = make_queue(input->chunks, hosts);
    walk.victims = make_queue(input->chunks + hosts, input->chunk_count - hosts);
    *ret_at = UINT32_MAX;
    for (;;) {
        size_t before = walk.count;
        bool more = take_next(&walk, &at);

        if (*ret_at == UINT32_MAX && walk.count > before) {
            *ret_at = at;
        }
        if (!more) {
            return walk.count;
        }
    }
}
