/* The content that a block must have: words in parts, each of which grows by a constant step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PARTS = 12 };

struct content {
    size_t words;
    bool known;
    unsigned int count;
    struct part {
        size_t begin;         /* of words; the next part begins where this one ends */
        uint32_t first, step; /* word i of the block is first + i * step */
    } parts[PARTS];
};

/* True if one more change finds room. One that sets all words always does. */
bool content_has_room(const struct content *content, unsigned int more);

/* Words [begin, end) are set, or each is increased. Setting all makes the content known. */
void content_set(struct content *content, size_t begin, size_t end, uint32_t first, uint32_t step);
void content_add(struct content *content, size_t begin, size_t end, uint32_t value);

/* Words [begin, begin + count) become those of `from` at from_begin. Both are known. */
void content_copy(struct content *content, size_t begin, const struct content *from,
                  size_t from_begin, size_t count);

/* Writes what words [begin, begin + count) must be. */
void content_words(const struct content *content, size_t begin, size_t count, uint32_t *ret_words);
