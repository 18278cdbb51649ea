/* Checks that involve several keys of an object, or several rules. */
#include "policy/reader.h"

#include <string.h>

#define SEEN(name) ((uint64_t)1 << SPW_POLICY_KEY_##name)

/* Complains if the object has none of the keys in `wanted`. */
static void check_some(struct spw_policy_reader *reader, struct spw_policy_node node, uint64_t seen,
                       uint64_t wanted, const char *title, const char *keys)
{
    if ((seen & wanted) == 0) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "%s says nothing, expected at least one of %s", title, keys);
    }
}

static void check_size(struct spw_policy_reader *reader, struct spw_policy_node node,
                       const struct spw_policy_size *size)
{
    if (size->min.set && size->max.set && size->min.bytes > size->max.bytes) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "\"min\" is above \"max\", expected at most \"max\"");
    }
}

static void check_action(struct spw_policy_reader *reader, struct spw_policy_node node,
                         const struct spw_policy_action *action)
{
    if (action->host_share.set &&
        (action->placement == SPW_PLACEMENT_DEVICE || action->placement == SPW_PLACEMENT_HOST)) {
        spw_policy_complain(
            reader, spw_policy_place(reader, node),
            "\"host_share\" beside \"placement\" \"%s\", expected only one of these keys",
            spw_policy_word(SPW_WORDS_PLACEMENT, action->placement));
    }
}

void spw_policy_check_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             struct spw_policy_node node, const void *object, uint64_t seen)
{
    switch (kind) {
    case SPW_POLICY_OBJECT_python:
        check_some(reader, node, seen,
                   SEEN(python_file) | SEEN(python_function) | SEEN(python_lines), "python",
                   "file, function, lines");
        break;
    case SPW_POLICY_OBJECT_native:
        check_some(reader, node, seen, SEEN(native_symbol) | SEEN(native_library), "native",
                   "symbol, library");
        break;
    case SPW_POLICY_OBJECT_size:
        check_some(reader, node, seen, SEEN(size_min) | SEEN(size_max), "size", "min, max");
        check_size(reader, node, object);
        break;
    case SPW_POLICY_OBJECT_action:
        check_action(reader, node, object);
        break;
    default:
        break;
    }
}

/* True for a rule without any condition, valid or not. */
static bool matches_all(const cJSON *rule)
{
    const cJSON *match;

    if (!spw_policy_json_is(rule, cJSON_Object)) {
        return false;
    }
    match = spw_policy_json_find(rule, "match");
    return match == NULL || (spw_policy_json_is(match, cJSON_Object) && match->child == NULL);
}

static const char *name_of(const struct spw_policy_rule *rule)
{
    return rule->name != NULL ? rule->name : "";
}

void spw_policy_check_rule(struct spw_policy_reader *reader, struct spw_policy_node node,
                           const struct spw_policy_rule *rules, size_t number)
{
    size_t all = reader->first_all;

    for (size_t before = 0; before < number && rules[number].name != NULL; before++) {
        if (strcmp(name_of(&rules[before]), rules[number].name) == 0) {
            spw_policy_complain(reader, spw_policy_place(reader, node),
                                "rule %zu is named \"%s\" like rule %zu, expected a name of "
                                "its own",
                                number + 1, rules[number].name, before + 1);
            break;
        }
    }
    if (all + 1 == number) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "rule %zu \"%s\" can never decide, because rule %zu \"%s\" matches "
                            "every allocation, expected that rule to be the last",
                            number + 1, name_of(&rules[number]), all + 1, name_of(&rules[all]));
    }
    if (all == SPW_POLICY_RULES && matches_all(node.json)) {
        reader->first_all = number;
    }
}
