#include "callsite/top_sites.h"

#include "callsite/capture.h"
#include "callsite/facts.h"
#include "callsite/rule.h"

#include <stdio.h>
#include <string.h>

/* Sites that are looked at for a rule. */
enum { LOOKED_AT = 200 };

static const char unknown[] = "not known";

/* The sites that hold something, the largest first. */
struct heap {
    int count;
    uint32_t sites[LOOKED_AT];
    uint64_t bytes[LOOKED_AT];
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

/* Puts a site into words; those of native functions only where they are needed. False for 0. */
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
static int group(const struct spw_charges *charges, const struct heap *heap,
                 struct spw_callsite_group *ret_groups)
{
    struct spw_callsite_condition condition;
    struct spw_callsite_words words;
    int count = 0;

    for (int i = 0; i < heap->count; i++) {
        const struct spw_charge *charge = &charges->sites[heap->sites[i]];
        bool known = describe(heap->sites[i], &words);

        for (int inner = 0; known && inner <= spw_callsite_has_inner(&words.facts); inner++) {
            if (spw_callsite_condition_of(&words.facts, inner != 0, &condition)) {
                const struct spw_callsite_group site = {
                    .hash = spw_callsite_condition_hash(&condition),
                    .bytes = heap->bytes[i],
                    .allocs = spw_counter_get(&charge->allocs),
                    .frees = spw_counter_get(&charge->frees),
                    .optimizer = spw_callsite_is_optimizer(&words.facts),
                    .first = i,
                    .inner = inner != 0,
                };

                count = spw_callsite_group_add(ret_groups, count, &site);
            }
        }
    }
    return count;
}

static void propose(const struct spw_charges *charges, const struct heap *heap,
                    uint64_t missing_bytes, struct spw_callsite_holding *holding)
{
    struct spw_callsite_group groups[2 * LOOKED_AT];
    int best = spw_callsite_group_choose(groups, group(charges, heap, groups), missing_bytes);
    struct spw_callsite_condition condition;
    struct spw_callsite_words words;

    if (best < 0 || !describe(heap->sites[groups[best].first], &words) ||
        !spw_callsite_condition_of(&words.facts, groups[best].inner, &condition)) {
        return;
    }
    spw_callsite_condition_put(&condition, holding->rule);
    for (int i = 0; i < heap->count; i++) {
        if (describe(heap->sites[i], &words) &&
            spw_callsite_condition_holds(&condition, &words.facts)) {
            holding->rule_bytes += heap->bytes[i];
        }
    }
}

/* ---- whole ---- */

void spw_callsite_holding(const struct spw_charges *charges, uint64_t missing_bytes,
                          struct spw_callsite_holding *ret_holding)
{
    struct heap heap = {.count = 0};

    memset(ret_holding, 0, sizeof(*ret_holding));
    choose_all(charges, &heap, ret_holding);
    list(charges, &heap, ret_holding);
    propose(charges, &heap, missing_bytes, ret_holding);
}

void spw_callsite_label_of(uint32_t site, char *ret_label, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    struct spw_callsite_words words;

    if (known != NULL) {
        spw_callsite_describe(known, /* native */ true, &words);
        spw_callsite_label(&words.facts, ret_label, capacity);
    } else {
        (void)snprintf(ret_label, capacity, "%s", unknown);
    }
}
