#include "policy/modules.h"

#include "policy/reader.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char *at;
    size_t left;
    bool full;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf(text->at, text->left, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= text->left) {
        text->full = true;
        return;
    }
    text->at += length;
    text->left -= (size_t)length;
}

/* The file is UTF-8, so only these bytes need an escape. */
static void put_string(struct text *text, const char *string)
{
    put(text, "\"");
    for (const char *at = string; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') {
            put(text, "\\u%04x", (unsigned char)*at);
        } else {
            put(text, "%c", *at);
        }
    }
    put(text, "\"");
}

static void put_globs(struct text *text, const char *key, const struct spw_policy_globs *globs)
{
    put(text, ", \"%s\": [", key);
    for (size_t i = 0; i < globs->count; i++) {
        put(text, "%s", i > 0 ? ", " : "");
        put_string(text, globs->items[i].text);
    }
    put(text, "]");
}

static void put_rule(struct text *text, const struct spw_policy_rule *rule)
{
    const struct spw_policy_action *action = &rule->action;

    put(text, "{\"name\": \"%s\"", rule->name);
    put_globs(text, "module", &rule->match.module);
    put_globs(text, "module_class", &rule->match.module_class);
    put(text, ", \"recompute\": %s, \"every\": %d, \"permille\": %u}",
        action->recompute == SPW_SWITCH_ON ? "true" : "false",
        action->every.set ? (int)action->every.value : 0,
        action->share.set ? action->share.permille : 1000);
}

bool spw_policy_modules_text(const struct spw_policy *policy, const char *process, int64_t rank,
                             char *ret_text, size_t capacity)
{
    const struct spw_callsite_facts facts = {.process = process, .rank = rank};
    struct text text = {.at = ret_text, .left = capacity};
    bool any = false;

    put(&text, "[");
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct spw_policy_rule *rule = &policy->rules[i];

        if (rule->action.recompute != 0 && spw_policy_concerns(rule, &facts)) {
            put(&text, "%s", any ? ", " : "");
            put_rule(&text, rule);
            any = true;
        }
    }
    put(&text, "]");
    return any && !text.full;
}
