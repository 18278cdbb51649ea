/* Matches rules: the conditions on a site, and those on one of its allocations. */
#include "policy/reader.h"

#include <assert.h>

#define BIT(name) ((uint64_t)1 << SPW_POLICY_KEY_match_##name)

/* Conditions on sites, which have one answer for all allocations of a site. */
#define FRAME_KEYS (BIT(python) | BIT(native))
#define SITE_KEYS                                                                                  \
    (FRAME_KEYS | BIT(thread) | BIT(tag) | BIT(node) | BIT(module_class) | BIT(module) |           \
     BIT(process) | BIT(rank))
#define REQUEST_KEYS (BIT(size) | BIT(device) | BIT(api) | BIT(nth) | BIT(nth_in_step))

/* The number of keys of `match`. A key in neither set would be read but never checked. */
enum {
    MATCH_KEYS = 0
#define SPW_POLICY_KEY(object, member, ...) +(SPW_POLICY_OBJECT_##object == SPW_POLICY_OBJECT_match)
#include "policy/keys.def"
};
static_assert(__builtin_popcountll(SITE_KEYS | REQUEST_KEYS) == MATCH_KEYS,
              "each key of match is in SITE_KEYS or REQUEST_KEYS");

static bool any_glob(const struct spw_policy_globs *globs, const char *name)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (spw_policy_glob_match(&globs->items[i], name)) {
            return true;
        }
    }
    return false;
}

/* Like any_glob, but true when the key is not in the file. */
static bool glob_or_none(const struct spw_policy_globs *globs, const char *name)
{
    return globs->count == 0 || any_glob(globs, name);
}

static bool any_range(const struct spw_policy_ranges *ranges, int64_t number)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (number >= ranges->items[i].first && number <= ranges->items[i].last) {
            return true;
        }
    }
    return false;
}

static bool python_frame(const struct spw_policy_python *python,
                         const struct spw_python_frame *frame)
{
    return glob_or_none(&python->file, frame->file) &&
           glob_or_none(&python->function, frame->function) &&
           (python->lines.count == 0 || any_range(&python->lines, frame->line));
}

static bool native_frame(const struct spw_policy_native *native,
                         const struct spw_native_frame *frame)
{
    return glob_or_none(&native->library, frame->library) &&
           glob_or_none(&native->symbol, frame->symbol);
}

static size_t frames_asked(int word, size_t count)
{
    return word == SPW_FRAME_TOP && count > 1 ? 1 : count;
}

static bool any_python(const struct spw_policy_list *list, const struct spw_callsite_facts *site)
{
    const struct spw_policy_python *items = list->items;

    for (size_t i = 0; i < list->count; i++) {
        for (size_t f = 0; f < frames_asked(items[i].frame, site->python_count); f++) {
            if (python_frame(&items[i], &site->python[f])) {
                return true;
            }
        }
    }
    return false;
}

static bool any_native(const struct spw_policy_list *list, const struct spw_callsite_facts *site)
{
    const struct spw_policy_native *items = list->items;

    for (size_t i = 0; i < list->count; i++) {
        for (size_t f = 0; f < frames_asked(items[i].frame, site->native_count); f++) {
            if (native_frame(&items[i], &site->native[f])) {
                return true;
            }
        }
    }
    return false;
}

static bool any_size(const struct spw_policy_list *list, uint64_t bytes)
{
    const struct spw_policy_size *items = list->items;

    for (size_t i = 0; i < list->count; i++) {
        if (bytes != 0 && (!items[i].min.set || bytes >= items[i].min.bytes) &&
            (!items[i].max.set || bytes <= items[i].max.bytes)) {
            return true;
        }
    }
    return false;
}

