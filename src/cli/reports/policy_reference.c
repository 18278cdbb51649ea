#include "cli/reports/policy_reference.h"

#include "cli/console/markdown.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Definitions of the schema that several keys use. */
static const struct {
    const char *name;
    const char *schema;
} values[] = {
    {"value-bytes", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992}"},
    /* the syntax of common/size.c */
    {"value-size", "{\"type\":\"string\",\"pattern\":\"^[ \\\\t]*[0-9]+([ \\\\t]*[Bb]?|"
                   "(\\\\.[0-9]+)?[ \\\\t]*[KkMmGgTt]([Ii][Bb])?)[ \\\\t]*$\"}"},
    {"value-percent", "{\"type\":\"string\",\"pattern\":\"^[ \\\\t]*[0-9]+(\\\\.[0-9]+)?[ \\\\t]*%"
                      "[ \\\\t]*$\"}"},
    {"value-pattern", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}"},
    {"value-range", "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,18}(-([0-9]{1,18})?)?$\"}"},
};

enum { VALUE_COUNT = sizeof(values) / sizeof(*values), INDENT = 2 };

#define VALUE(name) "{\"$ref\":\"#/definitions/value-" name "\"}"
#define ANY_OF_LIST "\"type\":\"array\",\"minItems\":1,\"maxItems\":64,\"items\":"

static const char *name_of(enum spw_policy_object object)
{
    static const char *const names[SPW_POLICY_OBJECT_COUNT] = {
#define SPW_POLICY_OBJECT(name, title) #name,
#include "policy/keys.def"
    };

    return names[object];
}

/* --- the schema --- */

static void print_reference(FILE *out, int object)
{
    fprintf(out, "{\"$ref\":\"#/definitions/%s\"}", name_of((enum spw_policy_object)object));
}

static void print_words(FILE *out, enum spw_policy_words list)
{
    const char *before = "{\"enum\":[";

    for (size_t i = 0; i < spw_policy_word_count; i++) {
        if (spw_policy_word_rows[i].list == list) {
            fprintf(out, "%s\"%s\"", before, spw_policy_word_rows[i].text);
            before = ",";
        }
    }
    fputs("]}", out);
}

static void print_whole(FILE *out, const struct spw_policy_row *row)
{
    fprintf(out, "{\"type\":\"integer\",\"minimum\":%" PRId64 ",\"maximum\":%" PRId64 "}", row->low,
            row->high);
}

/* A number, a range, or a list of these. */
static void print_ranges(FILE *out, const struct spw_policy_row *row)
{
    fputs("{\"anyOf\":[" VALUE("range") ",", out);
    print_whole(out, row);
    fputs(",{" ANY_OF_LIST "{\"anyOf\":[" VALUE("range") ",", out);
    print_whole(out, row);
    fputs("]}}]}", out);
}

static void print_list(FILE *out, const struct spw_policy_row *row)
{
    fprintf(out, "{\"type\":\"array\",\"minItems\":%" PRId64 ",\"maxItems\":%" PRId64 ",\"items\":",
            row->low, row->high);
    print_reference(out, row->of);
    fputs("}", out);
}

/* The schema of one value. */
static void print_type(FILE *out, const struct spw_policy_row *row)
{
    switch (row->type) {
    case SPW_POLICY_TEXT:
        fprintf(out,
                "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":%" PRId64 "},{" ANY_OF_LIST
                "{\"type\":\"string\",\"maxLength\":%" PRId64 "}}]}",
                row->high, row->high);
        break;
    case SPW_POLICY_NAME:
        fprintf(out,
                "{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.-]{%" PRId64 ",%" PRId64 "}$\"}",
                row->low, row->high);
        break;
    case SPW_POLICY_VERSION:
        fprintf(out, "{\"const\":%" PRId64 "}", row->low);
        break;
    case SPW_POLICY_OBJECT:
        print_reference(out, row->of);
        break;
    case SPW_POLICY_OBJECTS:
        fputs("{\"anyOf\":[", out);
        print_reference(out, row->of);
        fputs(",", out);
        print_list(out, row);
        fputs("]}", out);
        break;
    case SPW_POLICY_LIST:
        print_list(out, row);
        break;
    case SPW_POLICY_GLOBS:
        fputs("{\"anyOf\":[" VALUE("pattern") ",{" ANY_OF_LIST VALUE("pattern") "}]}", out);
        break;
    case SPW_POLICY_RANGES:
        print_ranges(out, row);
        break;
    case SPW_POLICY_SIZE:
        fputs("{\"anyOf\":[" VALUE("bytes") "," VALUE("size") "]}", out);
        break;
    case SPW_POLICY_SHARE:
        fputs("{\"anyOf\":[" VALUE("bytes") "," VALUE("size") "," VALUE("percent") "]}", out);
        break;
    case SPW_POLICY_PERCENT:
        fputs(VALUE("percent"), out);
        break;
    case SPW_POLICY_WORD:
        print_words(out, (enum spw_policy_words)row->of);
        break;
    case SPW_POLICY_SWITCH:
        fputs("{\"type\":\"boolean\"}", out);
        break;
    case SPW_POLICY_NUMBER:
        print_whole(out, row);
        break;
    case SPW_POLICY_TYPE_COUNT:
        break;
    }
}

