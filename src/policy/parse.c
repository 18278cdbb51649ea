/* Objects, by the table of keys; and a whole text: scan, cJSON, objects, checks. */
#include "policy/reader.h"

#include "common/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_TEXT = 256 };

_Static_assert(SPW_POLICY_KEY_COUNT <= 64, "keys are bits of 64");

static const struct spw_policy_row *find_row(enum spw_policy_object kind, const char *key)
{
    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        if (spw_policy_rows[i].object == kind && strcmp(spw_policy_rows[i].key, key) == 0) {
            return &spw_policy_rows[i];
        }
    }
    return NULL;
}

static uint64_t bit_of(const struct spw_policy_row *row)
{
    return (uint64_t)1 << (row - spw_policy_rows);
}

/* Returns the bit of the key that was probably meant, 0 when none is near. */
static uint64_t complain_unknown(struct spw_policy_reader *reader, enum spw_policy_object kind,
                                 const cJSON *member)
{
    size_t place = reader->scan->places[member->valueint].key;
    char shown[SPW_POLICY_SHOWN];
    const char *keys[SPW_POLICY_KEY_COUNT];
    char list[KEYS_TEXT] = "";
    size_t count = 0;
    size_t used = 0;
    const char *nearest;

    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        if (spw_policy_rows[i].object == kind) {
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                     count > 0 ? ", " : "", spw_policy_rows[i].key);
            keys[count++] = spw_policy_rows[i].key;
        }
    }
    nearest = spw_nearest(member->string, 0, keys, count);
    spw_policy_complain(reader, place, "%s is not a key of %s, expected one of %s%s%s%s",
                        spw_policy_source(reader, place, shown), spw_policy_titles[kind], list,
                        nearest != NULL ? " (did you mean \"" : "", nearest != NULL ? nearest : "",
                        nearest != NULL ? "\"?)" : "");
    return nearest != NULL ? bit_of(find_row(kind, nearest)) : 0;
}

/* Required keys that are neither there nor probably meant by one that is. */
static void complain_missing(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             const cJSON *node, uint64_t seen)
{
    for (int i = 0; i < SPW_POLICY_KEY_COUNT; i++) {
        const struct spw_policy_row *row = &spw_policy_rows[i];
        char expected[SPW_POLICY_EXPECTED];

        if (row->object == kind && row->need == SPW_POLICY_REQUIRED && (seen >> i & 1) == 0) {
            spw_policy_complain(reader, spw_policy_place(reader, node),
                                "%s has no \"%s\", expected \"%s\": %s", spw_policy_titles[kind],
                                row->key, row->key, spw_policy_expected(row, expected));
        }
    }
}

/* A list of objects; each item that is none is complained about on its own. */
static void read_items(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                       const cJSON *first, size_t count, void *member)
{
    size_t bytes = spw_policy_object_sizes[row->of];
    struct spw_policy_row item = *row;
    char *items = spw_policy_allocate(reader, count * bytes);

    item.type = SPW_POLICY_OBJECT;
    for (size_t i = 0; items != NULL && i < count; i++, first = first->next) {
        if (spw_policy_json_is(first, cJSON_Object)) {
            spw_policy_read_object(reader, (enum spw_policy_object)row->of, first,
                                   items + i * bytes);
        } else {
            spw_policy_complain_value(reader, &item, first, NULL, NULL);
        }
    }
    *(struct spw_policy_list *)member = (struct spw_policy_list){items, items != NULL ? count : 0};
}

static size_t item_count(const cJSON *list)
{
    size_t count = 0;

    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        count++;
    }
    return count;
}

static void read_list(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      const cJSON *node, void *member)
{
    size_t count = spw_policy_json_is(node, cJSON_Array) ? item_count(node) : 1;
    bool single = row->type == SPW_POLICY_OBJECTS && spw_policy_json_is(node, cJSON_Object);

    if (!single && !spw_policy_json_is(node, cJSON_Array)) {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    } else if (count > (size_t)row->high) {
        spw_policy_complain_value(reader, row, node, "with more than 64 items", NULL);
    } else if (count < (size_t)row->low) {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    } else if (count > 0) {
        read_items(reader, row, single ? node : node->child, count, member);
    }
}

static void read_member(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        const cJSON *node, void *member)
{
    if (row->type == SPW_POLICY_OBJECTS || row->type == SPW_POLICY_LIST) {
        read_list(reader, row, node, member);
    } else if (row->type != SPW_POLICY_OBJECT) {
        spw_policy_read_value(reader, row, node, member);
    } else if (spw_policy_json_is(node, cJSON_Object)) {
        spw_policy_read_object(reader, (enum spw_policy_object)row->of, node, member);
    } else {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    }
}

void spw_policy_read_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                            const cJSON *node, void *object)
{
    uint64_t meant = 0;
    uint64_t seen = 0;

    for (const cJSON *member = node->child; member != NULL; member = member->next) {
        const struct spw_policy_row *row = find_row(kind, member->string);

        if (row == NULL) {
            meant |= complain_unknown(reader, kind, member);
        } else if ((seen & bit_of(row)) != 0) {
            spw_policy_complain(reader, reader->scan->places[member->valueint].key,
                                "\"%s\" is given twice in %s, expected it once", row->key,
                                spw_policy_titles[kind]);
        } else {
            read_member(reader, row, member, (char *)object + row->offset);
        }
        seen |= row != NULL ? bit_of(row) : 0;
    }
    complain_missing(reader, kind, node, seen | meant);
    spw_policy_check_object(reader, kind, node, object, seen | meant);
}

