#include "sim/driver/code/layouts.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX ".nv.info."

/* The first byte of a record is the format of its value. A value of up to two bytes is in the
 * record's header. Other values follow the header, which then contains their size. */
enum format { FORMAT_NONE = 1, FORMAT_BYTE = 2, FORMAT_HALF = 3, FORMAT_SIZED = 4 };

/* The second byte of a record. KPARAM_INFO_V2 is for more than 4 KiB of parameters. */
enum attribute { KPARAM_INFO = 0x17, KPARAM_INFO_V2 = 0x45 };

struct record_head {
    uint8_t format;
    uint8_t attribute;
    uint16_t value_bytes; /* with FORMAT_SIZED */
};

struct param_record {
    uint32_t index; /* always 0 */
    uint16_t ordinal;
    uint16_t offset;
    uint32_t rest; /* KPARAM_INFO: the size is in bits 18 to 31; KPARAM_INFO_V2: in bits 0 to 15 */
};

enum { SIZE_SHIFT = 18, SIZE_MASK_V2 = 0xffff };

/* The layout of one kernel, identified by the hash of its name. */
struct layout {
    uint64_t hash; /* 0: a free place */
    uint32_t first;
    uint32_t count;
};

struct sim_layouts {
    struct layout *table;
    size_t capacity; /* a power of two, above the number of layouts */
    struct sim_param_place *places;
    size_t place_count;
};

/* FNV-1a. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325U;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3U;
    }
    return hash == 0 ? 1 : hash;
}

/* The index in the table that holds the hash or, if no index does, a free index for it. */
static struct layout *place_of(const struct sim_layouts *layouts, uint64_t hash)
{
    size_t at = hash & (layouts->capacity - 1);

    while (layouts->table[at].hash != 0 && layouts->table[at].hash != hash) {
        at = (at + 1) & (layouts->capacity - 1);
    }
    return &layouts->table[at];
}

/* The records of one kernel that are still to be read. */
struct records {
    const unsigned char *at;
    size_t left;
};

/* Reads the next parameter's record. False if there is none; records->left is then 0, unless the
 * remaining data are malformed. */
static bool next_param(struct records *records, struct param_record *ret_param,
                       size_t *ret_param_bytes)
{
    while (records->left >= sizeof(struct record_head)) {
        const unsigned char *value = records->at + sizeof(struct record_head);
        struct record_head head;
        size_t bytes;

        memcpy(&head, records->at, sizeof(head));
        bytes = head.format == FORMAT_SIZED ? head.value_bytes : 0;
        if (head.format < FORMAT_NONE || head.format > FORMAT_SIZED ||
            bytes > records->left - sizeof(head)) {
            return false;
        }
        records->at += sizeof(head) + bytes;
        records->left -= sizeof(head) + bytes;
        if (bytes == sizeof(*ret_param) &&
            (head.attribute == KPARAM_INFO || head.attribute == KPARAM_INFO_V2)) {
            memcpy(ret_param, value, sizeof(*ret_param));
            *ret_param_bytes = head.attribute == KPARAM_INFO ? ret_param->rest >> SIZE_SHIFT
                                                             : ret_param->rest & SIZE_MASK_V2;
            return true;
        }
    }
    return false;
}

/* Counts the parameters. False if the records are malformed. */
static bool count_params(struct records records, size_t *ret_count)
{
    struct param_record param;
    size_t bytes;
    size_t count = 0;

    while (next_param(&records, &param, &bytes)) {
        count++;
    }
    *ret_count = count;
    return records.left == 0;
}

/* Reads all parameters; false if a parameter is missing or occurs twice. */
static bool read_params(struct records records, struct sim_param_place *places, size_t count)
{
    struct param_record param;
    size_t bytes;

    memset(places, 0, count * sizeof(*places));
    while (next_param(&records, &param, &bytes)) {
        if (param.ordinal >= count || bytes == 0 || places[param.ordinal].size != 0) {
            return false;
        }
        places[param.ordinal] = (struct sim_param_place){param.offset, (uint16_t)bytes};
    }
    return true;
}

/* The records of a section, and the name of its kernel. False if the section contains no records.
 */
static bool find_records(const struct sim_cubin *cubin, size_t index, const char **ret_kernel,
                         struct records *ret_records)
{
    Elf64_Shdr section = sim_cubin_section(cubin, index);
    const char *name = sim_cubin_name(cubin, &section);

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) {
        return false;
    }
    *ret_kernel = name + strlen(PREFIX);
    *ret_records = (struct records){sim_cubin_content(cubin, &section), section.sh_size};
    return ret_records->at != NULL;
}

/* Allocates room for all kernels and parameters of the cubin. */
static bool make_room(struct sim_layouts *layouts, const struct sim_cubin *cubin)
{
    size_t kernels = 0, params = 0;
    struct records records;
    const char *kernel;
    size_t count;

    for (size_t i = 0; i < cubin->section_count; i++) {
        if (find_records(cubin, i, &kernel, &records) && count_params(records, &count)) {
            kernels++;
            params += count;
        }
    }
    if (params > UINT32_MAX) {
        return false;
    }
    layouts->capacity = 2;
    while (layouts->capacity < 2 * kernels) {
        layouts->capacity *= 2;
    }
    layouts->table = calloc(layouts->capacity, sizeof(*layouts->table));
    layouts->places = malloc((params + 1) * sizeof(*layouts->places));
    return layouts->table != NULL && layouts->places != NULL;
}

static void add_layout(struct sim_layouts *layouts, const char *kernel, struct records records)
{
    uint64_t hash = hash_of(kernel);
    struct layout *place = place_of(layouts, hash);
    size_t count;

    if (place->hash == 0 && count_params(records, &count) &&
        read_params(records, layouts->places + layouts->place_count, count)) {
        *place = (struct layout){hash, (uint32_t)layouts->place_count, (uint32_t)count};
        layouts->place_count += count;
    }
}

struct sim_layouts *sim_layouts_read(const struct sim_cubin *cubin)
{
    struct sim_layouts *layouts = calloc(1, sizeof(*layouts));
    struct records records;
    const char *kernel;

    if (layouts == NULL || !make_room(layouts, cubin)) {
        sim_layouts_free(layouts);
        return NULL;
    }
    for (size_t i = 0; i < cubin->section_count; i++) {
        if (find_records(cubin, i, &kernel, &records)) {
            add_layout(layouts, kernel, records);
        }
    }
    return layouts;
}

const struct sim_param_place *sim_layouts_find(const struct sim_layouts *layouts, const char *name,
                                               size_t *ret_count)
{
    const struct layout *layout = place_of(layouts, hash_of(name));

    if (layout->hash == 0) {
        return NULL;
    }
    *ret_count = layout->count;
    return layouts->places + layout->first;
}

void sim_layouts_free(struct sim_layouts *layouts)
{
    if (layouts != NULL) {
        free(layouts->table);
        free(layouts->places);
        free(layouts);
    }
}
