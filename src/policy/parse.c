/* Reads objects by the table of keys, and a whole text: scan, cJSON, objects, checks. */
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

/* Returns the bit of the nearest key, or 0 if no key is near. */
static uint64_t complain_unknown(struct spw_policy_reader *reader, enum spw_policy_object kind,
                                 struct spw_policy_node member)
{
    size_t place = reader->scan->places[member.place].key;
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
    nearest = spw_nearest(member.json->string, 0, keys, count);
    spw_policy_complain(reader, place, "%s is not a key of %s, expected one of %s%s%s%s",
                        spw_policy_source(reader, place, shown), spw_policy_titles[kind], list,
                        nearest != NULL ? " (did you mean \"" : "", nearest != NULL ? nearest : "",
                        nearest != NULL ? "\"?)" : "");
    return nearest != NULL ? bit_of(find_row(kind, nearest)) : 0;
}

/* Complains about required keys that are missing, unless one is the nearest key of a misspelt
 * key. */
static void complain_missing(struct spw_policy_reader *reader, enum spw_policy_object kind,
                             struct spw_policy_node node, uint64_t seen)
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

/* Ends a rule, valid or not: checks it against earlier rules, and notes its line for
 * explanations. */
static void end_rule(struct spw_policy_reader *reader, struct spw_policy_node node,
                     struct spw_policy_rule *rules, size_t number)
{
    spw_policy_check_rule(reader, node, rules, number);
    spw_policy_scan_advance(&reader->cursor, spw_policy_place(reader, node));
    rules[number].line = reader->cursor.line;
}

/* Reads a list of objects. Each item that is not an object gets a separate complaint. */
static void read_items(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                       struct spw_policy_node node, size_t count, void *member)
{
    size_t bytes = spw_policy_object_sizes[row->of];
    struct spw_policy_row item = *row;
    char *items = spw_policy_allocate(reader, count * bytes);

    item.type = SPW_POLICY_OBJECT;
    for (size_t i = 0; items != NULL && i < count && node.json != NULL; i++) {
        if (spw_policy_json_is(node.json, cJSON_Object)) {
            spw_policy_read_object(reader, (enum spw_policy_object)row->of, node,
                                   items + i * bytes);
        } else {
            spw_policy_complain_value(reader, &item, node, NULL, NULL);
        }
        if (row->of == SPW_POLICY_OBJECT_rule) {
            end_rule(reader, node, (struct spw_policy_rule *)(void *)items, i);
        }
        node = spw_policy_next(reader, node);
    }
    *(struct spw_policy_list *)member = (struct spw_policy_list){items, items != NULL ? count : 0};
}

static void read_list(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                      struct spw_policy_node node, void *member)
{
    bool list = spw_policy_json_is(node.json, cJSON_Array);
    bool single = row->type == SPW_POLICY_OBJECTS && spw_policy_json_is(node.json, cJSON_Object);
    size_t count = list ? spw_policy_json_count(node.json) : 1;
    struct spw_policy_node first = list ? spw_policy_first(reader, node) : node;

    if (!single && !list) {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    } else if (count > (size_t)row->high) {
        spw_policy_complain_value(reader, row, node, "with more than 64 items", NULL);
    } else if (count < (size_t)row->low) {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    } else if (count > 0) {
        read_items(reader, row, first, count, member);
    }
}

static void read_member(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                        struct spw_policy_node node, void *member)
{
    if (row->type == SPW_POLICY_OBJECTS || row->type == SPW_POLICY_LIST) {
        read_list(reader, row, node, member);
    } else if (row->type != SPW_POLICY_OBJECT) {
        spw_policy_read_value(reader, row, node, member);
    } else if (spw_policy_json_is(node.json, cJSON_Object)) {
        spw_policy_read_object(reader, (enum spw_policy_object)row->of, node, member);
    } else {
        spw_policy_complain_value(reader, row, node, NULL, NULL);
    }
}

void spw_policy_read_object(struct spw_policy_reader *reader, enum spw_policy_object kind,
                            struct spw_policy_node node, void *object)
{
    uint64_t meant = 0;
    uint64_t seen = 0;

    for (struct spw_policy_node member = spw_policy_first(reader, node); member.json != NULL;
         member = spw_policy_next(reader, member)) {
        const struct spw_policy_row *row = find_row(kind, member.json->string);

        if (row == NULL) {
            meant |= complain_unknown(reader, kind, member);
        } else if ((seen & bit_of(row)) != 0) {
            spw_policy_complain(reader, reader->scan->places[member.place].key,
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

/* True, after a complaint, for a file of another version. Such a file is not read further, since
 * all of its keys may have changed. */
static bool is_other_version(struct spw_policy_reader *reader, struct spw_policy_node root)
{
    const struct spw_policy_row *row = &spw_policy_rows[SPW_POLICY_KEY_file_version];
    struct spw_policy_node version = spw_policy_first(reader, root);

    while (version.json != NULL && strcmp(version.json->string, row->key) != 0) {
        version = spw_policy_next(reader, version);
    }
    if (!spw_policy_json_is(version.json, cJSON_Number) ||
        version.json->valuedouble == (double)row->low) {
        return false;
    }
    spw_policy_complain_value(reader, row, version, "a version that this spillway does not know",
                              NULL);
    return true;
}

static void read_root(struct spw_policy_reader *reader, struct spw_policy_node root,
                      struct spw_policy_file *file)
{
    if (!spw_policy_json_is(root.json, cJSON_Object)) {
        spw_policy_complain(reader, spw_policy_place(reader, root),
                            "the file is no JSON object, expected {\"version\": 1, \"rules\": "
                            "[...]}");
    } else if (!is_other_version(reader, root)) {
        spw_policy_read_object(reader, SPW_POLICY_OBJECT_file, root, file);
    }
    if (reader->torn) {
        spw_policy_complain(reader, 0, "cJSON reads the text in another way, expected plain JSON");
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
        if (rules[i].action.recompute != 0) {
            policy->recomputes |= UINT64_C(1) << i;
            continue;
        }
        policy->certain |= (uint64_t)!spw_policy_asks_request(&rules[i]) << i;
        policy->uses_python = policy->uses_python || rules[i].match.python.count > 0 ||
                              rules[i].match.module_class.count > 0 ||
                              rules[i].match.module.count > 0;
        policy->uses_native =
            policy->uses_native || rules[i].match.native.count > 0 || rules[i].match.node.count > 0;
        policy->uses_tags = policy->uses_tags || rules[i].match.tag.count > 0;
    }
    return policy;
}

static struct spw_policy *read_tree(struct spw_policy_reader *reader, const cJSON *root)
{
    struct spw_policy_file file = {0};
    struct spw_policy *policy = NULL;

    read_root(reader, (struct spw_policy_node){root, 0, reader->scan->count}, &file);
    if (reader->complaints->count == 0 && !reader->no_memory) {
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
        .text = text,
        .length = length,
        .scan = &scan,
        .cursor = {text, 0, 1, 1},
        .first_all = SPW_POLICY_RULES,
        .complaints = ret_complaints,
    };
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
