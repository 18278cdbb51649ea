#include "cli/report/page_parts.h"

#include "common/grow.h"
#include "common/hash.h"
#include "common/map.h"
#include "common/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void spw_cli_page_string(struct spw_writer *out, const char *text)
{
    char character[8] = "";

    spw_write(out, "\"");
    while (*text != '\0') {
        size_t length = spw_utf8_length(text);

        if (length == 0 || spw_utf8_is_control(text, length) || *text == '<' || *text == '>' ||
            *text == '&' || *text == '"' || *text == '\\') {
            snprintf(character, sizeof(character), "\\u%04x", (unsigned)(uint8_t)*text);
            length = length == 0 ? 1 : length;
            spw_write(out, length == 1 ? character : "?");
        } else {
            memcpy(character, text, length);
            character[length] = '\0';
            spw_write(out, character);
        }
        text += length;
    }
    spw_write(out, "\"");
}

void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text)
{
    spw_write_key(out, key);
    spw_cli_page_string(out, text);
}

uint64_t spw_cli_page_share(uint64_t of_all, unsigned devices, uint64_t least, uint64_t most)
{
    uint64_t part = of_all / (devices > 0 ? devices : 1);

    return part < least ? least : part > most ? most : part;
}

/* ---- frames ---- */

/* If all texts together exceed this many bytes, new texts share one number. This keeps the page
 * small for any recording. */
enum { TEXTS_MOST = 192 << 10 };

struct frame {
    size_t number;
    bool wrapper;
    char text[];
};

struct spw_cli_page_frames {
    struct spw_map by_hash; /* of struct frame */
    struct frame **list;    /* the same frames, by number */
    size_t count, capacity;
    size_t bytes; /* of all texts */
};

struct spw_cli_page_frames *spw_cli_page_frames_create(void)
{
    return calloc(1, sizeof(struct spw_cli_page_frames));
}

void spw_cli_page_frames_free(struct spw_cli_page_frames *frames)
{
    if (frames != NULL) {
        spw_map_clear(&frames->by_hash);
        free(frames->by_hash.slots);
        free(frames->list);
        free(frames);
    }
}

static bool add(struct spw_cli_page_frames *frames, uint64_t hash, const char *text, bool wrapper)
{
    size_t length = strlen(text) + 1;
    struct frame *frame;

    if (!SPW_GROW(&frames->list, &frames->capacity, frames->count + 1)) {
        return false;
    }
    frame = malloc(sizeof(*frame) + length);
    if (frame == NULL || !spw_map_put(&frames->by_hash, hash, frame)) {
        free(frame);
        return false;
    }
    frame->number = frames->count;
    frame->wrapper = wrapper;
    frames->bytes += length;
    memcpy(frame->text, text, length);
    frames->list[frames->count++] = frame;
    return true;
}

/* Returns the number of a known text, or SIZE_MAX for a new text. *ret_hash is the key of the text
 * in the map. */
static size_t find(const struct spw_cli_page_frames *frames, const char *text, uint64_t *ret_hash)
{
    uint64_t hash = spw_hash_bytes(text, strlen(text));
    const struct frame *found;

    while ((found = spw_map_get(&frames->by_hash, hash)) != NULL &&
           strcmp(found->text, text) != 0) {
        hash++;
    }
    *ret_hash = hash;
    return found != NULL ? found->number : SIZE_MAX;
}

size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text,
                                  bool wrapper)
{
    static const char others[] = "other functions, too many to name";
    uint64_t hash;
    size_t number = find(frames, text, &hash);

    if (number == SIZE_MAX && frames->bytes > TEXTS_MOST) {
        text = others;
        wrapper = false;
        number = find(frames, text, &hash);
    }
    if (number != SIZE_MAX) {
        return number;
    }
    return add(frames, hash, text, wrapper) ? frames->count - 1 : SIZE_MAX;
}

void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out)
{
    spw_write(out, ", \"frames\": [");
    for (size_t i = 0; i < frames->count; i++) {
        spw_write(out, i == 0 ? "\n" : ",\n");
        spw_cli_page_string(out, frames->list[i]->text);
    }
    spw_write(out, "], \"wrappers\": [");
    for (size_t i = 0, written = 0; i < frames->count; i++) {
        if (frames->list[i]->wrapper) {
            spw_write(out, written++ == 0 ? "" : ",");
            spw_write_number(out, i);
        }
    }
    spw_write(out, "]");
}
