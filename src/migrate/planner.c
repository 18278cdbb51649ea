#include "migrate/planner.h"

enum {
    RUN = 6,    /* granules, of which fewer are a short run */
    SOONER = 16 /* grains by which what lies in one seems to be used sooner */
};

/* Whether one granule comes before another of its tier: of those on the host what is used first, of
 * those on the device what is dear last. */
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

/* A heap, and behind it those that were taken from it: of tens of thousands, few are. */
struct queue {
    struct spw_planner_granule *granules;
    size_t count; /* in the heap */
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

/* The first; the queue is not empty. */
static struct spw_planner_granule *take(struct queue *queue)
{
    struct spw_planner_granule *last = &queue->granules[--queue->count];

    swap(&queue->granules[0], last);
    queue->taken++;
    sift_down(queue, 0);
    return last;
}

/* Brings those on the host to the front. Returns how many there are. */
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
    const struct spw_planner_question *question;
    uint32_t settle_at; /* when the first is freed of what was chosen */
    struct queue hosts, victims;
    size_t need;
    size_t in, out;
    int64_t room;   /* at the time of the need */
    int64_t lowest; /* of the room from now until then: what is fetched now takes of that */
    struct spw_planner_move *moves;
};

/* Notes that a granule is to move. */
static void choose(struct walk *walk, struct spw_planner_granule *granule)
{
    walk->moves[walk->in + walk->out] =
        (struct spw_planner_move){.index = granule->index, .to_host = !granule->host};
    walk->out += !granule->host;
    walk->in += granule->host;
    granule->moves = true;
    if (granule->end < walk->settle_at) {
        walk->settle_at = granule->end;
    }
}

/* Takes back what freed granules gave or took, for the frees are counted as if nothing had moved.
 */
static void settle(struct walk *walk, const struct queue *queue, uint32_t at)
{
    for (size_t i = queue->count; i < queue->count + queue->taken; i++) {
        struct spw_planner_granule *granule = &queue->granules[i];
        int64_t bytes = (int64_t)walk->question->granule_bytes;

        if (granule->moves && granule->end <= at) {
            walk->room += granule->host ? bytes : -bytes;
            granule->moves = false;
        } else if (granule->moves && granule->end < walk->settle_at) {
            walk->settle_at = granule->end;
        }
    }
}

static void settle_until(struct walk *walk, uint32_t at)
{
    if (walk->settle_at <= at) {
        walk->settle_at = UINT32_MAX;
        settle(walk, &walk->hosts, at);
        settle(walk, &walk->victims, at);
    }
}

/* Makes room for a need at `at` by sending granules to the host. False when none may go. */
static bool make_room(struct walk *walk, uint32_t at)
{
    const struct spw_planner_question *question = walk->question;

    if (walk->room < walk->lowest) {
        walk->lowest = walk->room;
    }
    while (walk->lowest < 0) {
        struct spw_planner_granule *victim;

        if (walk->victims.count == 0 || walk->out >= question->most) {
            return false;
        }
        victim = take(&walk->victims);
        if (victim->age < question->least_age || victim->end <= at) {
            continue;
        }
        if (victim->next <= at || victim->next - at < question->later) {
            return false;
        }
        choose(walk, victim);
        walk->room += (int64_t)question->granule_bytes;
        walk->lowest += (int64_t)question->granule_bytes;
    }
    return true;
}

/* When the next granule is to be fetched; UINT32_MAX: none is. */
static uint32_t next_fetch(const struct walk *walk)
{
    return walk->question->fetch && walk->hosts.count > 0 && walk->in < walk->question->most
               ? walk->hosts.granules[0].next
               : UINT32_MAX;
}

static bool take_need(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_need *need = &walk->question->needs[walk->need++];

    walk->room -= need->bytes;
    *ret_at = need->at;
    settle_until(walk, need->at);
    return make_room(walk, need->at);
}

static bool take_host(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_question *question = walk->question;
    struct spw_planner_granule *host = take(&walk->hosts);

    settle_until(walk, host->next);
    walk->room -= (int64_t)question->granule_bytes;
    walk->lowest -= (int64_t)question->granule_bytes;
    *ret_at = host->next;
    if (!make_room(walk, host->next)) {
        return false;
    }
    choose(walk, host);
    return true;
}

/* Takes the next need in time: a new block, a free, or a granule to fetch. False at the end. */
static bool take_next(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_planner_question *question = walk->question;
    uint32_t fetch = next_fetch(walk);

    if (walk->need < question->need_count && question->needs[walk->need].at <= fetch) {
        return take_need(walk, ret_at);
    }
    return fetch != UINT32_MAX && take_host(walk, ret_at);
}

static void rank(const struct spw_planner_question *question)
{
    for (size_t i = 0; i < question->granule_count; i++) {
        struct spw_planner_granule *granule = &question->granules[i];

        granule->moves = false;
        granule->rank = granule->next == UINT32_MAX || question->grain == 0
                            ? granule->next
                            : granule->next / question->grain;
    }
}

/* Whether a granule is exchanged together with the one before it in the list. */
static bool continues(const struct spw_planner_granule *granule)
{
    const struct spw_planner_granule *before = granule - 1;
    uint32_t apart =
        granule->rank > before->rank ? granule->rank - before->rank : before->rank - granule->rank;

    return granule->index == before->index + 1 && granule->host == before->host && apart <= 1;
}

/* Each run of neighbours that goes takes calls of its own, for as long as it takes to copy some
 * granules more: what lies in short ones goes as if it were used sooner. */
static void prefer_runs(const struct spw_planner_question *question)
{
    for (size_t i = 0, end; i < question->granule_count; i = end) {
        struct spw_planner_granule *granules = question->granules;

        for (end = i + 1; end < question->granule_count && continues(&granules[end]); end++) {
        }
        for (size_t k = i; k < end && end - i < RUN; k++) {
            if (!granules[k].host && granules[k].rank != UINT32_MAX) {
                granules[k].rank -= granules[k].rank < SOONER ? granules[k].rank : SOONER;
            }
        }
    }
}

size_t spw_migrate_planner_answer(const struct spw_planner_question *question,
                                  struct spw_planner_move *ret_moves, uint32_t *ret_at)
{
    struct walk walk = {.question = question,
                        .settle_at = UINT32_MAX,
                        .room = question->room_bytes,
                        .lowest = question->room_bytes,
                        .moves = ret_moves};
    uint32_t at = 0;
    size_t hosts;

    rank(question);
    if (question->grain > 0) {
        prefer_runs(question);
    }
    hosts = part(question->granules, question->granule_count);
    walk.hosts = make_queue(question->granules, hosts);
    walk.victims = make_queue(question->granules + hosts, question->granule_count - hosts);
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
