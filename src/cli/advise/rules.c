#include "cli/advise/rules.h"

#include "callsite/label.h"
#include "cli/advise/cost.h"
#include "cli/console/messages.h"
#include "common/host_share.h"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

static const struct spw_json linked_json = {.parse = cJSON_ParseWithLengthOpts,
                                            .destroy = cJSON_Delete};

/* ---- comments ---- */

static bool have_one_rule(const struct spw_cli_advise_group *one,
                          const struct spw_cli_advise_group *other)
{
    return one->percent == other->percent &&
           spw_cli_advise_where_is_same(&one->where, &other->where);
}

/* The memory that a rule places on the host, and its cost. */
struct sum {
    uint64_t bytes, at_peak, cost_ns;
    double link_bytes, uses;
    uint32_t site;
};

static struct sum sum_of(const struct spw_cli_advise_group *groups, size_t count, size_t first)
{
    struct sum sum = {.site = groups[first].site};

    for (size_t i = first; i < count; i++) {
        const struct spw_cli_advise_group *group = &groups[i];

        if (have_one_rule(group, &groups[first])) {
            sum.bytes += spw_cli_advise_group_part(group, group->highest);
            sum.at_peak += spw_cli_advise_group_part(group, group->at_peak);
            sum.cost_ns += spw_cli_advise_group_part(group, group->cost_ns);
            sum.link_bytes += group->link_bytes * group->share;
        }
    }
    sum.uses = sum.bytes > 0 ? sum.link_bytes / (double)sum.bytes : 0;
    return sum;
}

static bool add_line(cJSON *list, const struct spw_cli_line *line)
{
    cJSON *text = cJSON_CreateString(line->text);

    return text != NULL && cJSON_AddItemToArray(list, text);
}

static bool add_comment(cJSON *rule, const struct spw_cli_advise_history *history,
                        const struct sum *sum)
{
    cJSON *list = cJSON_AddArrayToObject(rule, "comment");
    struct spw_cli_line saved = {""}, cost = {""}, why = {""};
    char label[SPW_CALLSITE_LABEL];

    spw_cli_recorded_sites_label(sum->site, label);
    spw_cli_line_add(&saved, "%s: %s less on the device at its peak; up to %s on the host", label,
                     spw_cli_size(sum->at_peak), spw_cli_size(sum->bytes));
    spw_cli_line_add(&cost, "%s a step over the link, about %.2f ms",
                     spw_cli_size((uint64_t)sum->link_bytes), (double)sum->cost_ns / 1e6);
    spw_cli_line_add(&why, "%s %.1f times a step, which is little for the memory that it saves",
                     history->has_uses ? "used" : "assumed to be used", sum->uses);
    return list != NULL && add_line(list, &saved) && add_line(list, &cost) && add_line(list, &why);
}

static bool add_head(cJSON *policy, uint64_t budget_bytes, uint64_t live_bytes)
{
    cJSON *list = cJSON_AddArrayToObject(policy, "comment");
    struct spw_cli_line what = {""}, how = {""};

    spw_cli_line_add(
        &what, "Written by spillway advise for a budget of %s: at most %s live on the device.",
        spw_cli_size(budget_bytes), spw_cli_size(live_bytes));
    spw_cli_line_add(
        &how, "The rules name lines of the script. After a change of the script or of sizes, "
              "run spillway advise again.");
    return list != NULL && add_line(list, &what) && add_line(list, &how);
}

/* ---- rules ---- */

static bool add_size(cJSON *list, const struct spw_cli_advise_group *group)
{
    cJSON *range = cJSON_CreateObject();

    return range != NULL && cJSON_AddItemToArray(list, range) &&
           cJSON_AddNumberToObject(range, "min", (double)group->least) != NULL &&
           cJSON_AddNumberToObject(range, "max", (double)group->most) != NULL;
}

static bool add_match(cJSON *rule, const struct spw_cli_advise_history *history,
                      const struct spw_cli_advise_group *groups, size_t count, size_t first)
{
    cJSON *match = cJSON_AddObjectToObject(rule, "match");
    cJSON *sizes;

    if (match == NULL || !spw_cli_advise_where_match(&groups[first].where, match) ||
        (history->several && cJSON_AddNumberToObject(match, "device", history->device) == NULL)) {
        return false;
    }
    sizes = cJSON_AddArrayToObject(match, "size");
    for (size_t i = first; sizes != NULL && i < count; i++) {
        if (have_one_rule(&groups[i], &groups[first]) && !add_size(sizes, &groups[i])) {
            return false;
        }
    }
    return sizes != NULL;
}

/* Makes a block immovable if it is partly on the host, so that its cost stays as predicted. */
static bool add_action(cJSON *action, unsigned percent)
{
    char share[8];

    if (percent == 100) {
        return cJSON_AddStringToObject(action, "placement", "host") != NULL;
    }
    (void)snprintf(share, sizeof(share), "%u%%", percent);
    return cJSON_AddStringToObject(action, "host_share", share) != NULL &&
           cJSON_AddBoolToObject(action, "movable", false) != NULL;
}

static bool add_rule(cJSON *rules, const struct spw_cli_advise_history *history,
                     const struct spw_cli_advise_group *groups, size_t count, size_t first)
{
    cJSON *rule = cJSON_CreateObject(), *action;
    struct sum sum = sum_of(groups, count, first);
    char place[64], name[64];

    if (rule == NULL || !cJSON_AddItemToArray(rules, rule)) {
        cJSON_Delete(rule);
        return false;
    }
    spw_cli_advise_where_name(&groups[first].where, place);
    (void)snprintf(name, sizeof(name), "%d.%.50s", cJSON_GetArraySize(rules), place);
    action = cJSON_AddStringToObject(rule, "name", name) != NULL &&
                     add_comment(rule, history, &sum) &&
                     add_match(rule, history, groups, count, first)
                 ? cJSON_AddObjectToObject(rule, "action")
                 : NULL;
    return action != NULL && add_action(action, groups[first].percent);
}