static void print_properties(FILE *out, enum spw_policy_object object)
{
    const char *before = "";

    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        const struct spw_policy_row *row = &spw_policy_rows[i];

        if (row->object == object) {
            fprintf(out, "%s\"%s\":{\"description\":\"%s\",\"allOf\":[", before, row->key,
                    row->help);
            print_type(out, row);
            fputs("]}", out);
            before = ",";
        }
    }
}

static void print_required(FILE *out, enum spw_policy_object object)
{
    const char *before = "";

    fputs(",\"required\":[", out);
    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        const struct spw_policy_row *row = &spw_policy_rows[i];

        if (row->object == object && row->need == SPW_POLICY_REQUIRED) {
            fprintf(out, "%s\"%s\"", before, row->key);
            before = ",";
        }
    }
    fputs("]", out);
}

/* Required combinations of keys, and keys that exclude each other (policy/check.c). */
static const char *conditions(enum spw_policy_object object)
{
    switch (object) {
    case SPW_POLICY_OBJECT_python:
        return ",\"anyOf\":[{\"required\":[\"file\"]},{\"required\":[\"function\"]},"
               "{\"required\":[\"lines\"]}]";
    case SPW_POLICY_OBJECT_native:
        return ",\"anyOf\":[{\"required\":[\"symbol\"]},{\"required\":[\"library\"]}]";
    case SPW_POLICY_OBJECT_size:
        return ",\"minProperties\":1";
    case SPW_POLICY_OBJECT_action:
        return ",\"not\":{\"required\":[\"placement\",\"host_share\"],\"properties\":"
               "{\"placement\":{\"enum\":[\"device\",\"host\"]}}}";
    default:
        return "";
    }
}

static void print_objects(FILE *out)
{
    fputs("{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"spillway policy\","
          "\"allOf\":[",
          out);
    print_reference(out, SPW_POLICY_OBJECT_file);
    fputs("],\"definitions\":{", out);
    for (int i = 0; i < VALUE_COUNT; i++) {
        fprintf(out, "\"%s\":%s,", values[i].name, values[i].schema);
    }
    for (int i = 0; i < SPW_POLICY_OBJECT_COUNT; i++) {
        enum spw_policy_object object = (enum spw_policy_object)i;

        fprintf(out,
                "%s\"%s\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{",
                i > 0 ? "," : "", name_of(object));
        print_properties(out, object);
        fputs("}", out);
        print_required(out, object);
        fprintf(out, "%s}", conditions(object));
    }
    fputs("}}", out);
}

static void break_line(int depth)
{
    printf("\n%*s", depth * INDENT, "");
}

/* Prints compact JSON with line breaks and indentation. */
static void print_indented(const char *text)
{
    bool in_string = false;
    int depth = 0;

    for (; *text != '\0'; text++) {
        bool opens = !in_string && strchr("{[", *text) != NULL;
        bool closes = !in_string && strchr("}]", *text) != NULL;

        if (closes) {
            break_line(--depth);
        }
        putchar(*text);
        if (in_string && *text == '\\') {
            putchar(*++text);
        } else if (*text == '"') {
            in_string = !in_string;
        } else if (opens && strchr("}]", text[1]) != NULL) {
            putchar(*++text);
        } else if (opens) {
            break_line(++depth);
        } else if (!in_string && *text == ',') {
            break_line(depth);
        } else if (!in_string && *text == ':') {
            putchar(' ');
        }
    }
    putchar('\n');
}

void spw_cli_policy_print_schema(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out != NULL) {
        print_objects(out);
        fclose(out);
        print_indented(text);
    }
    free(text);
}

/* --- the tables --- */

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
