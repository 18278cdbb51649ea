#include "tier/plan.h"

#include <stdlib.h>

/* Those on the host first, nearest use first; then those on the device, dearest last. */
static int by_worth(const void *a, const void *b)
{
    const struct spw_plan_granule *left = a, *right = b;

    if (left->host != right->host) {
        return left->host ? -1 : 1;
    }
    if (left->host) {
        if (left->rank != right->rank) {
            return left->rank < right->rank ? -1 : 1;
        }
        return left->index < right->index ? -1 : 1;
    }
    if (left->priority != right->priority) {
        return left->priority < right->priority ? -1 : 1;
    }
    if (left->rank != right->rank) {
        return left->rank > right->rank ? -1 : 1;
    }
    if (left->rank == UINT32_MAX && left->age != right->age) {
        return left->age > right->age ? -1 : 1;
    }
    return left->index < right->index ? -1 : 1;
}

struct walk {
    const struct spw_plan_question *question;
    uint32_t settle_at; /* when the first is freed of what was chosen */
    size_t host, hosts;  /* the next to fetch; how many are on the host */
    size_t victim;       /* the next to go */
    size_t need;
    size_t in, out;
    int64_t room;   /* at the time of the need */
    int64_t lowest; /* of the room from now until then: what is fetched now takes of that */
    struct spw_plan_move *moves;
};

/* Notes that a granule is to move. */
static void choose(struct walk *walk, struct spw_plan_granule *granule)
{
    walk->moves[walk->in + walk->out] =
        (struct spw_plan_move){.index = granule->index, .to_host = !granule->host};
    walk->out += !granule->host;
    walk->in += granule->host;
    granule->moves = true;
    if (granule->end < walk->settle_at) {
        walk->settle_at = granule->end;
    }
}

/* Takes back what freed granules gave or took, for the frees are counted as if nothing had moved.
 */
static void settle(struct walk *walk, size_t from, size_t end, uint32_t at)
{
    for (size_t i = from; i < end; i++) {
        struct spw_plan_granule *granule = &walk->question->granules[i];
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
        settle(walk, 0, walk->host, at);
        settle(walk, walk->hosts, walk->victim, at);
    }
}

/* Makes room for a need at `at` by sending granules to the host. False when none may go. */
static bool make_room(struct walk *walk, uint32_t at)
{
    const struct spw_plan_question *question = walk->question;

    if (walk->room < walk->lowest) {
        walk->lowest = walk->room;
    }
    while (walk->lowest < 0) {
        struct spw_plan_granule *victim = &question->granules[walk->victim];

        if (walk->victim >= question->granule_count || walk->out >= question->most) {
            return false;
        }
        walk->victim++;
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

/* Takes the next need in time: a new block, a free, or a granule to fetch. False at the end. */
static bool take_next(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_plan_question *question = walk->question;
    struct spw_plan_granule *host =
        question->fetch && walk->host < walk->hosts && walk->in < question->most
            ? &question->granules[walk->host]
            : NULL;
    const struct spw_plan_need *need =
        walk->need < question->need_count ? &question->needs[walk->need] : NULL;

    if (host != NULL && host->next == UINT32_MAX) {
        host = NULL;
    }
    if (host == NULL && need == NULL) {
        return false;
    }
    if (host == NULL || (need != NULL && need->at <= host->next)) {
        walk->need++;
        walk->room -= need->bytes;
        *ret_at = need->at;
        settle_until(walk, need->at);
        return make_room(walk, need->at);
    }
    walk->host++;
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

size_t spw_plan_answer(const struct spw_plan_question *question, struct spw_plan_move *ret_moves,
                       uint32_t *ret_at)
{
    struct walk walk = {.question = question,
                        .settle_at = UINT32_MAX,
                        .room = question->room_bytes,
                        .lowest = question->room_bytes,
                        .moves = ret_moves};
    uint32_t at;

    *ret_at = UINT32_MAX;
    for (size_t i = 0; i < question->granule_count; i++) {
        struct spw_plan_granule *granule = &question->granules[i];

        granule->moves = false;
        granule->rank = granule->next == UINT32_MAX || question->grain == 0
                            ? granule->next
                            : granule->next / question->grain;
    }
    qsort(question->granules, question->granule_count, sizeof(*question->granules), by_worth);
    while (walk.hosts < question->granule_count && question->granules[walk.hosts].host) {
        walk.hosts++;
    }
    walk.victim = walk.hosts;
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