static bool has_rule(const struct spw_cli_advise_group *groups, size_t group)
{
    for (size_t i = 0; i < group; i++) {
        if (have_one_rule(&groups[i], &groups[group])) {
            return true;
        }
    }
    return false;
}

/* ---- modules ---- */

/* Adds a rule that recomputes modules, beginning with *module. The rule names as many modules as
 * possible. Advances *module. */
static bool add_modules(cJSON *rules, const struct spw_cli_advise_history *history,
                        const struct spw_cli_advise_decisions *decisions, size_t *module)
{
    cJSON *rule = cJSON_CreateObject(), *names;
    struct spw_cli_line cost = {""};
    char name[32], pattern[SPW_CLI_ADVISE_NAME];
    int count = 0;

    if (rule == NULL || !cJSON_AddItemToArray(rules, rule)) {
        cJSON_Delete(rule);
        return false;
    }
    (void)snprintf(name, sizeof(name), "%d.recompute", cJSON_GetArraySize(rules));
    spw_cli_line_add(&cost, "all modules that run again in backward cost a step about %.2f ms",
                     (double)decisions->again_ns / 1e6);
    names = cJSON_AddStringToObject(rule, "name", name) != NULL &&
                    cJSON_AddStringToObject(rule, "comment", cost.text) != NULL
                ? cJSON_AddArrayToObject(cJSON_AddObjectToObject(rule, "match"), "module")
                : NULL;
    for (; *module < history->module_count && count < SPW_POLICY_LIST_ITEMS; (*module)++) {
        cJSON *text;

        if (!decisions->again[*module] ||
            !spw_cli_advise_where_pattern(history->modules[*module].name, pattern)) {
            continue;
        }
        text = cJSON_CreateString(pattern);
        if (text == NULL || !cJSON_AddItemToArray(names, text)) {
            cJSON_Delete(text);
            return false;
        }
        count++;
    }
    return cJSON_AddBoolToObject(cJSON_AddObjectToObject(rule, "action"), "recompute", true) !=
           NULL;
}

/* Returns true if the plan recomputes `module` or a later module. */
static bool has_more(const struct spw_cli_advise_history *history,
                     const struct spw_cli_advise_decisions *decisions, size_t module)
{
    while (decisions->again != NULL && module < history->module_count &&
           !decisions->again[module]) {
        module++;
    }
    return decisions->again != NULL && module < history->module_count;
}

cJSON *spw_cli_advise_rules_make(const struct spw_cli_advise_history *history,
                                 const struct spw_cli_advise_decisions *decisions)
{
    const struct spw_cli_advise_group *groups = decisions->groups;
    cJSON *policy = cJSON_CreateObject(), *rules = NULL;
    size_t module = 0;
    bool good = policy != NULL && cJSON_AddNumberToObject(policy, "version", 1) != NULL &&
                add_head(policy, decisions->budget_bytes, decisions->live_bytes) &&
                (rules = cJSON_AddArrayToObject(policy, "rules")) != NULL;

    while (good && has_more(history, decisions, module)) {
        good = add_modules(rules, history, decisions, &module);
    }
    for (size_t i = 0; good && i < decisions->group_count; i++) {
        good = groups[i].percent == 0 || has_rule(groups, i) ||
               add_rule(rules, history, groups, decisions->group_count, i);
    }
    if (!good) {
        cJSON_Delete(policy);
        policy = NULL;
    }
    return policy;
}

/* ---- reading ---- */

/* The bytes of a kind's block that the policy places on the host. */
static uint64_t host_bytes_by(const struct spw_policy *policy,
                              const struct spw_cli_advise_history *history,
                              const struct spw_cli_advise_kind *kind)
{
    const struct spw_request_facts request = {
        .size = kind->bytes, .device = history->device, .nth = 0};
    static struct spw_callsite_words words;
    const struct spw_policy_action *action;
    int rule;

    if (!spw_cli_recorded_sites_describe(kind->site, &words)) {
        return 0;
    }
    rule = spw_policy_decide(policy, spw_policy_candidates(policy, &words.facts), &request);
    if (rule == SPW_POLICY_NO_RULE) {
        return 0;
    }
    action = &policy->rules[rule].action;
    if (action->placement == SPW_PLACEMENT_HOST) {
        return kind->bytes;
    }
    return action->host_share.set ? spw_host_share_bytes(kind->bytes, action->host_share.permille,
                                                         SPW_CLI_ADVISE_GRANULE)
                                  : 0;
}

bool spw_cli_advise_rules_apply(const cJSON *policy, const struct spw_cli_advise_history *history,
                                uint64_t *ret_host_bytes)
{
    char *text = cJSON_Print(policy);
    struct spw_policy_complaints complaints = {0};
    struct spw_policy *read =
        text != NULL ? spw_policy_parse(text, strlen(text), &linked_json, &complaints) : NULL;
    bool good = read != NULL;

    ret_host_bytes[0] = 0;
    for (size_t i = 1; good && i < history->kind_count; i++) {
        ret_host_bytes[i] = host_bytes_by(read, history, &history->kinds[i]);
    }
    for (size_t i = 0; i < complaints.count; i++) {
        spw_cli_print(stderr, "spillway: advise: its policy has a mistake: %s\n",
                      complaints.items[i].text);
    }
    spw_policy_complaints_fini(&complaints);
    spw_policy_destroy(read);
    cJSON_free(text);
    return good;
}
