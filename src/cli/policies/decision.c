#include "cli/policies/decision.h"

#include "cli/console/messages.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints: file "a" or "b" */
static void print_globs(const char *key, const struct spw_policy_globs *globs)
{
    for (size_t i = 0; i < globs->count; i++) {
        spw_cli_print(stdout, "%s%s\"%s\"", i == 0 ? key : "", i == 0 ? " " : " or ",
                      globs->items[i].text);
    }
}

static void print_ranges(const char *key, const struct spw_policy_ranges *ranges)
{
    for (size_t i = 0; i < ranges->count; i++) {
        const struct spw_policy_range *range = &ranges->items[i];

        printf("%s%s%" PRId64, i == 0 ? key : "", i == 0 ? " " : " or ", range->first);
        if (range->last == INT64_MAX) {
            fputs("-", stdout);
        } else if (range->last != range->first) {
            printf("-%" PRId64, range->last);
        }
    }
}

static void print_amount(const struct spw_policy_amount *amount)
{
    if (amount->percent) {
        printf("%u.%u %%", amount->permille / 10, amount->permille % 10);
    } else {
        printf("%" PRIu64 " bytes", amount->bytes);
    }
}

static void print_sizes(const struct spw_policy_list *list)
{
    const struct spw_policy_size *items = list->items;

    fputs("size", stdout);
    for (size_t i = 0; i < list->count; i++) {
        fputs(i == 0 ? " " : " or ", stdout);
        if (items[i].min.set) {
            fputs("of at least ", stdout);
            print_amount(&items[i].min);
        }
        if (items[i].max.set) {
            fputs(items[i].min.set ? " and at most " : "of at most ", stdout);
            print_amount(&items[i].max);
        }
    }
}

static void separate(bool *first)
{
    fputs(*first ? "" : ", ", stdout);
    *first = false;
}

static void print_frame_keys(const struct spw_policy_globs *one, const char *one_key,
                             const struct spw_policy_globs *two, const char *two_key,
                             const struct spw_policy_ranges *lines)
{
    bool first = true;

    if (one->count > 0) {
        separate(&first);
        print_globs(one_key, one);
    }
    if (two->count > 0) {
        separate(&first);
        print_globs(two_key, two);
    }
    if (lines != NULL && lines->count > 0) {
        separate(&first);
        print_ranges("line", lines);
    }
}

static void print_no_python(const struct spw_policy_list *list,
                            const struct spw_callsite_facts *site)
{
    const struct spw_policy_python *items = list->items;

    if (site->python_count == 0) {
        fputs("the site has no Python frame", stdout);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        printf("%s%s", i == 0 ? "" : ", and ",
               items[i].frame == SPW_FRAME_TOP ? "the innermost Python frame is not "
                                               : "no Python frame is ");
        print_frame_keys(&items[i].file, "file", &items[i].function, "function", &items[i].lines);
    }
}

static void print_no_native(const struct spw_policy_list *list,
                            const struct spw_callsite_facts *site)
{
    const struct spw_policy_native *items = list->items;

    if (site->native_count == 0) {
        fputs("the site has no native frame", stdout);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        printf("%s%s", i == 0 ? "" : ", and ",
               items[i].frame == SPW_FRAME_TOP ? "the innermost native frame is not "
                                               : "no native frame is ");
        print_frame_keys(&items[i].library, "library", &items[i].symbol, "symbol", NULL);
    }
}

/* Prints "device is 1, not ". If a fact is missing, no condition on the fact matches. */
static void print_fact(const char *key, const char *text)
{
    if (text != NULL) {
        printf("%s is %s, not ", key, text);
    } else {
        printf("the site has no %s, which must be ", key);
    }
}

static const char *number(int64_t value, bool known, char text[32])
{
    snprintf(text, 32, "%" PRId64, value);
    return known ? text : NULL;
}

/* Returns the fact that a condition tests, as text. Returns NULL if the site lacks the fact. `text`
 * is a buffer for a number. */
