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
        if (left->next != right->next) {
            return left->next < right->next ? -1 : 1;
        }
        return left->index < right->index ? -1 : 1;
    }
    if (left->priority != right->priority) {
        return left->priority < right->priority ? -1 : 1;
    }
    if (left->rank != right->rank) {
        return left->rank > right->rank ? -1 : 1;
    }
    if (left->age != right->age) {
        return left->age > right->age ? -1 : 1;
    }
    return left->index < right->index ? -1 : 1;
}

struct walk {
    const struct spw_plan_question *question;
    size_t host, hosts;  /* the next to fetch; how many are on the host */
    size_t victim;       /* the next to go */
    size_t need;
    size_t in, out;
    int64_t room;   /* at the time of the need */
    int64_t lowest; /* of the room from now until then: what is fetched now takes of that */
    struct spw_plan_move *moves;
};

/* Makes room for a need at `at` by sending granules to the host. False when none may go. */
static bool make_room(struct walk *walk, uint32_t at)
{
    const struct spw_plan_question *question = walk->question;

    if (walk->room < walk->lowest) {
        walk->lowest = walk->room;
    }
    while (walk->lowest < 0) {
        const struct spw_plan_granule *victim = &question->granules[walk->victim];

        if (walk->victim >= question->granule_count || walk->out >= question->most) {
            return false;
        }
        walk->victim++;
        if (victim->age < question->least_age) {
            continue;
        }
        if (victim->next <= at || victim->next - at < question->later) {
            return false;
        }
        walk->moves[walk->in + walk->out++] =
            (struct spw_plan_move){.index = victim->index, .to_host = true};
        walk->room += (int64_t)question->granule_bytes;
        walk->lowest += (int64_t)question->granule_bytes;
    }
    return true;
}

/* Takes the next need in time: a new block, a free, or a granule to fetch. False at the end. */
static bool take_next(struct walk *walk, uint32_t *ret_at)
{
    const struct spw_plan_question *question = walk->question;
    const struct spw_plan_granule *host =
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
        return make_room(walk, need->at);
    }
    walk->host++;
    walk->room -= (int64_t)question->granule_bytes;
    walk->lowest -= (int64_t)question->granule_bytes;
    *ret_at = host->next;
    if (!make_room(walk, host->next)) {
        return false;
    }
    walk->moves[walk->in + walk->out] = (struct spw_plan_move){.index = host->index};
    walk->in++;
    return true;
}

size_t spw_plan_answer(const struct spw_plan_question *question, struct spw_plan_move *ret_moves,
                       uint32_t *ret_at)
{
    struct walk walk = {.question = question, .room = question->room_bytes,
                        .lowest = question->room_bytes, .moves = ret_moves};
    uint32_t at;

    *ret_at = UINT32_MAX;
    for (size_t i = 0; i < question->granule_count; i++) {
        struct spw_plan_granule *granule = &question->granules[i];

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
