#include "cli/advise/groups.h"

#include "common/minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZES = 8, /* a place with more sizes is one group, because its sizes differ from step to
                * step */
    PLACES = 4096,
};

/* The places of all kinds: a rule matches one place. */
struct places {
    struct spw_cli_advise_where *list; /* distinct */
    unsigned *sizes;                   /* number of kinds of each place */
    size_t count;
    int *of_kind; /* the place of each kind; -1: no rule can name it, or `list` is full */
};

static bool places_init(struct places *places, size_t kinds)
{
    *places = (struct places){
        .list = calloc(PLACES, sizeof(*places->list)),
        .sizes = calloc(PLACES, sizeof(*places->sizes)),
        .of_kind = calloc(kinds, sizeof(*places->of_kind)),
    };
    return places->list != NULL && places->sizes != NULL && places->of_kind != NULL;
}

static void places_fini(struct places *places)
{
    free(places->list);
    free(places->sizes);
    free(places->of_kind);
}

static int find_place(struct places *places, const struct spw_cli_advise_where *where)
{
    for (size_t i = 0; i < places->count; i++) {
        if (spw_cli_advise_where_is_same(&places->list[i], where)) {
            return (int)i;
        }
    }
    if (places->count == PLACES) {
        return -1;
    }
    places->list[places->count] = *where;
    return (int)places->count++;
}

static void find_places(struct places *places, const struct spw_cli_advise_history *history)
{
    places->of_kind[0] = -1;
    for (size_t i = 1; i < history->kind_count; i++) {
        struct spw_cli_advise_where where;
        bool named = spw_cli_advise_where_of(history->kinds[i].site, &where);

        places->of_kind[i] = named ? find_place(places, &where) : -1;
        if (places->of_kind[i] >= 0) {
            places->sizes[places->of_kind[i]]++;
        }
    }
}

/* ---- kinds to groups ---- */

static int find_group(struct spw_cli_advise_groups *groups, const struct places *places,
                      size_t kind)
{
    int place = places->of_kind[kind];
    const struct spw_cli_advise_kind *of = &groups->history->kinds[kind];
    bool together = places->sizes[place] > SIZES;
    struct spw_cli_advise_group *group = groups->list;

    for (; group < groups->list + groups->count; group++) {
        if (spw_cli_advise_where_is_same(&group->where, &places->list[place]) &&
            (together || group->least == of->bytes)) {
            return (int)(group - groups->list);
        }
    }
    *group = (struct spw_cli_advise_group){
        .where = places->list[place], .least = of->bytes, .most = of->bytes, .site = of->site};
    return (int)groups->count++;
}

static bool is_seen(const struct spw_cli_advise_history *history, size_t kind)
{
    return !history->has_uses || history->kinds[kind].uses > 0;
}

static void add_kind(struct spw_cli_advise_groups *groups, size_t kind, int number)
{
    const struct spw_cli_advise_kind *of = &groups->history->kinds[kind];
    struct spw_cli_advise_group *group = &groups->list[number];

    groups->of_kind[kind] = number;
    group->least = spw_min(group->least, of->bytes);
    group->most = spw_max(group->most, of->bytes);
    group->at_peak += of->at_peak;
    group->seen |= is_seen(groups->history, kind);
}

static void add_kinds(struct spw_cli_advise_groups *groups, const struct places *places)
{
    for (size_t i = 0; i < groups->history->kind_count; i++) {
        groups->of_kind[i] = -1;
        if (places->of_kind[i] >= 0) {
            add_kind(groups, i, find_group(groups, places, i));
        }
    }
}

/* ---- figures ---- */

/* For each group, writes the highest bytes that its kinds held at any time. Either all kinds are
 * counted, or only kinds that were seen in use. `held` is scratch memory. */
static void find_highest(const struct spw_cli_advise_groups *groups, bool seen_only, uint64_t *held,
                         uint64_t *ret_highest)
{
    const struct spw_cli_advise_history *history = groups->history;

    memset(held, 0, groups->count * sizeof(*held));
    memset(ret_highest, 0, groups->count * sizeof(*ret_highest));
    for (size_t i = 0; i < history->change_count; i++) {
        const struct spw_cli_advise_change *change = &history->changes[i];
        int group = groups->of_kind[change->kind];

        if (group >= 0 && (!seen_only || is_seen(history, change->kind))) {
            held[group] += (uint64_t)change->bytes;
            ret_highest[group] = spw_max(ret_highest[group], held[group]);
        }
    }
}

