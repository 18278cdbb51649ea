#include "sim/driver/code/cubin.h"

#include <string.h>

static bool is_within(size_t offset, size_t size, size_t whole)
{
    return offset <= whole && size <= whole - offset;
}

/* Reads the header of a file that is at least as long as a header. False if the file is not a
 * cubin. */
static bool read_head(const void *data, Elf64_Ehdr *ret_head)
{
    memcpy(ret_head, data, sizeof(*ret_head));
    return memcmp(ret_head->e_ident, ELFMAG, SELFMAG) == 0 &&
           ret_head->e_ident[EI_CLASS] == ELFCLASS64 &&
           ret_head->e_shentsize == sizeof(Elf64_Shdr) && ret_head->e_shstrndx < ret_head->e_shnum;
}

static Elf64_Shdr section_at(const unsigned char *table, size_t index)
{
    Elf64_Shdr section;

    memcpy(&section, table + index * sizeof(section), sizeof(section));
    return section;
}

/* Increases the size of a file to the end of one part. False if this end overflows. */
static bool cover(size_t *size, size_t offset, size_t part)
{
    if (part > SIZE_MAX - offset) {
        return false;
    }
    if (offset + part > *size) {
        *size = offset + part;
    }
    return true;
}

size_t sim_cubin_size(const void *data)
{
    const unsigned char *bytes = data;
    size_t size = sizeof(Elf64_Ehdr);
    Elf64_Ehdr head;

    if (!read_head(data, &head) || !cover(&size, head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr))) {
        return 0;
    }
    for (size_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section = section_at(bytes + head.e_shoff, i);

        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !cover(&size, section.sh_offset, section.sh_size)) {
            return 0;
        }
    }
    return size;
}

bool sim_cubin_open(const void *data, size_t size, struct sim_cubin *ret_cubin)
{
    Elf64_Ehdr head;

    if (size < sizeof(head) || !read_head(data, &head) ||
        !is_within(head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr), size)) {
        return false;
    }
    *ret_cubin = (struct sim_cubin){
        .data = data,
        .size = size,
        .section_count = head.e_shnum,
        .sections = head.e_shoff,
    };
    ret_cubin->names = sim_cubin_section(ret_cubin, head.e_shstrndx);
    return sim_cubin_content(ret_cubin, &ret_cubin->names) != NULL;
}

Elf64_Shdr sim_cubin_section(const struct sim_cubin *cubin, size_t index)
{
    return section_at(cubin->data + cubin->sections, index);
}

const unsigned char *sim_cubin_content(const struct sim_cubin *cubin, const Elf64_Shdr *section)
{
    return section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
                   is_within(section->sh_offset, section->sh_size, cubin->size)
               ? cubin->data + section->sh_offset
               : NULL;
}

const char *sim_cubin_text(const struct sim_cubin *cubin, const Elf64_Shdr *table, size_t offset)
{
    const unsigned char *texts = sim_cubin_content(cubin, table);

    if (texts == NULL || offset >= table->sh_size ||
        memchr(texts + offset, '\0', table->sh_size - offset) == NULL) {
        return "";
    }
    return (const char *)texts + offset;
}

const char *sim_cubin_name(const struct sim_cubin *cubin, const Elf64_Shdr *section)
{
    return sim_cubin_text(cubin, &cubin->names, section->sh_name);
}
