#include "gpu/profile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/nearest.h"
#include "gpu/limits.h"

#define ROW(...) {__VA_ARGS__},

static const struct spw_gpu_profile profiles[] = {
#define SPW_GPU_PROFILE(id, name, memory, memory_mib, major, minor, ...)                           \
    ROW(id, name, SPW_GPU_##memory, memory_mib, major, minor, SPW_GPU_LIMITS_##major##_##minor,    \
        __VA_ARGS__)
#include "gpu/profiles.def"
#undef SPW_GPU_PROFILE
};

enum { PROFILE_COUNT = sizeof(profiles) / sizeof(profiles[0]), LONGEST_NAME = 32 };

static const struct {
    const char *id;
    struct spw_gpu_overhead overhead;
} overheads[] = {
#define SPW_GPU_OVERHEAD(id, mib, most_mib, messages) {id, {mib, most_mib, messages}},
#include "gpu/overheads.def"
#undef SPW_GPU_OVERHEAD
};

static const struct {
    const char *id;
    struct spw_gpu_sharing sharing;
} sharings[] = {
#define SPW_GPU_SHARES(id, one_memory, host_page_tables) {id, {one_memory, host_page_tables}},
#include "gpu/sharing.def"
#undef SPW_GPU_SHARES
};

const struct spw_gpu_profile *spw_gpu_profile_at(size_t index)
{
    return index < PROFILE_COUNT ? &profiles[index] : NULL;
}

/* Copies the letters and digits of `from`, as many as fit: "RTX 4090" is rtx4090. */
static void copy_letters(char *to, size_t capacity, const char *from)
{
    size_t length = 0;

    for (; *from != '\0' && length + 1 < capacity; from++) {
        if (isalnum((unsigned char)*from)) {
            to[length++] = *from;
        }
    }
    to[length] = '\0';
}

/* The length of an id's first letters that a name may leave out: rtx of rtx4090-24g. */
static size_t family_length(const char *id)
{
    return strncmp(id, "rtx", 3) == 0 || strncmp(id, "gtx", 3) == 0 ? 3 : 0;
}

/* True if `letters` is the model of `id`, and `id` has only a model and its memory. */
static bool is_model(const char *letters, const char *id)
{
    size_t length = strcspn(id, "-"), family = family_length(id), given = strlen(letters);

    return strchr(id + length + 1, '-') == NULL &&
           ((given == length && strncasecmp(letters, id, length) == 0) ||
            (given == length - family && strncasecmp(letters, id + family, given) == 0));
}

/* Returns the number of profiles of the model `name`, and the first of them. */
static size_t find_model(const char *name, const struct spw_gpu_profile **ret_first)
{
    char letters[LONGEST_NAME];
    size_t count = 0;

    copy_letters(letters, sizeof(letters), name);
    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        if (is_model(letters, profiles[i].id)) {
            *ret_first = count++ == 0 ? &profiles[i] : *ret_first;
        }
    }
    return count;
}

const struct spw_gpu_profile *spw_gpu_profile_find(const char *id)
{
    const struct spw_gpu_profile *model = NULL;

    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        if (strcasecmp(profiles[i].id, id) == 0) {
            return &profiles[i];
        }
    }
    return find_model(id, &model) == 1 ? model : NULL;
}

/* Writes the ids of a model that has several: "a100-40g or a100-80g". */
static void write_models(const char *name, char *text, size_t capacity)
{
    char letters[LONGEST_NAME];
    size_t used = 0;

    copy_letters(letters, sizeof(letters), name);
    for (size_t i = 0; i < PROFILE_COUNT && used < capacity; i++) {
        if (is_model(letters, profiles[i].id)) {
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used > 0 ? " or " : "",
                                     profiles[i].id);
        }
    }
}

void spw_gpu_profile_expected(const char *id, char *text, size_t capacity)
{
    const char *ids[PROFILE_COUNT];
    const struct spw_gpu_profile *model;
    const char *nearest;
    char letters[LONGEST_NAME];

    if (find_model(id, &model) > 1) {
        write_models(id, text, capacity);
        return;
    }
    for (size_t i = 0; i < PROFILE_COUNT; i++) {
        ids[i] = profiles[i].id;
    }
    copy_letters(letters, sizeof(letters), id);
    nearest = spw_nearest(id, 0, ids, PROFILE_COUNT);
    nearest = nearest != NULL ? nearest : spw_nearest(letters, 0, ids, PROFILE_COUNT);
    (void)snprintf(text, capacity, "%s%sa name that spillway sim --profile list prints",
                   nearest != NULL ? nearest : "", nearest != NULL ? ", or " : "");
}

/* Fitted to the GPUs with published figures: the overhead grows with the number of multiprocessors,
 * by 4.4 to 5.6 MiB for each multiprocessor on large chips of a generation (x.0), and by 2.8 to 4.4
 * MiB on others. */
static struct spw_gpu_overhead estimate_by_size(const struct spw_gpu_profile *profile)
{
    double each = profile->minor == 0 ? 4.7 : 3.7;
    uint32_t mib = (uint32_t)(each * profile->multiprocessors);

    return (struct spw_gpu_overhead){.mib = mib, .most_mib = mib + mib / 2};
}

struct spw_gpu_overhead spw_gpu_profile_overhead(const struct spw_gpu_profile *profile)
{
    for (size_t i = 0; i < sizeof(overheads) / sizeof(overheads[0]); i++) {
        if (strcmp(overheads[i].id, profile->id) == 0) {
            return overheads[i].overhead;
        }
    }
    return estimate_by_size(profile);
}

struct spw_gpu_sharing spw_gpu_profile_sharing(const struct spw_gpu_profile *profile)
{
    for (size_t i = 0; i < sizeof(sharings) / sizeof(sharings[0]); i++) {
        if (strcmp(sharings[i].id, profile->id) == 0) {
            return sharings[i].sharing;
        }
    }
    return (struct spw_gpu_sharing){.one_memory = false};
}
