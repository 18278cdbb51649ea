#include "track/private_pool.h"

#include "callsite/modules.h"
#include "common/safe_read.h"
#include "track/process.h"

/* The frames that are searched: the object is about 2 KiB above the call. */
enum { PART_BYTES = 1024, PARTS = 8, PART_WORDS = PART_BYTES / sizeof(uint64_t) };
/* Of PyTorch's PrivatePool, which holds its two pools. */
enum { OWNER_BYTES = 4096 };

/* A std::set of GNU's library whose order is given by a function. */
struct set {
    uint64_t compare;
    uint64_t color; /* from here to `last`: a node that is before the first and behind the last */
    uint64_t root, first, last;
    uint64_t count;
};

struct pool {
    struct set free, unmapped;
    uint8_t is_small, padding[7];
    uint64_t owner; /* 0: none */
};

static bool is_set(const struct set *set, uint64_t address, const struct spw_module *library)
{
    uint64_t end = address + offsetof(struct set, color);

    return set->compare >= library->begin && set->compare < library->end &&
           (set->count == 0 ? set->root == 0 && set->first == end && set->last == end
                            : set->root != 0 && set->first != end && set->last != end);
}

/* True if a private pool of the library is at `address`. */
static bool is_private(uint64_t address, const struct spw_module *library)
{
    struct pool pool;

    return address % sizeof(uint64_t) == 0 && address > OWNER_BYTES &&
           spw_safe_read(address, &pool, sizeof(pool)) && is_set(&pool.free, address, library) &&
           is_set(&pool.unmapped, address + offsetof(struct pool, unmapped), library) &&
           pool.is_small <= 1 && pool.owner < address && address - pool.owner < OWNER_BYTES;
}

bool spw_track_private_pool(uint64_t bytes)
{
    const struct spw_module *library = spw_callsite_module_of((uintptr_t)spw_track_call.caller);
    uintptr_t at = (uintptr_t)spw_track_call.frame;
    uint64_t words[PART_WORDS], before = 0;

    for (int part = 0; library != NULL && part < PARTS && spw_safe_read(at, words, sizeof(words));
         part++, at += sizeof(words)) {
        for (size_t i = 0; i < PART_WORDS; i++) {
            if (words[i] == bytes && is_private(before, library)) {
                return true;
            }
            before = words[i];
        }
    }
    return false;
}
