#include "callsite/top_sites.h"

#include "callsite/capture.h"
#include "callsite/facts.h"
#include "system/room.h"

#include <stdio.h>
#include <string.h>

/* Most sites that the search for a rule looks at. */
enum { LOOKED_AT = 200 };

static const char unknown[] = "not known";

/* The sites that hold most memory, the largest first. */
struct heap {
    int count;
    uint32_t sites[LOOKED_AT];
    uint64_t bytes[LOOKED_AT];
};

/* The state of the search for a rule, which is larger than a function's stack may be. */
struct proposal {
    struct heap heap;
    struct spw_callsite_group groups[2 * LOOKED_AT];
    struct spw_callsite_condition condition;
    struct spw_callsite_words words;
};

/* ---- choosing ---- */

static void choose(struct heap *heap, uint32_t site, uint64_t bytes)
{
    int at = heap->count;

    if (at == LOOKED_AT) {
        if (heap->bytes[--at] >= bytes) {
            return;
        }
    } else {
        heap->count++;
    }
    for (; at > 0 && heap->bytes[at - 1] < bytes; at--) {
        heap->sites[at] = heap->sites[at - 1];
        heap->bytes[at] = heap->bytes[at - 1];
    }
    heap->sites[at] = site;
    heap->bytes[at] = bytes;
}

static void choose_all(const struct spw_charges *charges, struct heap *heap,
                       struct spw_callsite_holding *holding)
{
    uint32_t count = spw_callsite_table_count(spw_callsite_known());

    for (uint32_t site = 0; site <= spw_pool_charges_last(charges, count); site++) {
        uint64_t bytes = spw_counter_get(&charges->sites[site].live);

        if (bytes > 0) {
            holding->sites++;
            holding->bytes += bytes;
            choose(heap, site, bytes);
        }
    }
}

/* Describes a site, with native frames only if it has no Python frames. False for site 0. */
static bool describe(uint32_t number, struct spw_callsite_words *ret_words)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), number);

    if (site != NULL) {
        spw_callsite_describe(site, /* native */ site->python_count == 0, ret_words);
    }
    return site != NULL;
}

static void list(const struct spw_charges *charges, const struct heap *heap,
                 struct spw_callsite_holding *holding)
{
    for (int i = 0; i < heap->count && i < SPW_CALLSITE_HOLDERS; i++) {
        struct spw_callsite_holder *holder = &holding->holders[holding->count++];
        const struct spw_charge *charge = &charges->sites[heap->sites[i]];

        holder->site = heap->sites[i];
        holder->bytes = heap->bytes[i];
        holder->blocks = spw_counter_get(&charge->allocs) - spw_counter_get(&charge->frees);
        spw_callsite_label_of(holder->site, holder->label, sizeof(holder->label));
    }
}

/* ---- a rule ---- */

/* Groups the sites by the rule that would match them. Returns the number of groups. */
static int group(const struct spw_charges *charges, struct proposal *proposal)
{
    const struct heap *heap = &proposal->heap;
    const struct spw_callsite_facts *facts = &proposal->words.facts;
    int count = 0;

    for (int i = 0; i < heap->count; i++) {
        const struct spw_charge *charge = &charges->sites[heap->sites[i]];
        bool known = describe(heap->sites[i], &proposal->words);

        for (int inner = 0; known && inner <= spw_callsite_has_inner(facts); inner++) {
            if (spw_callsite_condition_of(facts, inner != 0, &proposal->condition)) {
                const struct spw_callsite_group site = {
                    .hash = spw_callsite_condition_hash(&proposal->condition),
                    .bytes = heap->bytes[i],
                    .allocs = spw_counter_get(&charge->allocs),
                    .frees = spw_counter_get(&charge->frees),
                    .optimizer = spw_callsite_is_optimizer(facts),
                    .first = i,
                    .inner = inner != 0,
                };

                count = spw_callsite_group_add(proposal->groups, count, &site);
            }
        }
    }
    return count;
}

static void propose(const struct spw_charges *charges, struct proposal *proposal,
                    uint64_t missing_bytes, struct spw_callsite_holding *holding)
{
    const struct heap *heap = &proposal->heap;
    const struct spw_callsite_group *groups = proposal->groups;
    const struct spw_callsite_facts *facts = &proposal->words.facts;
    int best = spw_callsite_group_choose(groups, group(charges, proposal), missing_bytes);

    if (best < 0 || !describe(heap->sites[groups[best].first], &proposal->words) ||
        !spw_callsite_condition_of(facts, groups[best].inner, &proposal->condition)) {
        return;
    }
    spw_callsite_condition_put(&proposal->condition, holding->rule);
    for (int i = 0; i < heap->count; i++) {
        if (describe(heap->sites[i], &proposal->words) &&
            spw_callsite_condition_holds(&proposal->condition, facts)) {
            holding->rule_bytes += heap->bytes[i];
        }
    }
}

/* ---- whole ---- */

void spw_callsite_holding(const struct spw_charges *charges, uint64_t missing_bytes,
                          struct spw_callsite_holding *ret_holding)
{
    struct proposal SPW_ROOM *proposal = spw_room_take(sizeof(*proposal));

    memset(ret_holding, 0, sizeof(*ret_holding));
    if (proposal == NULL) {
        return;
    }
    choose_all(charges, &proposal->heap, ret_holding);
    list(charges, &proposal->heap, ret_holding);
    propose(charges, proposal, missing_bytes, ret_holding);
}

void spw_callsite_label_of(uint32_t site, char *ret_label, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    struct spw_callsite_words SPW_ROOM *words =
        known != NULL ? spw_room_take(sizeof(*words)) : NULL;

    if (words != NULL) {
        spw_callsite_describe(known, /* native */ true, words);
        spw_callsite_label(&words->facts, ret_label, capacity);
    } else {
        (void)snprintf(ret_label, capacity, "%s", unknown);
    }
}
