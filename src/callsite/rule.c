#include "callsite/rule.h"

#include "callsite/label.h"
#include "common/hash.h"
#include "common/path.h"
#include "system/room.h"
#include "system/write.h"

#include <stdio.h>
#include <string.h>

static bool is_equal(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* The name of a native function without its parameters, as patterns match it. False for a name with
 * a return type or template arguments. */
static bool take_symbol(const char *readable, char ret_symbol[SPW_CALLSITE_NAME])
{
    size_t length = readable == NULL ? 0 : strcspn(readable, "(");

    if (length == 0 || length >= SPW_CALLSITE_NAME || strcspn(readable, " <") < length) {
        return false;
    }
    memcpy(ret_symbol, readable, length);
    ret_symbol[length] = '\0';
    return true;
}

bool spw_callsite_condition_of(const struct spw_callsite_facts *facts, bool inner,
                               struct spw_callsite_condition *ret_condition)
{
    const struct spw_python_frame *own =
        inner && facts->python_count > 0 ? &facts->python[0] : spw_callsite_own_frame(facts);
    const struct spw_native_frame *named = spw_callsite_named_frame(facts);

    memset(ret_condition, 0, sizeof(*ret_condition));
    if (own != NULL && own->file != NULL && own->function != NULL) {
        ret_condition->python = *own;
        ret_condition->python.file = spw_path_name(own->file);
        return true;
    }
    if (facts->node == NULL && named != NULL && take_symbol(named->symbol, ret_condition->symbol)) {
        ret_condition->library = spw_path_name(named->library);
        return true;
    }
    if (facts->node != NULL) {
        (void)snprintf(ret_condition->node, sizeof(ret_condition->node), "%s", facts->node);
    }
    return facts->node != NULL;
}

bool spw_callsite_has_inner(const struct spw_callsite_facts *facts)
{
    return facts->python_count > 0 && spw_callsite_own_frame(facts) != &facts->python[0] &&
           facts->python[0].file != NULL && facts->python[0].function != NULL;
}

bool spw_callsite_condition_holds(const struct spw_callsite_condition *condition,
                                  const struct spw_callsite_facts *facts)
{
    char symbol[SPW_CALLSITE_NAME];

    for (size_t i = 0; condition->python.file != NULL && i < facts->python_count; i++) {
        const struct spw_python_frame *frame = &facts->python[i];

        if (frame->line == condition->python.line && frame->file != NULL &&
            strcmp(spw_path_name(frame->file), condition->python.file) == 0 &&
            is_equal(frame->function, condition->python.function)) {
            return true;
        }
    }
    for (size_t i = 0; condition->library != NULL && i < facts->native_count; i++) {
        if (facts->native[i].library != NULL &&
            strcmp(spw_path_name(facts->native[i].library), condition->library) == 0 &&
            take_symbol(facts->native[i].symbol, symbol) &&
            strcmp(symbol, condition->symbol) == 0) {
            return true;
        }
    }
    return condition->node[0] != '\0' && is_equal(facts->node, condition->node);
}

/* Writes a key with a pattern that matches only this name. */
static void put_pattern(struct spw_writer *writer, const char *key, const char *name)
{
    char pattern[2 * SPW_CALLSITE_NAME];
    size_t used = 0;

    for (; *name != '\0' && used + 2 < sizeof(pattern); name++) {
        if (strchr("\\*?[", *name) != NULL) {
            pattern[used++] = '\\';
        }
        pattern[used++] = *name;
    }
    pattern[used] = '\0';
    spw_write_string(writer, key);
    spw_write(writer, ": ");
    spw_write_string(writer, pattern);
}

void spw_callsite_condition_put(const struct spw_callsite_condition *condition,
                                char ret_rule[SPW_CALLSITE_RULE])
{
    struct spw_writer SPW_ROOM *writer = spw_room_take(sizeof(*writer));

    ret_rule[0] = '\0';
    if (writer == NULL) {
        return;
    }
    writer->fd = -1; /* a rule is far shorter than the buffer */
    spw_write(writer, "{\"name\": \"to-host\", \"match\": {");
    if (condition->python.file != NULL) {
        spw_write(writer, "\"python\": {");
        put_pattern(writer, "file", condition->python.file);
        spw_write(writer, ", ");
        put_pattern(writer, "function", condition->python.function);
        if (condition->python.line != 0) {
            spw_write_key(writer, "lines");
            spw_write_number(writer, condition->python.line);
        }
        spw_write(writer, "}");
    } else if (condition->node[0] != '\0') {
        put_pattern(writer, "node", condition->node);
    } else {
        spw_write(writer, "\"native\": {");
        put_pattern(writer, "symbol", condition->symbol);
        spw_write(writer, ", ");
        put_pattern(writer, "library", condition->library);
        spw_write(writer, "}");
    }
    spw_write(writer, "}, \"action\": {\"placement\": \"host\"}}");
    if (!writer->failed && writer->used < SPW_CALLSITE_RULE) {
        memcpy(ret_rule, writer->buffer, writer->used);
        ret_rule[writer->used] = '\0';
    }
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return spw_hash_mix(hash, text != NULL ? spw_hash_bytes(text, strlen(text)) : 0);
}

uint64_t spw_callsite_condition_hash(const struct spw_callsite_condition *condition)
{
    uint64_t hash = spw_hash_mix(0, condition->python.line);

    hash = hash_text(hash, condition->python.file);
    hash = hash_text(hash, condition->python.function);
    hash = hash_text(hash, condition->library);
    hash = hash_text(hash, condition->symbol);
    return hash_text(hash, condition->node);
}

/* ---- choosing ---- */

bool spw_callsite_is_optimizer(const struct spw_callsite_facts *facts)
{
    for (size_t i = 0; i < facts->python_count; i++) {
        const char *file = facts->python[i].file;

        if (file != NULL && strstr(file, "/torch/optim/") != NULL) {
            return true;
        }
    }
    return false;
}

int spw_callsite_group_add(struct spw_callsite_group *groups, int count,
                           const struct spw_callsite_group *site)
{
    for (int i = 0; i < count; i++) {
        if (groups[i].hash == site->hash) {
            groups[i].bytes += site->bytes;
            groups[i].allocs += site->allocs;
            groups[i].frees += site->frees;
            groups[i].optimizer &= site->optimizer;
            return count;
        }
    }
    groups[count] = *site;
    return count + 1;
}

int spw_callsite_group_cost(const struct spw_callsite_group *group)
{
    bool stays = group->frees <= group->allocs / 8;

    return !stays ? 2 : group->optimizer ? 0 : 1;
}

/* True if `one` is the better proposal. Both groups hold enough memory. */
static bool is_better(const struct spw_callsite_group *one, const struct spw_callsite_group *other)
{
    int first = spw_callsite_group_cost(one), second = spw_callsite_group_cost(other);

    return first != second ? first < second : one->bytes < other->bytes;
}

int spw_callsite_group_choose(const struct spw_callsite_group *groups, int count,
                              uint64_t missing_bytes)
{
    int largest = -1, best = -1;

    for (int i = 0; i < count; i++) {
        if (largest < 0 || groups[i].bytes > groups[largest].bytes) {
            largest = i;
        }
        if (missing_bytes > 0 && groups[i].bytes >= missing_bytes &&
            (best < 0 || is_better(&groups[i], &groups[best]))) {
            best = i;
        }
    }
    return best >= 0 ? best : largest;
}
