#include "callsite/symbols.h"

#include "callsite/modules.h"
#include "system/room.h"

#include <ctype.h>
#include <elf.h>
#include <link.h>
#include <string.h>

/* ---- sorting ---- */

size_t spw_callsite_symbols_sort(struct spw_symbol *symbols, size_t count)
{
    size_t kept = 0;

    /* Shell sort: in place, and never slow. */
    for (size_t gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (size_t i = gap; i < count; i++) {
            struct spw_symbol moved = symbols[i];
            size_t j = i;

            for (; j >= gap && symbols[j - gap].address > moved.address; j -= gap) {
                symbols[j] = symbols[j - gap];
            }
            symbols[j] = moved;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || symbols[kept - 1].address != symbols[i].address) {
            symbols[kept++] = symbols[i];
        }
    }
    return kept;
}

/* The first entry at or behind an address. */
static size_t lower_bound(const struct spw_symbol *symbols, size_t count, uintptr_t address)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;

        if (symbols[middle].address < address) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

const struct spw_symbol *spw_callsite_symbols_find(const struct spw_symbol *symbols, size_t count,
                                                   uintptr_t address)
{
    size_t at = lower_bound(symbols, count, address);

    return at < count && symbols[at].address == address ? &symbols[at] : NULL;
}

/* ---- the symbols of one object ---- */

struct tables {
    uintptr_t symbols, texts, hash, gnu_hash;
};

static bool find_tables(const struct spw_module *module, struct tables *ret_tables)
{
    enum { ENTRIES_MOST = 256 };
    ElfW(Dyn) entry;

    *ret_tables = (struct tables){0};
    for (size_t i = 0; i < ENTRIES_MOST && module->dynamic != 0; i++) {
        uintptr_t at;

        if (!spw_callsite_modules_read(module->dynamic + i * sizeof(entry), &entry,
                                       sizeof(entry)) ||
            entry.d_tag == DT_NULL) {
            break;
        }
        at = entry.d_un.d_ptr < module->base ? entry.d_un.d_ptr + module->base : entry.d_un.d_ptr;
        switch (entry.d_tag) {
        case DT_SYMTAB:
            ret_tables->symbols = at;
            break;
        case DT_STRTAB:
            ret_tables->texts = at;
            break;
        case DT_HASH:
            ret_tables->hash = at;
            break;
        case DT_GNU_HASH:
            ret_tables->gnu_hash = at;
            break;
        default:
            break;
        }
    }
    return ret_tables->symbols != 0 && ret_tables->texts != 0;
}

/* The number of symbols, from a GNU hash table: its last chain ends with the last symbol. */
static size_t count_by_gnu_hash(uintptr_t hash)
{
    enum { PART = 1024, CHAIN_MOST = 1 << 16 };
    uint32_t head[4]; /* buckets, first symbol, words of the filter, shift */
    uint32_t SPW_ROOM *part = spw_room_take(PART * sizeof(*part));
    uintptr_t buckets, chains;
    uint32_t last = 0;

    if (part == NULL || !spw_callsite_modules_read(hash, head, sizeof(head)) || head[2] > 1 << 24 ||
        head[0] > 1 << 24) {
        return 0;
    }
    buckets = hash + sizeof(head) + head[2] * sizeof(uintptr_t);
    chains = buckets + head[0] * sizeof(uint32_t);
    for (size_t i = 0; i < head[0]; i += PART) {
        size_t count = head[0] - i < PART ? head[0] - i : PART;

        if (!spw_callsite_modules_read(buckets + i * sizeof(uint32_t), part,
                                       count * sizeof(uint32_t))) {
            return 0;
        }
        for (size_t j = 0; j < count; j++) {
            last = part[j] > last ? part[j] : last;
        }
    }
    if (last < head[1]) {
        return 0;
    }
    for (size_t i = 0; i < CHAIN_MOST; i++, last++) {
        uint32_t chain;

        if (!spw_callsite_modules_read(chains + (last - head[1]) * sizeof(uint32_t), &chain,
                                       sizeof(chain))) {
            return 0;
        }
        if ((chain & 1) != 0) {
            return last + (size_t)1;
        }
    }
    return 0;
}

static size_t count_of(const struct tables *tables)
{
    uint32_t head[2]; /* buckets, symbols */

    if (tables->gnu_hash != 0) {
        return count_by_gnu_hash(tables->gnu_hash);
    }
    return tables->hash != 0 && spw_callsite_modules_read(tables->hash, head, sizeof(head))
               ? head[1]
               : 0;
}

