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

#define KEY(name) (&spw_policy_rows[SPW_POLICY_KEY_##name])

/* Complains about `every` and `share`, which select the modules to compute again. */
static void check_modules(struct spw_policy_reader *reader, struct spw_policy_node node,
                          const struct spw_policy_action *action)
{
    const struct spw_policy_row *row = action->every.set ? KEY(action_every) : KEY(action_share);

    if (!action->every.set && !action->share.set) {
        return;
    }
    if (action->recompute != SPW_SWITCH_ON) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "\"%s\" without \"recompute\": true, expected both keys", row->key);
    } else if (action->every.set && action->share.set) {
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "\"every\" beside \"share\", expected only one of these keys");
    }
}

/* Complains about keys of an object that a rule with `recompute` must not have. */
static void check_alone(struct spw_policy_reader *reader, struct spw_policy_node node,
                        enum spw_policy_object kind, const void *object, uint64_t allowed,
                        const char *expected)
{
    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        const struct spw_policy_row *row = &spw_policy_rows[i];

        if (row->object == kind && (allowed >> i & 1) == 0 && spw_policy_is_set(row, object)) {
            spw_policy_complain(reader, spw_policy_place(reader, node),
                                "\"recompute\" beside \"%s\", expected %s", row->key, expected);
        }
    }
}

static void check_recompute(struct spw_policy_reader *reader, struct spw_policy_node node,
                            const struct spw_policy_rule *rule)
{
    const struct spw_policy_globs *names = &rule->match.module;

    if (rule->action.recompute != 0) {
        for (size_t i = 0; i < names->count; i++) {
            const char *text = names->items[i].text; /* NULL: no valid pattern */

            if (text != NULL && strchr(text, '/') != NULL) {
                spw_policy_complain(reader, spw_policy_place(reader, node),
                                    "\"recompute\" of \"%s\", a path of classes, expected the "
                                    "names of modules such as \"model.layers.*\", or "
                                    "\"module_class\"",
                                    text);
            }
        }
        check_alone(reader, node, SPW_POLICY_OBJECT_match, &rule->match,
                    SEEN(match_module) | SEEN(match_module_class) | SEEN(match_process) |
                        SEEN(match_rank),
                    "only module, module_class, process and rank in match");
        check_alone(reader, node, SPW_POLICY_OBJECT_action, &rule->action,
                    SEEN(action_recompute) | SEEN(action_every) | SEEN(action_share),
                    "a rule of its own for each");
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
        check_modules(reader, node, object);
        break;
    case SPW_POLICY_OBJECT_rule:
        check_recompute(reader, node, object);
        break;
    default:
        break;
    }
}

/* True for a rule about modules, valid or not. Such a rule does not apply to allocations. */
static bool is_about_modules(const cJSON *rule)
{
    const cJSON *action =
        spw_policy_json_is(rule, cJSON_Object) ? spw_policy_json_find(rule, "action") : NULL;

    return spw_policy_json_is(action, cJSON_Object) &&
           spw_policy_json_find(action, "recompute") != NULL;
}

/* True for a rule that matches all allocations, valid or not. */
static bool matches_all(const cJSON *rule)
{
    const cJSON *match;

    if (!spw_policy_json_is(rule, cJSON_Object) || is_about_modules(rule)) {
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
    if (all < number && !reader->behind_all && !is_about_modules(node.json)) {
        reader->behind_all = true;
        spw_policy_complain(reader, spw_policy_place(reader, node),
                            "rule %zu \"%s\" can never decide, because rule %zu \"%s\" matches "
                            "every allocation, expected that rule to be the last",
                            number + 1, name_of(&rules[number]), all + 1, name_of(&rules[all]));
    }
    if (all == SPW_POLICY_RULES && matches_all(node.json)) {
        reader->first_all = number;
    }
}
