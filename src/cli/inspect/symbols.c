#include "cli/inspect/symbols.h"

#include "common/grow.h"
#include "system/demangle.h"
#include "system/fd.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_MOST = 1 << 30 };

/* A copy of a library's symbol table; `symbols` is NULL when there is none. */
struct spw_cli_symbols_file {
    char *path;
    int fd; /* while the file is read */
    uint64_t bytes;
    ElfW(Sym) * symbols;
    size_t symbol_count;
    char *texts;
    size_t text_bytes;
};

/* ---- the file, whose content is not trusted ---- */

/* Reads a part of the file into new memory. Returns NULL if the file does not contain the whole
 * part. The file is not mapped, because a mapping would fault if the file became shorter. */
static void *part(const struct spw_cli_symbols_file *file, uint64_t offset, uint64_t bytes)
{
    void *copy;

    if (bytes == 0 || bytes > PART_MOST || offset > file->bytes || bytes > file->bytes - offset) {
        return NULL;
    }
    copy = malloc(bytes);
    if (copy != NULL && !spw_fd_read_at(file->fd, copy, bytes, (off_t)offset)) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

/* The table of sections; the caller frees it. */
static ElfW(Shdr) * sections(const struct spw_cli_symbols_file *file, size_t *ret_count)
{
    ElfW(Ehdr) head;

    if (!spw_fd_read_at(file->fd, &head, sizeof(head), 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shentsize != sizeof(ElfW(Shdr))) {
        return NULL;
    }
    *ret_count = head.e_shnum;
    return part(file, head.e_shoff, head.e_shnum * sizeof(ElfW(Shdr)));
}

static bool has_build_id(const struct spw_cli_symbols_file *file, const ElfW(Shdr) * section,
                         const char *build_id)
{
    enum { NAME = 4, ID_MOST = 64 };
    const size_t begin = sizeof(ElfW(Nhdr)) + NAME;
    unsigned char notes[sizeof(ElfW(Nhdr)) + NAME + ID_MOST] = {0};
    size_t length = section->sh_size < sizeof(notes) ? section->sh_size : sizeof(notes);
    char text[2 * ID_MOST + 1] = "";
    ElfW(Nhdr) note;

    if (length < begin || section->sh_offset > file->bytes ||
        !spw_fd_read_at(file->fd, notes, length, (off_t)section->sh_offset)) {
        return false;
    }
    memcpy(&note, notes, sizeof(note));
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != NAME || note.n_descsz > ID_MOST ||
        note.n_descsz > length - begin) {
        return false;
    }
    for (size_t i = 0; i < note.n_descsz; i++) {
        snprintf(text + 2 * i, 3, "%02x", notes[begin + i]);
    }
    return strcmp(text, build_id) == 0;
}

static bool is_the_build(const struct spw_cli_symbols_file *file, const ElfW(Shdr) * list,
                         size_t count, const char *build_id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].sh_type == SHT_NOTE && has_build_id(file, &list[i], build_id)) {
            return true;
        }
    }
    return *build_id == '\0';
}

static void read_symbols(struct spw_cli_symbols_file *file, const ElfW(Shdr) * table,
                         const ElfW(Shdr) * texts)
{
    file->symbols = part(file, table->sh_offset, table->sh_size);
    file->texts = part(file, texts->sh_offset, texts->sh_size);
    file->symbol_count = table->sh_size / sizeof(ElfW(Sym));
    file->text_bytes = texts->sh_size;
    if (file->texts == NULL || file->texts[file->text_bytes - 1] != '\0') {
        free(file->symbols);
        file->symbols = NULL;
    }
}

static void find_symbols(struct spw_cli_symbols_file *file, const char *build_id)
{
    size_t count = 0;
    ElfW(Shdr) *list = sections(file, &count);

    if (list == NULL || !is_the_build(file, list, count, build_id)) {
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].sh_type == SHT_SYMTAB && list[i].sh_link < count) {
            read_symbols(file, &list[i], &list[list[i].sh_link]);
            break;
        }
    }
    free(list);
}

static void open_file(struct spw_cli_symbols_file *file, const char *path, const char *build_id)
{
    struct stat status;

    *file = (struct spw_cli_symbols_file){.path = strdup(path), .fd = spw_fd_open_regular(path)};
    if (file->fd < 0) {
        return;
    }
    if (fstat(file->fd, &status) == 0) {
        file->bytes = (uint64_t)status.st_size;
        find_symbols(file, build_id);
    }
    close(file->fd);
    file->fd = -1;
}

static struct spw_cli_symbols_file *file_of(struct spw_cli_symbols *names, const char *path,
                                            const char *build_id)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->files[i].path != NULL && strcmp(names->files[i].path, path) == 0) {
            return &names->files[i];
        }
    }
    if (!SPW_RESIZE(&names->files, names->count + 1)) {
        return NULL;
    }
    open_file(&names->files[names->count], path, build_id);
    return &names->files[names->count++];
}

char *spw_cli_symbols_find(struct spw_cli_symbols *names, const char *library, const char *build_id,
                           uint64_t offset)
{
    const struct spw_cli_symbols_file *file = file_of(names, library, build_id);

    for (size_t i = 0; file != NULL && file->symbols != NULL && i < file->symbol_count; i++) {
        const ElfW(Sym) *symbol = &file->symbols[i];

        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            offset >= symbol->st_value && offset - symbol->st_value < symbol->st_size &&
            symbol->st_name < file->text_bytes) {
            return strdup(file->texts + symbol->st_name);
        }
    }
    return NULL;
}

/* ---- C++ ---- */

char *spw_cli_symbols_readable(const char *symbol)
{
    char *readable = NULL;

    if (spw_demangle_is_mangled(symbol) && spw_demangle_find(/* load */ true)) {
        readable = spw_demangle(symbol);
    }
    return readable != NULL ? readable : strdup(symbol);
}

void spw_cli_symbols_fini(struct spw_cli_symbols *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->files[i].symbols);
        free(names->files[i].texts);
        free(names->files[i].path);
    }
    free(names->files);
    *names = (struct spw_cli_symbols){0};
}