/* Names every address that lies in the function `found`, if it is a function of the object. */
static void name_by(const ElfW(Sym) * found, const struct spw_module *module,
                    const struct tables *tables, struct spw_symbol *symbols, size_t count)
{
    unsigned char type = ELF64_ST_TYPE(found->st_info);
    uintptr_t begin = module->base + found->st_value;

    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || found->st_shndx == SHN_UNDEF ||
        begin > symbols[count - 1].address || begin + found->st_size <= symbols[0].address) {
        return;
    }
    for (size_t i = lower_bound(symbols, count, begin);
         i < count && symbols[i].address < begin + found->st_size; i++) {
        symbols[i].name = tables->texts + found->st_name;
    }
}

static void name_module(const struct spw_module *module, struct spw_symbol *symbols, size_t count)
{
    enum { PART = 512, SYMBOLS_MOST = 1 << 24 };
    ElfW(Sym) SPW_ROOM *part = spw_room_take(PART * sizeof(*part));
    struct tables tables;
    size_t total;

    if (part == NULL || !find_tables(module, &tables)) {
        return;
    }
    total = count_of(&tables);
    total = total < SYMBOLS_MOST ? total : 0; /* a larger table is damaged */
    for (size_t i = 0; i < total; i += PART) {
        size_t length = total - i < PART ? total - i : PART;

        if (!spw_callsite_modules_read(tables.symbols + i * sizeof(part[0]), part,
                                       length * sizeof(part[0]))) {
            return;
        }
        for (size_t j = 0; j < length; j++) {
            name_by(&part[j], module, &tables, symbols, count);
        }
    }
}

void spw_callsite_symbols_name(struct spw_symbol *symbols, size_t count)
{
    size_t end;

    for (size_t i = 0; i < count; i++) {
        symbols[i].module = spw_callsite_module_of(symbols[i].address);
        symbols[i].name = 0;
    }
    for (size_t i = 0; i < count; i = end) {
        for (end = i + 1; end < count && symbols[end].module == symbols[i].module; end++) {
        }
        if (symbols[i].module != NULL) {
            name_module(symbols[i].module, symbols + i, end - i);
        }
    }
}

void spw_callsite_symbol_text(const struct spw_symbol *symbol, char *ret_text, size_t capacity)
{
    enum { PART = 32 };
    size_t used = 0;

    /* Reads in parts, since the memory behind the table may not be readable. */
    while (symbol->name != 0 && used + PART < capacity) {
        size_t length = PART - (symbol->name + used) % PART;

        if (!spw_callsite_modules_read(symbol->name + used, ret_text + used, length)) {
            break;
        }
        if (memchr(ret_text + used, '\0', length) != NULL) {
            return;
        }
        used += length;
    }
    ret_text[used] = '\0';
}

/* ---- nodes ---- */

/* One part of a mangled name: its length in digits, then that many letters. */
struct part {
    const char *text;
    size_t length;
};

/* Reads the part at *at and steps behind it. */
static bool next_part(const char **at, struct part *ret_part)
{
    enum { LONGEST = 256 };
    size_t length = 0;

    for (; isdigit((unsigned char)**at) && length < LONGEST; ++*at) {
        length = length * 10 + (size_t)(**at - '0');
    }
    if (length == 0 || strnlen(*at, length) < length) {
        return false;
    }
    *ret_part = (struct part){*at, length};
    *at += length;
    return true;
}

static bool is_part(const struct part *part, const char *text)
{
    return part->length == strlen(text) && memcmp(part->text, text, part->length) == 0;
}

bool spw_callsite_symbol_node(const char *mangled, bool *ret_apply, char *ret_node, size_t capacity)
{
    struct part class = {NULL, 0}, method = {NULL, 0}, part;
    const char *at = mangled + 3;
    int parts = 0;

    if (strncmp(mangled, "_ZN", 3) != 0) {
        return false;
    }
    at += *at == 'K';
    for (; next_part(&at, &part); parts++) {
        if ((parts == 0 && !is_part(&part, "torch")) ||
            (parts == 1 && !is_part(&part, "autograd"))) {
            return false;
        }
        class = method;
        method = part;
    }
    if (parts < 4 || *at != 'E' || is_part(&class, "Engine") ||
        class.length + method.length + 3 > capacity) {
        return false;
    }
    *ret_apply = is_part(&method, "apply");
    memcpy(ret_node, class.text, class.length);
    ret_node[class.length] = '\0';
    if (!*ret_apply) {
        memcpy(ret_node + class.length, "::", 2);
        memcpy(ret_node + class.length + 2, method.text, method.length);
        ret_node[class.length + 2 + method.length] = '\0';
    }
    return true;
}