/* Returns true when the condition of `key` holds. An unknown fact satisfies no condition. */
static bool holds(int key, const struct spw_policy_match *match,
                  const struct spw_callsite_facts *site, const struct spw_request_facts *request)
{
    switch (key) {
    case SPW_POLICY_KEY_match_python:
        return any_python(&match->python, site);
    case SPW_POLICY_KEY_match_native:
        return any_native(&match->native, site);
    case SPW_POLICY_KEY_match_thread:
        return any_glob(&match->thread, site->thread);
    case SPW_POLICY_KEY_match_tag:
        return any_glob(&match->tag, site->tag);
    case SPW_POLICY_KEY_match_node:
        return any_glob(&match->node, site->node);
    case SPW_POLICY_KEY_match_module_class:
        return any_glob(&match->module_class, spw_callsite_module_class(site));
    case SPW_POLICY_KEY_match_module:
        return any_glob(&match->module, site->modules);
    case SPW_POLICY_KEY_match_process:
        return any_glob(&match->process, site->process);
    case SPW_POLICY_KEY_match_rank:
        return any_range(&match->rank, site->rank);
    case SPW_POLICY_KEY_match_size:
        return any_size(&match->size, request->size);
    case SPW_POLICY_KEY_match_device:
        return any_range(&match->device, request->device);
    case SPW_POLICY_KEY_match_api:
        return any_glob(&match->api, request->api);
    case SPW_POLICY_KEY_match_nth:
        return any_range(&match->nth, (int64_t)request->nth);
    case SPW_POLICY_KEY_match_nth_in_step:
        return any_range(&match->nth_in_step, (int64_t)request->nth_in_step);
    default:
        return true;
    }
}

/* The first of `keys` that is in the file and does not hold. */
static const struct spw_policy_row *first_mismatch(const struct spw_policy_rule *rule,
                                                   uint64_t keys,
                                                   const struct spw_callsite_facts *site,
                                                   const struct spw_request_facts *request)
{
    for (; keys != 0; keys &= keys - 1) {
        int key = __builtin_ctzll(keys);

        if (spw_policy_is_set(&spw_policy_rows[key], &rule->match) &&
            !holds(key, &rule->match, site, request)) {
            return &spw_policy_rows[key];
        }
    }
    return NULL;
}

bool spw_policy_asks_request(const struct spw_policy_rule *rule)
{
    for (uint64_t keys = REQUEST_KEYS; keys != 0; keys &= keys - 1) {
        if (spw_policy_is_set(&spw_policy_rows[__builtin_ctzll(keys)], &rule->match)) {
            return true;
        }
    }
    return false;
}

bool spw_policy_concerns(const struct spw_policy_rule *rule, const struct spw_callsite_facts *facts)
{
    return first_mismatch(rule, BIT(process) | BIT(rank), facts, NULL) == NULL;
}

uint64_t spw_policy_candidates(const struct spw_policy *policy,
                               const struct spw_callsite_facts *site)
{
    uint64_t candidates = 0;

    for (size_t i = 0; i < policy->rule_count; i++) {
        if ((policy->recomputes >> i & 1) == 0 &&
            first_mismatch(&policy->rules[i], SITE_KEYS, site, NULL) == NULL) {
            candidates |= UINT64_C(1) << i;
            if ((policy->certain >> i & 1) != 0) {
                break;
            }
        }
    }
    return candidates;
}

bool spw_policy_needs_native(const struct spw_policy *policy, const struct spw_callsite_facts *site)
{
    const uint64_t native = BIT(native) | BIT(node);

    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct spw_policy_rule *rule = &policy->rules[i];

        if ((policy->recomputes >> i & 1) != 0 ||
            first_mismatch(rule, SITE_KEYS & ~native, site, NULL) != NULL) {
            continue;
        }
        if (rule->match.native.count > 0 || rule->match.node.count > 0) {
            return true;
        }
        if ((policy->certain >> i & 1) != 0) {
            break;
        }
    }
    return false;
}

int spw_policy_decide(const struct spw_policy *policy, uint64_t candidates,
                      const struct spw_request_facts *request)
{
    for (; candidates != 0; candidates &= candidates - 1) {
        int rule = __builtin_ctzll(candidates);

        if ((policy->certain >> rule & 1) != 0 ||
            first_mismatch(&policy->rules[rule], REQUEST_KEYS, NULL, request) == NULL) {
            return rule;
        }
    }
    return SPW_POLICY_NO_RULE;
}

const struct spw_policy_row *spw_policy_mismatch(const struct spw_policy_rule *rule,
                                                 const struct spw_callsite_facts *site,
                                                 const struct spw_request_facts *request)
{
    return rule->action.recompute != 0
               ? &spw_policy_rows[SPW_POLICY_KEY_action_recompute]
               : first_mismatch(rule, SITE_KEYS | REQUEST_KEYS, site, request);
}
