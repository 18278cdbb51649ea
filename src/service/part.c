#include "service/part.h"

#include "callsite/capture.h"
#include "callsite/facts.h"
#include "callsite/label.h"
#include "policy/decision.h"
#include "system/lock.h"
#include "system/room.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static struct spw_service_paused *const paused = &spw_service.paused;

/* ---- blocks ---- */

static bool has_label(const struct spw_callsite *site, const char *pattern)
{
    struct spw_callsite_words SPW_ROOM *words = spw_room_take(sizeof(*words));
    char label[SPW_CALLSITE_LABEL];

    if (words == NULL) {
        return false;
    }
    spw_callsite_describe(site, /* native */ true, words);
    spw_callsite_label(&words->facts, label, sizeof(label));
    return fnmatch(pattern, label, FNM_NOESCAPE) == 0;
}

static bool has_tag(const struct spw_callsite *site, const char *tag)
{
    return site->tag != 0 &&
           strcmp(spw_callsite_strings_text(spw_callsite_texts(), site->tag), tag) == 0;
}

/* Sets the bits of the sites with a name. False when there is none. */
static bool find_sites(bool (*has)(const struct spw_callsite *site, const char *name),
                       const char *name, struct spw_part_blocks *blocks)
{
    uint32_t count = spw_callsite_table_count(spw_callsite_known());
    bool found = false;

    memset(blocks->sites, 0, sizeof(blocks->sites));
    for (uint32_t i = 1; i <= count && i < SPW_PART_SITES; i++) {
        if (has(spw_callsite_table_get(spw_callsite_known(), i), name)) {
            blocks->sites[i / 64] |= UINT64_C(1) << i % 64;
            found = true;
        }
    }
    blocks->filter.sites = blocks->sites;
    blocks->filter.site_count = SPW_PART_SITES;
    return found;
}

bool spw_service_part_find(const struct spw_part *part, struct spw_part_blocks *ret_blocks)
{
    const char *name = part->name != NULL ? part->name : "";
    char pattern[SPW_STATS_PART + 2];

    ret_blocks->filter = (struct spw_block_filter){0};
    switch (part->kind) {
    case SPW_CONTROL_PART_RULE:
        ret_blocks->filter.account = (uint8_t)spw_policy_decision_find(name);
        return ret_blocks->filter.account != 0;
    case SPW_CONTROL_PART_SITE:
        snprintf(pattern, sizeof(pattern), "*%s*", name);
        return *name != '\0' && find_sites(has_label, pattern, ret_blocks);
    case SPW_CONTROL_PART_TAG:
        return *name != '\0' && find_sites(has_tag, name, ret_blocks);
    default: /* another process may have written any number */
        return part->kind == SPW_CONTROL_PART_ALL;
    }
}

/* ---- the list ---- */

/* The place of a part in the list; the end of the list when it is not there. */
static size_t place_of(const struct spw_part *part)
{
    const char *name = part->name != NULL ? part->name : "";
    size_t i = 0;

    while (i < paused->count && (paused->items[i].kind != part->kind ||
                                 strncmp(paused->items[i].name, name, SPW_STATS_PART - 1) != 0)) {
        i++;
    }
    return i;
}

void spw_service_part_begin(const struct spw_part *part)
{
    size_t i;

    spw_lock(&spw_locks.parts);
    i = place_of(part);
    if (i == paused->count && i < SPW_PAUSED_MOST) {
        paused->items[i].kind = part->kind;
        snprintf(paused->items[i].name, SPW_STATS_PART, "%s", part->name != NULL ? part->name : "");
        paused->count++;
    } else if (i == paused->count) {
        paused->more = true;
    }
    spw_unlock(&spw_locks.parts);
}

size_t spw_service_part_end(const struct spw_part *part)
{
    size_t i, left;

    spw_lock(&spw_locks.parts);
    i = place_of(part);
    if (i < paused->count) {
        paused->items[i] = paused->items[--paused->count];
    }
    left = paused->count + paused->more;
    spw_unlock(&spw_locks.parts);
    return left;
}

void spw_service_part_end_all(void)
{
    spw_lock(&spw_locks.parts);
    paused->count = 0;
    paused->more = false;
    spw_unlock(&spw_locks.parts);
}
