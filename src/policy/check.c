/* What must hold between the keys of one object, and between rules. */
#include "policy/reader.h"

#include <string.h>

#define SEEN(name) ((uint64_t)1 << SPW_POLICY_KEY_##name)

/* At least one key that says something must be there. */
static void check_some(struct spw_policy_reader *reader, const cJSON *node, uint64_t seen,
                       uint64_t wanted, const char *title, const char *keys)
{
    if ((seen & wanted) == 0) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "%s says nothing, expected at least one of %s", title, keys);
    }
}

static void check_size(struct spw_policy_reader *reader, const cJSON *node,
                       const struct spw_policy_size *size)
{
    if (size->min.set && size->max.set && size->min.bytes > size->max.bytes) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "\"min\" is above \"max\", expected at most \"max\"");
    }
}

static void check_action(struct spw_policy_reader *reader, const cJSON *node,
                         const struct spw_policy_action *action)
{
    if (action->host_share.set &&
        (action->placement == SPW_PLACEMENT_DEVICE || action->placement == SPW_PLACEMENT_HOST)) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "\"host_share\" with \"placement\" \"%s\", expected one of the two",
                            spw_policy_word(SPW_WORDS_PLACEMENT, action->placement));
    }
}

void spw_policy_check_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             const cJSON *node, const void *object, uint64_t seen)
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

/* Whether the file gives no condition, not even a bad one. */
static bool matches_all(const cJSON *rule)
{
    const cJSON *match = spw_policy_json_find(rule, "match");

    return match == NULL || (spw_policy_json_is(match, cJSON_Object) && match->child == NULL);
}

static const char *name_of(const struct spw_policy_rule *rule)
{
    return rule->name != NULL ? rule->name : "";
}

void spw_policy_check_rules(struct spw_policy_reader *reader, const cJSON *root,
                            const struct spw_policy_file *file)
{
    const struct spw_policy_rule *rules = file->rules.items;
    const cJSON *node = spw_policy_json_find(root, "rules");
    size_t all = file->rules.count;

    node = node != NULL ? node->child : NULL;
    for (size_t i = 0; i < file->rules.count && node != NULL; i++, node = node->next) {
        for (size_t before = 0; before < i && rules[i].name != NULL; before++) {
            if (strcmp(name_of(&rules[before]), rules[i].name) == 0) {
                spw_policy_complain(reader, spw_policy_place(reader, node),
                                    "rule %zu is named \"%s\" like rule %zu, expected a name of "
                                    "its own",
                                    i + 1, rules[i].name, before + 1);
                break;
            }
        }
        if (all + 1 == i) {
            spw_policy_complain(reader, spw_policy_place(reader, node),
                                "rule %zu \"%s\" can never decide, because rule %zu \"%s\" matches "
                                "every allocation, expected that rule to be the last",
                                i + 1, name_of(&rules[i]), all + 1, name_of(&rules[all]));
        }
        if (all == file->rules.count && spw_policy_json_is(node, cJSON_Object) &&
            matches_all(node)) {
            all = i;
        }
    }
}
