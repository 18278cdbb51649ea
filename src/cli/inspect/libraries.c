#include "cli/inspect/libraries.h"

#include "system/fd.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENTS = 64, PAGE = 4096 };

/* Larger than any offset in a file, and never mapped in this process: only
 * spw_callsite_modules_read takes such addresses. */
static const uintptr_t first_address = UINT64_C(1) << 46;
static const uintptr_t most_bytes = UINT64_C(1) << 36;

struct library {
    struct spw_module there; /* with its addresses in the other process */
    struct spw_module here;  /* with its addresses in this one */
};

static struct {
    struct library list[SPW_MODULE_MOST];
    size_t count;
    uintptr_t next; /* the next free address */
} placed;

static struct {
    const struct library *library; /* NULL: none */
    int fd;                        /* -1: its file cannot be used */
    uint64_t bytes;
    ElfW(Phdr) segments[SEGMENTS];
    size_t count;
} current;

/* ---- a library's file ---- */

static bool is_build(const char *notes, size_t length, const struct spw_module *module)
{
    ElfW(Nhdr) note;

    while (length >= sizeof(note)) {
        size_t name, data;

        memcpy(&note, notes, sizeof(note));
        name = sizeof(note) + ((note.n_namesz + (size_t)3) & ~(size_t)3);
        data = name + ((note.n_descsz + (size_t)3) & ~(size_t)3);
        if (data > length) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= module->id_bytes &&
            memcmp(notes + name, module->id, module->id_bytes) == 0) {
            return true;
        }
        notes += data;
        length -= data;
    }
    return false;
}

static bool is_inside(const ElfW(Phdr) * segment)
{
    return segment->p_offset <= current.bytes &&
           segment->p_filesz <= current.bytes - segment->p_offset;
}

/* Returns true if the file has the same build ID as the library in the process, or if this library
 * has no build ID. */
static bool is_same(const struct spw_module *module)
{
    char notes[4096];

    for (size_t i = 0; i < current.count && module->id_bytes > 0; i++) {
        const ElfW(Phdr) *segment = &current.segments[i];
        size_t length = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);

        if (segment->p_type == PT_NOTE && is_inside(segment) &&
            spw_fd_read_at(current.fd, notes, length, (off_t)segment->p_offset) &&
            is_build(notes, length, module)) {
            return true;
        }
    }
    return module->id_bytes == 0;
}

static bool read_segments(void)
{
    struct stat status;
    ElfW(Ehdr) head;

    if (fstat(current.fd, &status) != 0 || !spw_fd_read_at(current.fd, &head, sizeof(head), 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(current.segments[0]) || head.e_phnum > SEGMENTS) {
        return false;
    }
    current.bytes = (uint64_t)status.st_size;
    current.count = head.e_phnum;
    return head.e_phoff <= current.bytes &&
           spw_fd_read_at(current.fd, current.segments, head.e_phnum * sizeof(current.segments[0]),
                          (off_t)head.e_phoff);
}

/* Opens a library's file as the current one. Returns false if it cannot be used. */
static bool use(const struct library *library)
{
    if (current.library == library) {
        return current.fd >= 0;
    }
    if (current.library != NULL && current.fd >= 0) {
        close(current.fd);
    }
    current.library = library;
    current.fd = spw_fd_open_regular(library->here.path);
    if (current.fd >= 0 && (!read_segments() || !is_same(&library->here))) {
        close(current.fd);
        current.fd = -1;
    }
    return current.fd >= 0;
}

/* ---- reading ---- */

static const struct library *library_of(uintptr_t address)
{
    for (size_t i = 0; i < placed.count; i++) {
        if (address >= placed.list[i].here.begin && address < placed.list[i].here.end) {
            return &placed.list[i];
        }
    }
    return NULL;
}

/* Reads from a segment as if the segment were mapped. A read may extend to the end of the last
 * page. Bytes after the content are zero. */
static bool read_segment(const ElfW(Phdr) * segment, uint64_t at, char *to, size_t bytes)
{
    uint64_t end = segment->p_filesz + (-(segment->p_vaddr + segment->p_filesz) & (PAGE - 1));
    uint64_t left = segment->p_filesz - at;

    if (bytes > end - at) {
        return false;
    }
    if (bytes > left) {
        memset(to + left, 0, bytes - left);
        bytes = left;
    }
    return spw_fd_read_at(current.fd, to, bytes, (off_t)(segment->p_offset + at));
}

static bool read_library(uintptr_t address, void *ret_bytes, size_t bytes)
{
    const struct library *library = library_of(address);
    uint64_t offset;

    if (library == NULL || !use(library)) {
        return false;
    }
    offset = address - library->here.base;
    for (size_t i = 0; i < current.count; i++) {
        const ElfW(Phdr) *segment = &current.segments[i];

        if (segment->p_type == PT_LOAD && is_inside(segment) && offset >= segment->p_vaddr &&
            offset - segment->p_vaddr < segment->p_filesz) {
            return read_segment(segment, offset - segment->p_vaddr, ret_bytes, bytes);
        }
    }
    return false;
}

/* ---- addresses in this process ---- */

static bool is_placed(const struct spw_module *module, uintptr_t *ret_distance)
{
    for (size_t i = 0; i < placed.count; i++) {
        const struct spw_module *other = &placed.list[i].there;

        if (other->begin == module->begin && other->end == module->end &&
            other->id_bytes == module->id_bytes &&
            memcmp(other->id, module->id, SPW_MODULE_ID) == 0 &&
            strncmp(other->path, module->path, sizeof(other->path)) == 0) {
            *ret_distance = placed.list[i].here.begin - other->begin;
            return true;
        }
    }
    return false;
}

bool spw_cli_libraries_add(const struct spw_module *module, uintptr_t *ret_distance)
{
    uintptr_t begin = module->begin & ~(uintptr_t)(PAGE - 1);
    struct library *library = &placed.list[placed.count];
    struct spw_module *here;

    if (is_placed(module, ret_distance)) {
        return true;
    }
    if (module->end <= begin || module->end - begin > most_bytes ||
        module->id_bytes > SPW_MODULE_ID || placed.count == SPW_MODULE_MOST) {
        return false;
    }
    placed.next = placed.next > 0 ? placed.next : first_address;
    *ret_distance = placed.next - begin;
    *library = (struct library){.there = *module, .here = *module};
    here = &library->here;
    here->path[sizeof(here->path) - 1] = '\0';
    here->base += *ret_distance;
    here->begin += *ret_distance;
    here->end += *ret_distance;
    here->dynamic += here->dynamic != 0 ? *ret_distance : 0;
    if (!spw_callsite_modules_add(here)) {
        return false;
    }
    placed.next += (module->end - begin + 2 * PAGE) & ~(uintptr_t)(PAGE - 1);
    placed.count++;
    spw_callsite_modules_read_with(read_library);
    return true;
}