/* Sets the rate of each group, from the kinds seen in use. */
static void find_rates(struct spw_cli_advise_groups *groups, const uint64_t *highest)
{
    const struct spw_cli_advise_history *history = groups->history;
    double steps = history->steps > 0 ? history->steps : 1;

    for (size_t i = 0; i < history->kind_count; i++) {
        groups->link_bytes[i] = (double)history->kinds[i].link_bytes / steps;
        if (groups->of_kind[i] >= 0) {
            groups->list[groups->of_kind[i]].rate += groups->link_bytes[i];
        }
    }
    for (size_t i = 0; i < groups->count; i++) {
        groups->list[i].rate /= highest[i] > 0 ? (double)highest[i] : 1;
    }
}

/* Sums the figures of each group. If a kind was not seen in use, charges it at the rate of its
 * group. */
static void charge(struct spw_cli_advise_groups *groups)
{
    for (size_t i = 0; i < groups->history->kind_count; i++) {
        struct spw_cli_advise_group *group;

        if (groups->of_kind[i] < 0) {
            continue;
        }
        group = &groups->list[groups->of_kind[i]];
        if (!is_seen(groups->history, i)) {
            groups->link_bytes[i] = group->rate * (double)groups->history->kinds[i].at_peak;
        }
        group->link_bytes += groups->link_bytes[i];
        group->allocated +=
            spw_cli_advise_history_allocated(groups->history, &groups->history->kinds[i]);
    }
}

static bool find_figures(struct spw_cli_advise_groups *groups)
{
    uint64_t *held = calloc(groups->count + 1, sizeof(*held));
    uint64_t *highest = calloc(groups->count + 1, sizeof(*highest));
    bool good = held != NULL && highest != NULL;

    if (good) {
        find_highest(groups, /* seen only */ true, held, highest);
        find_rates(groups, highest);
        charge(groups);
        find_highest(groups, /* seen only */ false, held, highest);
    }
    for (size_t i = 0; good && i < groups->count; i++) {
        groups->list[i].highest = highest[i];
    }
    free(held);
    free(highest);
    return good;
}

/* ---- the largest ---- */

static int compare(const void *left, const void *right)
{
    const struct spw_cli_advise_group *a = left, *b = right;

    if (a->seen != b->seen) {
        return a->seen ? -1 : 1;
    }
    return a->highest < b->highest ? 1 : a->highest > b->highest ? -1 : 0;
}

static int group_of(const struct spw_cli_advise_groups *groups,
                    const struct spw_cli_advise_where *place, uint64_t bytes)
{
    for (size_t i = 0; i < groups->count; i++) {
        const struct spw_cli_advise_group *group = &groups->list[i];

        if (bytes >= group->least && bytes <= group->most &&
            spw_cli_advise_where_is_same(&group->where, place)) {
            return (int)i;
        }
    }
    return -1;
}

static void keep_largest(struct spw_cli_advise_groups *groups, const struct places *places,
                         size_t most)
{
    size_t seen = 0;

    qsort(groups->list, groups->count, sizeof(*groups->list), compare);
    while (seen < groups->count && seen < most && groups->list[seen].seen) {
        seen++;
    }
    groups->count = seen;
    for (size_t i = 0; i < groups->history->kind_count; i++) {
        int place = places->of_kind[i];

        groups->of_kind[i] =
            place < 0 ? -1
                      : group_of(groups, &places->list[place], groups->history->kinds[i].bytes);
    }
}

bool spw_cli_advise_groups_make(const struct spw_cli_advise_history *history, size_t most,
                                struct spw_cli_advise_groups *ret_groups)
{
    size_t kinds = history->kind_count;
    struct places places;
    bool good;

    *ret_groups = (struct spw_cli_advise_groups){
        .history = history,
        .list = calloc(kinds, sizeof(*ret_groups->list)),
        .of_kind = calloc(kinds, sizeof(*ret_groups->of_kind)),
        .link_bytes = calloc(kinds, sizeof(*ret_groups->link_bytes)),
    };
    good = places_init(&places, kinds) && ret_groups->list != NULL && ret_groups->of_kind != NULL &&
           ret_groups->link_bytes != NULL;
    if (good) {
        find_places(&places, history);
        add_kinds(ret_groups, &places);
        good = find_figures(ret_groups);
    }
    if (good) {
        keep_largest(ret_groups, &places, most);
    }
    places_fini(&places);
    return good;
}

void spw_cli_advise_groups_fini(struct spw_cli_advise_groups *groups)
{
    free(groups->list);
    free(groups->of_kind);
    free(groups->link_bytes);
}
