/* Cubins: the ELF files that GPU code comes in.
 *
 * Offsets and sizes in a file are checked against the size of the file before they are used.
 *
 * Locking: none; needs no lock. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

/* A cubin. Its section table and its table of section names lie within the file. */
struct sim_cubin {
    const unsigned char *data; /* not owned */
    size_t size;
    size_t section_count;
    size_t sections; /* offset of the section table */
    Elf64_Shdr names;
};

/* Computes the size of a cubin of unknown size, from its header and its section table. 0 if the
 * data are not a cubin. */
size_t sim_cubin_size(const void *data);

/* Opens a cubin. False if the data are not a cubin. */
bool sim_cubin_open(const void *data, size_t size, struct sim_cubin *ret_cubin);

/* The header of a section; index < section_count. */
Elf64_Shdr sim_cubin_section(const struct sim_cubin *cubin, size_t index);

/* The content of a section, possibly unaligned; NULL if the section has no content or lies outside
 * the file. */
const unsigned char *sim_cubin_content(const struct sim_cubin *cubin, const Elf64_Shdr *section);

/* The string at an offset of a string table, or "" if there is none. */
const char *sim_cubin_text(const struct sim_cubin *cubin, const Elf64_Shdr *table, size_t offset);

/* The name of a section. */
const char *sim_cubin_name(const struct sim_cubin *cubin, const Elf64_Shdr *section);
