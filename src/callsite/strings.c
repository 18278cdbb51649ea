#include "callsite/strings.h"

#include "common/hash.h"

#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 4 };

static void *reserve(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

bool spw_callsite_strings_init(struct spw_strings *strings, uint32_t bytes, uint32_t slots)
{
    *strings = (struct spw_strings){.capacity = bytes, .slot_mask = slots - 1};
    strings->base = reserve(bytes);
    strings->slots = reserve(slots * sizeof(strings->slots[0]));
    if (strings->base == NULL || strings->slots == NULL) {
        spw_callsite_strings_fini(strings);
        return false;
    }
    strings->used = ALIGNMENT; /* number 0 is the empty text: the first byte stays 0 */
    return true;
}

void spw_callsite_strings_fini(struct spw_strings *strings)
{
    if (strings->base != NULL) {
        (void)munmap(strings->base, strings->capacity);
    }
    if (strings->slots != NULL) {
        (void)munmap(strings->slots, (strings->slot_mask + 1) * sizeof(strings->slots[0]));
    }
    *strings = (struct spw_strings){0};
}

static bool is_text(const struct spw_strings *strings, uint32_t number, const void *text,
                    size_t length)
{
    uint32_t known;

    memcpy(&known, strings->base + number - sizeof(known), sizeof(known));
    return known == length && memcmp(strings->base + number, text, length) == 0;
}

static uint32_t append(struct spw_strings *strings, const void *text, size_t length)
{
    uint32_t known = (uint32_t)length;
    uint32_t number = strings->used + (uint32_t)sizeof(known);
    size_t end = (number + length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    if (end > strings->capacity || strings->count >= strings->slot_mask / 4 * 3) {
        return 0;
    }
    memcpy(strings->base + strings->used, &known, sizeof(known));
    memcpy(strings->base + number, text, length); /* it ends in a zero, as fresh pages are zero */
    strings->used = (uint32_t)end;
    strings->count++;
    return number;
}

uint32_t spw_callsite_strings_intern(struct spw_strings *strings, const void *text, size_t length)
{
    uint32_t slot;

    if (length == 0 || length >= strings->capacity || strings->base == NULL) {
        return 0;
    }
    slot = (uint32_t)(spw_hash_bytes(text, length) >> 20) & strings->slot_mask;
    for (; strings->slots[slot] != 0; slot = (slot + 1) & strings->slot_mask) {
        if (is_text(strings, strings->slots[slot], text, length)) {
            return strings->slots[slot];
        }
    }
    return strings->slots[slot] = append(strings, text, length);
}

const char *spw_callsite_strings_text(const struct spw_strings *strings, uint32_t number)
{
    return strings->base == NULL ? "" : strings->base + number;
}