/* Gives every value of the tree its number in document order; false when they are not `count`. */
static bool number_values(cJSON *node, size_t *next, size_t count)
{
    if (*next == count) {
        return false;
    }
    node->valueint = (int)(*next)++;
    for (cJSON *child = node->child; child != NULL; child = child->next) {
        if (!number_values(child, next, count)) {
            return false;
        }
    }
    return true;
}

/* A file of another version is not looked at further: all else may have changed. */
static bool is_other_version(struct spw_policy_reader *reader, const cJSON *root)
{
    const struct spw_policy_row *row = &spw_policy_rows[SPW_POLICY_KEY_file_version];
    const cJSON *version = spw_policy_json_find(root, row->key);

    if (!spw_policy_json_is(version, cJSON_Number) || version->valuedouble == (double)row->low) {
        return false;
    }
    spw_policy_complain_value(reader, row, version, "a version that this spillway does not know",
                              NULL);
    return true;
}

static void read_root(struct spw_policy_reader *reader, cJSON *root, struct spw_policy_file *file)
{
    size_t count = 0;

    if (!number_values(root, &count, reader->scan->count) || count != reader->scan->count) {
        spw_policy_complain(reader, 0, "cJSON reads the text in another way, expected plain JSON");
    } else if (!spw_policy_json_is(root, cJSON_Object)) {
        spw_policy_complain(reader, spw_policy_place(reader, root),
                            "the file is no JSON object, expected {\"version\": 1, \"rules\": "
                            "[...]}");
    } else if (!is_other_version(reader, root)) {
        spw_policy_read_object(reader, SPW_POLICY_OBJECT_file, root, file);
        spw_policy_check_rules(reader, root, file);
    }
}

/* The lines of the rules, which explanations name. */
static void place_rules(const struct spw_policy_reader *reader, const cJSON *root,
                        struct spw_policy_rule *rules, size_t count)
{
    struct spw_scan_cursor cursor = {reader->text, 0, 1, 1};
    const cJSON *node = spw_policy_json_find(root, "rules");

    node = node != NULL ? node->child : NULL;
    for (size_t i = 0; i < count && node != NULL; i++, node = node->next) {
        spw_policy_scan_advance(&cursor, spw_policy_place(reader, node));
        rules[i].line = cursor.line;
    }
}

static void place_complaints(const char *text, struct spw_policy_complaints *complaints)
{
    struct spw_scan_cursor cursor = {text, 0, 1, 1};

    for (size_t i = 0; i < complaints->count; i++) {
        spw_policy_scan_advance(&cursor, complaints->items[i].offset);
        complaints->items[i].line = cursor.line;
        complaints->items[i].column = cursor.column;
    }
}

static struct spw_policy *finish(const struct spw_policy_reader *reader,
                                 const struct spw_policy_file *file)
{
    const struct spw_policy_rule *rules = file->rules.items;
    struct spw_policy *policy = calloc(1, sizeof(*policy));

    if (policy == NULL) {
        return NULL;
    }
    *policy = (struct spw_policy){
        .file = *file, .rules = rules, .rule_count = file->rules.count, .memory = reader->memory};
    for (size_t i = 0; i < policy->rule_count; i++) {
        policy->certain |= (uint64_t)!spw_policy_asks_request(&rules[i]) << i;
        policy->uses_python = policy->uses_python || rules[i].match.python.count > 0;
        policy->uses_native =
            policy->uses_native || rules[i].match.native.count > 0 || rules[i].match.node.count > 0;
    }
    return policy;
}

static struct spw_policy *read_tree(struct spw_policy_reader *reader, cJSON *root)
{
    struct spw_policy_file file = {0};
    struct spw_policy *policy = NULL;

    read_root(reader, root, &file);
    if (reader->complaints->count == 0 && !reader->no_memory) {
        place_rules(reader, root, (struct spw_policy_rule *)file.rules.items, file.rules.count);
        policy = finish(reader, &file);
    }
    if (policy == NULL) {
        spw_policy_memory_free(reader->memory);
    }
    return policy;
}

struct spw_policy *spw_policy_parse(const char *text, size_t length, const struct spw_json *json,
                                    struct spw_policy_complaints *ret_complaints)
{
    struct spw_scan scan;
    struct spw_policy_reader reader = {
        .text = text, .length = length, .scan = &scan, .complaints = ret_complaints};
    struct spw_policy *policy = NULL;

    *ret_complaints = (struct spw_policy_complaints){0};
    if (!spw_policy_scan(text, length, &scan)) {
        spw_policy_complain(&reader, scan.problem_at, "%s", scan.problem);
    } else {
        const char *end;
        cJSON *root = json->parse(text, length, &end, false);

        if (root == NULL) {
            spw_policy_complain(&reader, 0, "cJSON does not read the text, expected plain JSON");
        } else {
            policy = read_tree(&reader, root);
        }
        json->destroy(root);
    }
    free(scan.places);
    place_complaints(text, ret_complaints);
    return policy;
}
