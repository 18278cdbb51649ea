#include "cli/sites_share.h"

#include "callsite/capture.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a library of the process is in this one: its file is mapped as the dynamic loader would, to
 * be read only. */
struct place {
    uintptr_t begin, end; /* in the process */
    uintptr_t distance;   /* from there to here */
};

static struct {
    struct place list[SPW_MODULE_MOST];
    size_t count;
} places;

/* The libraries that were mapped, for the next time. */
static struct {
    struct spw_module list[SPW_MODULE_MOST]; /* as in the process */
    uintptr_t distances[SPW_MODULE_MOST];
    size_t count;
} known;

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

/* Whether the file is the one that the process has loaded, as far as that can be told. */
static bool is_same(int fd, const ElfW(Phdr) * segments, int count, const struct spw_module *module)
{
    char notes[4096];

    for (int i = 0; i < count && module->id_bytes > 0; i++) {
        size_t length = segments[i].p_filesz < sizeof(notes) ? segments[i].p_filesz : sizeof(notes);

        if (segments[i].p_type == PT_NOTE &&
            pread(fd, notes, length, (off_t)segments[i].p_offset) == (ssize_t)length &&
            is_build(notes, length, module)) {
            return true;
        }
    }
    return module->id_bytes == 0;
}

/* Maps the loaded segments of a file to their places behind `here`, where address `first` of the
 * file belongs. False when one cannot be. */
static bool map_segments(int fd, const ElfW(Phdr) * segments, int count, char *here,
                         uintptr_t first, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    for (int i = 0; i < count; i++) {
        uintptr_t begin = segments[i].p_vaddr & ~(page - 1);
        size_t more = segments[i].p_vaddr - begin;

        if (segments[i].p_type != PT_LOAD || segments[i].p_filesz == 0) {
            continue;
        }
        if (begin < first || begin - first + more + segments[i].p_filesz > bytes ||
            mmap(here + (begin - first), more + segments[i].p_filesz, PROT_READ,
                 MAP_PRIVATE | MAP_FIXED, fd, (off_t)(segments[i].p_offset - more)) == MAP_FAILED) {
            return false;
        }
    }
    return true;
}

/* Fills the reserved memory at `here` from the module's file. */
static bool load(const struct spw_module *module, char *here, uintptr_t begin, size_t bytes)
{
    enum { SEGMENTS = 64 };
    ElfW(Phdr) segments[SEGMENTS];
    int fd = open(module->path, O_RDONLY | O_CLOEXEC);
    bool loaded = false;
    ElfW(Ehdr) head;

    if (fd < 0) {
        return false;
    }
    if (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
        head.e_phentsize == sizeof(segments[0]) && head.e_phnum <= SEGMENTS) {
        size_t length = head.e_phnum * sizeof(segments[0]);

        loaded = pread(fd, segments, length, (off_t)head.e_phoff) == (ssize_t)length &&
                 is_same(fd, segments, head.e_phnum, module) &&
                 map_segments(fd, segments, head.e_phnum, here, begin - module->base, bytes);
    }
    close(fd);
    return loaded;
}

static bool is_known(const struct spw_module *module, uintptr_t *ret_distance)
{
    for (size_t i = 0; i < known.count; i++) {
        const struct spw_module *other = &known.list[i];

        if (other->begin == module->begin && other->end == module->end &&
            other->id_bytes == module->id_bytes &&
            memcmp(other->id, module->id, SPW_MODULE_ID) == 0 &&
            strncmp(other->path, module->path, sizeof(other->path)) == 0) {
            *ret_distance = known.distances[i];
            return true;
        }
    }
    return false;
}

/* Adds a module of the process to this one's. Without its file it has a place, and no names. */
static bool add(const struct spw_module *module, uintptr_t *ret_distance)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = module->begin & ~(page - 1);
    struct spw_module here = *module;
    size_t bytes = module->end - begin;
    char *room;

    here.path[sizeof(here.path) - 1] = '\0';
    if (module->end <= begin || module->id_bytes > SPW_MODULE_ID ||
        known.count == SPW_MODULE_MOST) {
        return false;
    }
    room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return false;
    }
    *ret_distance = (uintptr_t)room - begin;
    if (!load(&here, room, begin, bytes)) {
        here.dynamic = 0;
    }
    here.base += *ret_distance;
    here.begin += *ret_distance;
    here.end += *ret_distance;
    here.dynamic += here.dynamic != 0 ? *ret_distance : 0;
    known.distances[known.count] = *ret_distance;
    known.list[known.count++] = *module;
    return spw_callsite_modules_add(&here);
}

static void place_all(const struct spw_callsite_shm *share)
{
    uint32_t count = atomic_load_explicit(&share->module_count, memory_order_acquire);

    places.count = 0;
    for (uint32_t i = 0; i < count && i < SPW_MODULE_MOST; i++) {
        const struct spw_module *module = &share->modules[i];
        uintptr_t distance;

        if (is_known(module, &distance) || add(module, &distance)) {
            places.list[places.count++] = (struct place){module->begin, module->end, distance};
        }
    }
}

/* To where this process has the code of a return address; 0: nowhere. */
static uint64_t move(uint64_t address, void *context)
{
    for (size_t i = places.count; i-- > 0;) {
        const struct place *place = &places.list[i];

        if (address - 1 >= place->begin && address - 1 < place->end) {
            return address + place->distance;
        }
    }
    return 0;
}

/* ---- the share ---- */

static struct spw_callsite_shm *map(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct spw_callsite_shm *share = MAP_FAILED;
    struct stat status;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &status) == 0 && status.st_size == (off_t)sizeof(*share)) {
        share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return share != MAP_FAILED ? share : NULL;
}

struct spw_callsite_shm *spw_sites_share_open(const char *path)
{
    struct spw_callsite_shm *share = map(path);

    if (share == NULL) {
        return NULL;
    }
    if (share->magic != SPW_CALLSITE_SHM_MAGIC || share->version != SPW_CALLSITE_SHM_VERSION) {
        spw_sites_share_close(share);
        return NULL;
    }
    (void)dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL); /* makes C++ names readable */
    place_all(share);
    if (!spw_callsite_adopt(share, move, NULL)) {
        spw_sites_share_close(share);
        return NULL;
    }
    return share;
}

void spw_sites_share_close(struct spw_callsite_shm *share)
{
    if (share != NULL) {
        spw_callsite_adopt(NULL, NULL, NULL);
        (void)munmap(share, sizeof(*share));
    }
}
