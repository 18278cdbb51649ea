#include "cli/policies/decision.h"

#include "callsite/label.h"
#include "callsite/rule.h"
#include "cli/console/messages.h"
#include "common/utf8.h"

#include <stdio.h>
#include <stdlib.h>

enum { RULES_MOST = 64 }; /* in a policy */

struct plan {
    const struct spw_cli_sites_file *file;
    int device;
    struct spw_callsite_group *groups;
    int count;
    bool *taken; /* sites that a chosen rule matches */
};

static bool is_candidate(const struct plan *plan, size_t i)
{
    const struct spw_cli_sites_entry *entry = &plan->file->entries[i];

    return entry->device == plan->device && entry->rest == 0 && entry->id != 0 &&
           entry->device_peak_bytes > 0 && !plan->taken[i];
}

static void group(struct plan *plan)
{
    struct spw_callsite_condition condition;

    plan->count = 0;
    for (size_t i = 0; i < plan->file->count; i++) {
        const struct spw_cli_sites_entry *entry = &plan->file->entries[i];
        bool known = is_candidate(plan, i);

        for (int inner = 0; known && inner <= spw_callsite_has_inner(&entry->facts); inner++) {
            if (spw_callsite_condition_of(&entry->facts, inner != 0, &condition)) {
                const struct spw_callsite_group site = {
                    .hash = spw_callsite_condition_hash(&condition),
                    .bytes = entry->device_peak_bytes,
                    .allocs = entry->allocs,
                    .frees = entry->frees,
                    .optimizer = spw_callsite_is_optimizer(&entry->facts),
                    .inner = inner != 0,
                    .first = (int)i,
                };

                plan->count = spw_callsite_group_add(plan->groups, plan->count, &site);
            }
        }
    }
}

/* Marks the sites that the rule matches. Returns the bytes that they held at the peak. */
static uint64_t take(struct plan *plan, const struct spw_callsite_condition *condition)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < plan->file->count; i++) {
        if (is_candidate(plan, i) &&
            spw_callsite_condition_holds(condition, &plan->file->entries[i].facts)) {
            bytes += plan->file->entries[i].device_peak_bytes;
            plan->taken[i] = true;
        }
    }
    return bytes;
}

static void add_comment(cJSON *rule, const struct spw_callsite_group *chosen, uint64_t bytes,
                        const struct spw_callsite_facts *facts)
{
    static const char *const costs[] = {
        "state of the optimizer: used once a step",
        "memory that stays: used some times a step",
        "memory that comes and goes: used again soon, which costs most",
    };
    cJSON *list = cJSON_AddArrayToObject(rule, "comment");
    struct spw_cli_line line = {""};
    char label[SPW_CALLSITE_LABEL];

    spw_callsite_label(facts, label, sizeof(label));
    spw_utf8_plain(label, /* keep */ "");
    spw_cli_line_add(&line, "%s at the peak, such as %s", spw_cli_size(bytes), label);
    cJSON_AddItemToArray(list, cJSON_CreateString(line.text));
    cJSON_AddItemToArray(list, cJSON_CreateString(costs[spw_callsite_group_cost(chosen)]));
}

/* Adds the next rule, which should free `missing` bytes. Returns the bytes that the rule frees, or
 * 0 if there is no rule. */
static uint64_t add_rule(struct plan *plan, uint64_t missing, cJSON *rules)
{
    struct spw_callsite_condition condition;
    const struct spw_callsite_facts *facts;
    char text[SPW_CALLSITE_RULE], name[32];
    uint64_t bytes;
    cJSON *rule;
    int best;

    group(plan);
    best = spw_callsite_group_choose(plan->groups, plan->count, missing);
    if (best < 0) {
        return 0;
    }
    facts = &plan->file->entries[plan->groups[best].first].facts;
    (void)spw_callsite_condition_of(facts, plan->groups[best].inner, &condition);
    spw_callsite_condition_put(&condition, text);
    bytes = take(plan, &condition);
    rule = cJSON_Parse(text);
    if (rule == NULL || bytes == 0) {
        cJSON_Delete(rule);
        return 0;
    }
    (void)snprintf(name, sizeof(name), "to-host-%d", cJSON_GetArraySize(rules) + 1);
    cJSON_ReplaceItemInObjectCaseSensitive(rule, "name", cJSON_CreateString(name));
    add_comment(rule, &plan->groups[best], bytes, facts);
    cJSON_AddItemToArray(rules, rule);
    return bytes;
}

static cJSON *make(struct plan *plan, uint64_t bytes, uint64_t *ret_freed)
{
    cJSON *policy = cJSON_CreateObject(), *rules;
    struct spw_cli_line what = {""};
    uint64_t freed = 0, more = 1;

    spw_cli_line_add(&what,
                     "Written by spillway policy suggest, to free %s of device %d at its peak. "
                     "Lines of the script are named: after a change of it, ask again.",
                     spw_cli_size(bytes), plan->device);
    cJSON_AddNumberToObject(policy, "version", 1);
    cJSON_AddStringToObject(policy, "comment", what.text);
    rules = cJSON_AddArrayToObject(policy, "rules");
    while (freed < bytes && more > 0 && cJSON_GetArraySize(rules) < RULES_MOST) {
        more = add_rule(plan, bytes - freed, rules);
        freed += more;
    }
    *ret_freed = freed;
    if (cJSON_GetArraySize(rules) == 0) {
        cJSON_Delete(policy);
        return NULL;
    }
    return policy;
}

cJSON *spw_cli_policy_suggest(const struct spw_cli_sites_file *file, int device, uint64_t bytes,
                              uint64_t *ret_freed)
{
    struct plan plan = {
        .file = file,
        .device = device,
        .groups = calloc(2 * file->count + 1, sizeof(*plan.groups)),
        .taken = calloc(file->count + 1, sizeof(*plan.taken)),
    };
    cJSON *policy = NULL;

    *ret_freed = 0;
    if (plan.groups != NULL && plan.taken != NULL) {
        policy = make(&plan, bytes, ret_freed);
    }
    free(plan.groups);
    free(plan.taken);
    return policy;
}
