#include "cli/keep/merge.h"

#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the rule of a list with the same match, or NULL. */
static cJSON *find_same(const cJSON *rules, const cJSON *rule)
{
    const cJSON *match = cJSON_GetObjectItem(rule, "match");
    cJSON *each;

    cJSON_ArrayForEach(each, rules)
    {
        const cJSON *other = cJSON_GetObjectItem(each, "match");

        if (cJSON_Compare(match, other, /* case_sensitive */ true) ||
            (match == NULL && other == NULL)) {
            return each;
        }
    }
    return NULL;
}

/* Returns the share that a rule places on the host, in percent. */
static int share_of(const cJSON *rule)
{
    const cJSON *action = cJSON_GetObjectItem(rule, "action");
    const char *share = cJSON_GetStringValue(cJSON_GetObjectItem(action, "host_share"));

    return share != NULL ? atoi(share) : cJSON_HasObjectItem(action, "placement") ? 100 : 0;
}

/* Gives a rule a number of its own: the names of the rules of a policy differ. */
static bool number_rule(cJSON *rule, int number)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(rule, "name"));
    const char *dot = name != NULL ? strchr(name, '.') : NULL;
    cJSON *text;
    char full[64];

    (void)snprintf(full, sizeof(full), "%d.%.50s", number, dot != NULL ? dot + 1 : "rule");
    text = cJSON_CreateString(full);
    return text != NULL && cJSON_ReplaceItemInObject(rule, "name", text);
}

/* Puts a rule before those that place less, because the first rule that matches decides. Takes
 * ownership of the rule. */
static bool put(cJSON *rules, cJSON *rule)
{
    cJSON *same = find_same(rules, rule);
    const cJSON *each;
    int at = 0;

    if (same != NULL && share_of(rule) <= share_of(same)) {
        cJSON_Delete(rule);
        return true;
    }
    if (same != NULL) {
        cJSON_Delete(cJSON_DetachItemViaPointer(rules, same));
    }
    cJSON_ArrayForEach(each, rules)
    {
        at += share_of(each) >= share_of(rule);
    }
    if (cJSON_GetArraySize(rules) < SPW_POLICY_RULES && cJSON_InsertItemInArray(rules, at, rule)) {
        return true;
    }
    cJSON_Delete(rule);
    return false;
}

static bool number_rules(cJSON *rules)
{
    cJSON *each;
    int number = 0;
    bool good = true;

    cJSON_ArrayForEach(each, rules)
    {
        good = good && number_rule(each, ++number);
    }
    return good;
}

cJSON *spw_cli_keep_merge(cJSON *policy, cJSON *other)
{
    cJSON *rules = cJSON_GetObjectItem(policy, "rules");
    cJSON *others = cJSON_GetObjectItem(other, "rules");
    bool good = true;

    if (policy == NULL || other == NULL) {
        return policy != NULL ? policy : other;
    }
    while (good && cJSON_GetArraySize(others) > 0) {
        good = put(rules, cJSON_DetachItemFromArray(others, 0));
    }
    cJSON_Delete(other);
    if (!good || !number_rules(rules)) {
        cJSON_Delete(policy);
        policy = NULL;
    }
    return policy;
}
