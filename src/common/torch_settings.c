#include "common/torch_settings.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum key_class { SERVED, PINNED, CHOICE, UNKNOWN };

static const char backend[] = "backend:cudaMallocAsync";

/* One "key:value". */
struct entry {
    char text[SPW_TORCH_ANSWER]; /* without blanks */
    size_t key_length;
    bool whole; /* it has a key and a value, each bracket is closed, and it was not cut */
};

/* Reads one entry and its comma, and returns what follows. A comma in brackets is of the value. */
static const char *next_entry(const char *text, struct entry *ret_entry)
{
    size_t length = 0;
    size_t colon = 0;
    int depth = 0;
    bool cut = false;

    for (; *text != '\0' && (*text != ',' || depth > 0); text++) {
        if (isspace((unsigned char)*text)) {
            continue;
        }
        depth += (*text == '[') - (*text == ']');
        if (*text == ':' && colon == 0) {
            colon = length;
        }
        if (length + 1 < sizeof(ret_entry->text)) {
            ret_entry->text[length++] = *text;
        } else {
            cut = true;
        }
    }
    ret_entry->text[length] = '\0';
    ret_entry->key_length = colon;
    ret_entry->whole = colon > 0 && colon + 1 < length && depth == 0 && !cut;
    return *text == ',' ? text + 1 : text;
}

static enum key_class class_of(const struct entry *entry)
{
#define SPW_TORCH_KEY(key, class, why)                                                             \
    if (entry->key_length == sizeof(#key) - 1 &&                                                   \
        strncmp(entry->text, #key, entry->key_length) == 0) {                                      \
        return class;                                                                              \
    }
#include "common/torch_keys.def"
#undef SPW_TORCH_KEY
    return UNKNOWN;
}

static enum spw_torch_verdict judge_entry(const struct entry *entry)
{
    if (!entry->whole) {
        return entry->text[0] == '\0' ? SPW_TORCH_OPEN : SPW_TORCH_MALFORMED;
    }
    if (strcmp(entry->text, backend) == 0) {
        return SPW_TORCH_SAME;
    }
    switch (class_of(entry)) {
    case CHOICE:
        return SPW_TORCH_CHOICE;
    case UNKNOWN:
        return SPW_TORCH_UNKNOWN;
    default:
        return SPW_TORCH_OPEN;
    }
}

/* A backend outweighs every other key. */
enum spw_torch_verdict spw_torch_settings_judge(const char *text, char ret_key[SPW_TORCH_NAME])
{
    enum spw_torch_verdict verdict = SPW_TORCH_OPEN;
    struct entry entry;

    ret_key[0] = '\0';
    while (*text != '\0') {
        text = next_entry(text, &entry);

        enum spw_torch_verdict found = judge_entry(&entry);
        bool names_backend =
            found == SPW_TORCH_SAME ||
            (found == SPW_TORCH_CHOICE && strncmp(entry.text, backend, strlen("backend:")) == 0);

        if (names_backend || (verdict == SPW_TORCH_OPEN && found != SPW_TORCH_OPEN)) {
            verdict = found;
            (void)snprintf(ret_key, SPW_TORCH_NAME, "%.*s",
                           (int)(entry.key_length > 0 ? entry.key_length : strlen(entry.text)),
                           entry.text);
        }
        if (names_backend) {
            break;
        }
    }
    return verdict;
}

void spw_torch_settings_replace(const char *text, char ret_answer[SPW_TORCH_ANSWER])
{
    size_t length = strlen(backend);
    struct entry entry;

    memcpy(ret_answer, backend, length + 1);
    while (*text != '\0') {
        text = next_entry(text, &entry);

        size_t more = strlen(entry.text);

        if (entry.whole && class_of(&entry) == PINNED && length + 1 + more < SPW_TORCH_ANSWER) {
            ret_answer[length++] = ',';
            memcpy(ret_answer + length, entry.text, more + 1);
            length += more;
        }
    }
}
