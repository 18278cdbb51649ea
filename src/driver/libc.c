#include "driver/libc.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flag of an old version of a symbol, which only programs linked long ago use. */
#define HIDDEN_VERSION 0x8000

/* The symbol tables of a library, from its dynamic section. */
struct symbols {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Half) * versions; /* NULL if there are none */
    const uint32_t *hash;        /* DT_GNU_HASH */
};

static bool is_same(const char *left, const char *right)
{
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

/* True if the last part of a path is `file`. */
static bool is_file(const char *path, const char *file)
{
    const char *last = path;

    for (; *path != '\0'; path++) {
        last = *path == '/' ? path + 1 : last;
    }
    return is_same(last, file);
}

/* The first of the loaded objects. Other threads may change the list, but not its part with the
 * objects that the process started with, such as the C library. */
static const struct link_map *first_object(void)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (dladdr1((const void *)(uintptr_t)first_object, &info, (void **)&map, RTLD_DL_LINKMAP) ==
        0) {
        return NULL;
    }
    while (map->l_prev != NULL) {
        map = map->l_prev;
    }
    return map;
}

/* The address in a dynamic entry, which the loader may have relocated, or left as an offset. */
static const void *address_of(const struct link_map *map, const ElfW(Dyn) * entry)
{
    ElfW(Addr) address = entry->d_un.d_ptr;

    return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

static struct symbols read_symbols(const struct link_map *map)
{
    struct symbols found = {NULL, NULL, NULL, NULL};

    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            found.symbols = address_of(map, entry);
            break;
        case DT_STRTAB:
            found.names = address_of(map, entry);
            break;
        case DT_VERSYM:
            found.versions = address_of(map, entry);
            break;
        case DT_GNU_HASH:
            found.hash = address_of(map, entry);
            break;
        default:
            break;
        }
    }
    return found;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;

    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

static bool is_wanted(const struct symbols *in, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &in->symbols[index];

    return symbol->st_shndx != SHN_UNDEF &&
           (in->versions == NULL || (in->versions[index] & HIDDEN_VERSION) == 0) &&
           is_same(in->names + symbol->st_name, name);
}

/* Looks up a name in a table DT_GNU_HASH. The table has four words (the number of buckets, the
 * index of its first symbol, the number of words of the Bloom filter, a shift), the filter, the
 * first symbol of each bucket, and the hash of each symbol, with bit 0 set at the end of a
 * bucket. */
static const ElfW(Sym) * look_up(const struct symbols *in, const char *name)
{
    uint32_t buckets = in->hash[0], left_out = in->hash[1];
    const uint32_t *first = in->hash + 4 + in->hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *hashes = first + buckets;
    uint32_t hash = hash_of(name);
    uint32_t index = buckets == 0 ? 0 : first[hash % buckets];

    if (index < left_out) {
        return NULL;
    }
    for (;; index++) {
        uint32_t other = hashes[index - left_out];

        if ((other | 1) == (hash | 1) && is_wanted(in, index, name)) {
            return &in->symbols[index];
        }
        if ((other & 1) != 0) {
            return NULL;
        }
    }
}

static void *function_of(const struct link_map *map, const char *name)
{
    struct symbols symbols = read_symbols(map);
    const ElfW(Sym) *found = NULL;

    if (symbols.symbols != NULL && symbols.names != NULL && symbols.hash != NULL) {
        found = look_up(&symbols, name);
    }
    return found == NULL ? NULL : (void *)(map->l_addr + found->st_value);
}

void *spw_driver_libc_function(const char *name)
{
    void *found = NULL;

    for (const struct link_map *map = first_object(); map != NULL && found == NULL;
         map = map->l_next) {
        if (is_file(map->l_name, "libc.so.6") || is_file(map->l_name, "libdl.so.2")) {
            found = function_of(map, name);
        }
    }
    return found;
}
