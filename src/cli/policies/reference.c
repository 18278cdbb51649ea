#include "cli/policies/decision.h"

#include "cli/console/messages.h"
#include "cli/policy_schema.inc"
#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(enum spw_policy_object object)
{
    static const char *const names[SPW_POLICY_OBJECT_COUNT] = {
#define SPW_POLICY_OBJECT(name, title) #name,
#include "policy/keys.def"
    };

    return names[object];
}

void spw_cli_policy_print_schema(void)
{
    /* On a full disk, fputs would drop the text, the last flush would succeed, and main() would
     * miss the error. */
    for (const char *at = policy_schema; *at != '\0'; at++) {
        putchar(*at);
    }
}

enum { COLUMN_COUNT = 3 };

static void print_row(const struct spw_policy_row *row)
{
    char expected[SPW_POLICY_EXPECTED], key[128], value[2 * SPW_POLICY_EXPECTED], meaning[2048];
    const char *cells[] = {key, value, meaning};
    bool is_object = row->type == SPW_POLICY_OBJECT || row->type == SPW_POLICY_OBJECTS;
    size_t used;

    snprintf(key, sizeof(key), "`%s`%s", row->key,
             row->need == SPW_POLICY_REQUIRED ? " (required)" : "");
    snprintf(value, sizeof(value), "%s%s%s%s", spw_policy_expected(row, expected),
             is_object ? " `" : "", is_object ? name_of((enum spw_policy_object)row->of) : "",
             is_object ? "`" : "");
    snprintf(meaning, sizeof(meaning), "%s", row->help);
    for (size_t i = 0; row->type == SPW_POLICY_WORD && i < spw_policy_word_count; i++) {
        const struct spw_policy_word_row *word = &spw_policy_word_rows[i];

        if ((int)word->list == row->of) {
            used = strlen(meaning);
            snprintf(meaning + used, sizeof(meaning) - used, "%s %s: %s",
                     word->value == 1 ? ":" : ";", word->text, word->help);
        }
    }
    spw_cli_markdown_row(cells, COLUMN_COUNT, NULL);
}

void spw_cli_policy_print_keys(void)
{
    static const char *const columns[] = {"key", "value", "meaning"};

    for (int object = 0; object < SPW_POLICY_OBJECT_COUNT; object++) {
        printf("%s### %s\n\n", object == 0 ? "" : "\n",
               object == SPW_POLICY_OBJECT_file ? "the file"
                                                : name_of((enum spw_policy_object)object));
        spw_cli_markdown_head(columns, COLUMN_COUNT, NULL);
        for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
            if ((int)spw_policy_rows[i].object == object) {
                print_row(&spw_policy_rows[i]);
            }
        }
    }
}
