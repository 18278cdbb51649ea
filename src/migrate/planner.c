#include "migrate/planner.h"

#include "migrate/tuning.h"

/* The order of the two queues. On the host: the granule that is used first comes first. On the
 * device: the best victim comes first, of low priority, used late, or, unpredicted, unused for
 * long. */
static bool is_before(const struct spw_planner_granule *left,
                      const struct spw_planner_granule *right)
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

/* ---- the granules of a tier, in that order ---- */

/* A binary heap, followed by the granules taken from it. Only a few of many thousands are taken, so
 * sorting all of them would waste time. */
struct queue {
    struct spw_planner_granule *granules;
    size_t count; /* in the heap; those taken follow */
    size_t taken;
};

static void swap(struct spw_planner_granule *left, struct spw_planner_granule *right)
{
    struct spw_planner_granule kept = *left;

    *left = *right;
    *right = kept;
}

static void sift_down(const struct queue *queue, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < queue->count; at = child) {
        if (child + 1 < queue->count &&
            is_before(&queue->granules[child + 1], &queue->granules[child])) {
            child++;
        }
        if (!is_before(&queue->granules[child], &queue->granules[at])) {
            return;
        }
        swap(&queue->granules[child], &queue->granules[at]);
    }
}

static struct queue make_queue(struct spw_planner_granule *granules, size_t count)
{
    const struct queue queue = {.granules = granules, .count = count};

    for (size_t at = count / 2; at > 0; at--) {
        sift_down(&queue, at - 1);
    }
    return queue;
}

/* Takes the first granule of a queue that is not empty. */
static struct spw_planner_granule *take(struct queue *queue)
{
    struct spw_planner_granule *last = &queue->granules[--queue->count];

    swap(&queue->granules[0], last);
    queue->taken++;
    sift_down(queue, 0);
    return last;
}

/* Moves the granules on the host to the front. Returns their number. */
static size_t part(struct spw_planner_granule *granules, size_t count)
{
    size_t hosts = 0;

    for (size_t i = 0; i < count; i++) {
        if (granules[i].host) {
            swap(&granules[i], &granules[hosts++]);
        }
    }
    return hosts;
}

/* ---- the walk ---- */

struct walk {
    const struct spw_planner_input *input;
    uint32_t undo_at; /* when the first chosen granule is freed */
    struct queue hosts, victims;
    size_t need;
    size_t in, out;
    int64_t room;   /* free room at the time of the need */
    int64_t lowest; /* minimum of the room until then; a granule fetched now takes room all that
                     * time */
    struct spw_planner_move *moves;
};

/* Adds a granule to the plan. */
static void choose(struct walk *walk, struct spw_planner_granule *granule)
{
    walk->moves[walk->in + walk->out] =
        (struct spw_planner_move){.index = granule->index, .to_host = !granule->host};
    walk->out += !granule->host;
    walk->in += granule->host;
    granule->moves = true;
    if (granule->end < walk->undo_at) {
        walk->undo_at = granule->end;
    }
}

/* The input counts frees as if nothing had moved. When a chosen granule is freed, corrects the room
 * for its having moved. */
static void undo_freed(struct walk *walk, const struct queue *queue, uint32_t at)
{
    for (size_t i = queue->count; i < queue->count + queue->taken; i++) {
        struct spw_planner_granule *granule = &queue->granules[i];
        int64_t bytes = (int64_t)walk->input->granule_bytes;

        if (granule->moves && granule->end <= at) {
            walk->room += granule->host ? bytes : -bytes;
            granule->moves = false;
        } else if (granule->moves && granule->end < walk->undo_at) {
            walk->undo_at = granule->end;
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

/* Evicts granules until a need at `at` fits. False when no further victim is allowed. */
static bool make_room(struct walk *walk, uint32_t at)
{
    const struct spw_planner_input *input = walk->input;

    if (walk->room < walk->lowest) {
        walk->lowest = walk->room;
    }
    while (walk->lowest < 0) {
        struct spw_planner_granule *victim;

        if (walk->victims.count == 0 || walk->out >= input->most) {
            return false;
        }
        victim = take(&walk->victims);
        if (victim->age < input->least_age || victim->end <= at) {
            continue;
        }
        if (victim->next <= at || victim->next - at < input->least_gap) {
            return false;
        }
        choose(walk, victim);
        walk->room += (int64_t)input->granule_bytes;
        walk->lowest += (int64_t)input->granule_bytes;
    }
    return true;
}

/* Time at which the next granule on the host is used; UINT32_MAX: none is left to fetch. */
static uint32_t next_fetch(const struct walk *walk)
{
    return walk->input->fetch && walk->hosts.count > 0 && walk->in < walk->input->most
               ? walk->hosts.granules[0].next
               : UINT32_MAX;
}

static bool take_need(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_need *need = &walk->input->needs[walk->need++];

    walk->room -= need->bytes;
    *ret_at = need->at;
    undo_freed_until(walk, need->at);
    return make_room(walk, need->at);
}

static bool take_host(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_input *input = walk->input;
    struct spw_planner_granule *host = take(&walk->hosts);

    undo_freed_until(walk, host->next);
    walk->room -= (int64_t)input->granule_bytes;
    walk->lowest -= (int64_t)input->granule_bytes;
    *ret_at = host->next;
    if (!make_room(walk, host->next)) {
        return false;
    }
    choose(walk, host);
    return true;
}

/* Handles the next need in time: an allocation, a free, or a granule to fetch. False at the end. */
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
    for (size_t i = 0; i < input->granule_count; i++) {
        struct spw_planner_granule *granule = &input->granules[i];

        granule->moves = false;
        granule->rank = granule->next == UINT32_MAX || input->grain_events == 0
                            ? granule->next
                            : granule->next / input->grain_events;
    }
}

/* True when a granule migrates in one run with the one before it in the list. */
static bool continues(const struct spw_planner_granule *granule)
{
    const struct spw_planner_granule *before = granule - 1;
    uint32_t apart =
        granule->rank > before->rank ? granule->rank - before->rank : before->rank - granule->rank;

    return granule->index == before->index + 1 && granule->host == before->host && apart <= 1;
}

/* Each run of neighbouring granules costs driver calls of its own, as long as copying several
 * granules. So granules in short runs rank as used sooner, and are evicted later. */
static void keep_short_runs(const struct spw_planner_input *input)
{
    for (size_t i = 0, end; i < input->granule_count; i = end) {
        struct spw_planner_granule *granules = input->granules;

        for (end = i + 1; end < input->granule_count && continues(&granules[end]); end++) {
        }
        for (size_t k = i; k < end && end - i < SPW_TUNE_SHORT_RUN; k++) {
            if (!granules[k].host && granules[k].rank != UINT32_MAX) {
                granules[k].rank -= granules[k].rank < SPW_TUNE_SHORT_RUN_BONUS
                                        ? granules[k].rank
                                        : SPW_TUNE_SHORT_RUN_BONUS;
            }
        }
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
    if (input->grain_events > 0) {
        keep_short_runs(input);
    }
    hosts = part(input->granules, input->granule_count);
    walk.hosts = make_queue(input->granules, hosts);
    walk.victims = make_queue(input->granules + hosts, input->granule_count - hosts);
    *ret_at = UINT32_MAX;
    for (;;) {
        size_t before = walk.in + walk.out;
        bool more = take_next(&walk, &at);

        if (*ret_at == UINT32_MAX && walk.in + walk.out > before) {
            *ret_at = at;
        }
        if (!more) {
            return walk.in + walk.out;
        }
    }
}
