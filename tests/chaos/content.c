#include "content.h"

#include <string.h>

static size_t end_of(const struct content *content, unsigned int part)
{
    return part + 1 < content->count ? content->parts[part + 1].begin : content->words;
}

bool content_has_room(const struct content *content, unsigned int more)
{
    return content->count + more <= PARTS;
}

/* Makes a part begin at the word, and returns the part's number; the number of parts for the end.
 */
static unsigned int cut(struct content *content, size_t word)
{
    unsigned int part = 0;

    while (part < content->count && end_of(content, part) <= word) {
        part++;
    }
    if (part == content->count || content->parts[part].begin == word) {
        return part;
    }
    memmove(&content->parts[part + 1], &content->parts[part],
            (content->count - part) * sizeof(content->parts[0]));
    content->count++;
    content->parts[part + 1].begin = word;
    return part + 1;
}

/* Replaces the words by `count` parts that the caller fills in; returns the first. */
static struct part *replace(struct content *content, size_t begin, size_t end, unsigned int count)
{
    unsigned int first = cut(content, begin), last = cut(content, end);

    memmove(&content->parts[first + count], &content->parts[last],
            (content->count - last) * sizeof(content->parts[0]));
    content->count = content->count - (last - first) + count;
    return &content->parts[first];
}

void content_set(struct content *content, size_t begin, size_t end, uint32_t first, uint32_t step)
{
    if (begin == 0 && end == content->words) {
        content->count = 1;
        content->known = true;
        content->parts[0] = (struct part){0, first, step};
        return;
    }
    *replace(content, begin, end, 1) = (struct part){begin, first, step};
}

void content_add(struct content *content, size_t begin, size_t end, uint32_t value)
{
    unsigned int first = cut(content, begin), last = cut(content, end);

    for (unsigned int part = first; part < last; part++) {
        content->parts[part].first += value;
    }
}

void content_copy(struct content *content, size_t begin, const struct content *from,
                  size_t from_begin, size_t count)
{
    struct content source = *from;
    unsigned int first = cut(&source, from_begin), last = cut(&source, from_begin + count);
    struct part *parts;

    if (count == content->words) {
        content->count = 0;
        content->known = true;
    }
    parts =
        content->count == 0 ? content->parts : replace(content, begin, begin + count, last - first);
    content->count = content->count == 0 ? last - first : content->count;
    for (unsigned int part = first; part < last; part++) {
        uint32_t offset = (uint32_t)(from_begin - begin);

        parts[part - first] = (struct part){
            .begin = source.parts[part].begin - from_begin + begin,
            .first = source.parts[part].first + offset * source.parts[part].step,
            .step = source.parts[part].step,
        };
    }
}

void content_words(const struct content *content, size_t begin, size_t count, uint32_t *ret_words)
{
    for (unsigned int part = 0; part < content->count; part++) {
        size_t from = content->parts[part].begin, end = end_of(content, part);

        from = from > begin ? from : begin;
        end = end < begin + count ? end : begin + count;
        for (size_t word = from; word < end; word++) {
            ret_words[word - begin] =
                content->parts[part].first + (uint32_t)word * content->parts[part].step;
        }
    }
}