static const char *fact_of(const struct spw_policy_row *row, const struct spw_callsite_facts *site,
                           const struct spw_request_facts *request, char text[32])
{
    switch (row - spw_policy_rows) {
    case SPW_POLICY_KEY_match_size:
        return number((int64_t)request->size, request->size != 0, text);
    case SPW_POLICY_KEY_match_thread:
        return site->thread;
    case SPW_POLICY_KEY_match_tag:
        return site->tag;
    case SPW_POLICY_KEY_match_node:
        return site->node;
    case SPW_POLICY_KEY_match_module_class:
        return spw_callsite_module_class(site);
    case SPW_POLICY_KEY_match_module:
        return site->modules;
    case SPW_POLICY_KEY_match_process:
        return site->process;
    case SPW_POLICY_KEY_match_api:
        return request->api;
    case SPW_POLICY_KEY_match_rank:
        return number(site->rank, site->rank >= 0, text);
    case SPW_POLICY_KEY_match_device:
        return number(request->device, request->device >= 0, text);
    case SPW_POLICY_KEY_match_nth_in_step:
        return number((int64_t)request->nth_in_step, request->nth_in_step != 0, text);
    default:
        return number((int64_t)request->nth, request->nth != 0, text);
    }
}

static void print_mismatch(const struct spw_policy_row *row, const struct spw_policy_match *match,
                           const struct spw_callsite_facts *site,
                           const struct spw_request_facts *request)
{
    const void *member = (const char *)match + row->offset;
    ptrdiff_t key = row - spw_policy_rows;
    char text[32];

    if (key == SPW_POLICY_KEY_match_python) {
        print_no_python(&match->python, site);
        return;
    }
    if (key == SPW_POLICY_KEY_match_native) {
        print_no_native(&match->native, site);
        return;
    }
    print_fact(row->key, fact_of(row, site, request, text));
    if (key == SPW_POLICY_KEY_match_size) {
        print_sizes(&match->size);
    } else if (row->type == SPW_POLICY_GLOBS) {
        print_globs(row->key, member);
    } else {
        print_ranges(row->key, member);
    }
}

static void print_action_value(const struct spw_policy_row *row, const void *member)
{
    switch (row->type) {
    case SPW_POLICY_WORD:
        fputs(spw_policy_word((enum spw_policy_words)row->of, *(const int *)member), stdout);
        break;
    case SPW_POLICY_SWITCH:
        fputs(*(const int *)member == SPW_SWITCH_ON ? "true" : "false", stdout);
        break;
    case SPW_POLICY_NUMBER:
        printf("%" PRId64, ((const struct spw_policy_number *)member)->value);
        break;
    case SPW_POLICY_NAME:
        spw_cli_print(stdout, "%s", *(const char *const *)member);
        break;
    case SPW_POLICY_PERCENT:
        print_amount(member);
        break;
    default: {
        const struct spw_policy_limit *limit = member;

        print_amount(&limit->max);
        printf(", then %s", spw_policy_word(SPW_WORDS_THEN, limit->then));
        break;
    }
    }
}

static void print_action(const struct spw_policy_action *action)
{
    bool any = false;

    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        const struct spw_policy_row *row = &spw_policy_rows[i];

        if (row->object == SPW_POLICY_OBJECT_action && spw_policy_is_set(row, action)) {
            printf("    %s: ", row->key);
            print_action_value(row, (const char *)action + row->offset);
            putchar('\n');
            any = true;
        }
    }
    if (!any) {
        puts("    no action: the default applies");
    }
}

static void print_site(const struct spw_callsite_facts *site,
                       const struct spw_request_facts *request)
{
    size_t length = spw_callsite_print(site, request, NULL, 0);
    char *text = malloc(length + 1);

    if (text != NULL) {
        spw_callsite_print(site, request, text, length + 1);
        spw_cli_print(stdout, "site: %s\n", text);
        free(text);
    }
}

void spw_cli_policy_explain(const char *name, const struct spw_policy *policy,
                            const struct spw_callsite_facts *site,
                            const struct spw_request_facts *request)
{
    print_site(site, request);
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct spw_policy_rule *rule = &policy->rules[i];
        const struct spw_policy_row *row = spw_policy_mismatch(rule, site, request);

        spw_cli_print(stdout, "rule %zu \"%s\" (%s:%zu) ", i + 1, rule->name, name, rule->line);
        if (rule->action.recompute != 0) {
            puts("applies to modules, and not to allocations");
            continue;
        }
        if (row == NULL) {
            puts("decides:");
            print_action(&rule->action);
            return;
        }
        fputs("does not match: ", stdout);
        print_mismatch(row, &rule->match, site, request);
        putchar('\n');
    }
    puts("no rule matches: the default applies");
}
