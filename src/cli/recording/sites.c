#include "cli/recording/sites.h"

#include "callsite/capture.h"
#include "callsite/label.h"
#include "callsite/modules.h"
#include "cli/inspect/call_sites.h"
#include "cli/recording/forward.h"
#include "common/map.h"
#include "common/path.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 8, TEXT_BYTES = 3 * SPW_RECORD_TEXT };

/* The sites, in the shared form of a running process (callsite/shm.h). */
struct spw_cli_recorded_sites {
    struct spw_callsite_shm *share;
    struct spw_map texts;   /* places in the share's texts, by the recording's numbers */
    struct spw_map numbers; /* the share's numbers of sites, by the recording's */
    size_t used;            /* bytes in use of the share's `sites` */
};

struct spw_cli_recorded_sites *spw_cli_recorded_sites_create(void)
{
    struct spw_cli_recorded_sites *sites = calloc(1, sizeof(*sites));
    void *share = mmap(NULL, sizeof(struct spw_callsite_shm), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (sites == NULL || share == MAP_FAILED) {
        free(sites);
        return NULL;
    }
    sites->share = share;
    sites->share->magic = SPW_CALLSITE_SHM_MAGIC;
    sites->share->version = SPW_CALLSITE_SHM_VERSION;
    sites->share->bytes = sizeof(*sites->share);
    sites->share->texts_used = ALIGNMENT; /* place 0 is the empty text */
    return sites;
}

void spw_cli_recorded_sites_free(struct spw_cli_recorded_sites *sites)
{
    if (sites != NULL) {
        spw_cli_call_sites_close(sites->share);
        free(sites->texts.slots);
        free(sites->numbers.slots);
        free(sites);
    }
}

static bool
    forward_known; /* the lines of cli/recording/forward.h are those of the open recording */

/* ---- taking ---- */

/* Writes a text in the form that statistics files use: bytes that are not UTF-8 become U+FFFD. A
 * call site in a recording then equals the same call site in a statistics file. Returns the
 * length. */
static size_t write_text(const struct spw_cli_text *text, char ret_text[TEXT_BYTES])
{
    static const char unknown[] = "\xef\xbf\xbd";
    char bytes[SPW_RECORD_TEXT + 1];
    size_t used = 0;

    memcpy(bytes, text->bytes, text->length);
    bytes[text->length] = '\0';
    for (const char *at = bytes; *at != '\0';) {
        size_t length = spw_utf8_length(at);
        size_t written = length > 0 ? length : sizeof(unknown) - 1;

        memcpy(ret_text + used, length > 0 ? at : unknown, written);
        used += written;
        at += length > 0 ? length : 1;
    }
    return used;
}

/* Adds a text. Returns the place of the text. Returns 0 if the text is empty or if there is no
 * room. */
static uint32_t add_text(struct spw_callsite_shm *share, const struct spw_cli_text *text)
{
    char written[TEXT_BYTES];
    size_t length = write_text(text, written);
    uint32_t place = share->texts_used;
    size_t end = (place + length + ALIGNMENT) / ALIGNMENT * ALIGNMENT;

    if (length == 0 || end >= SPW_CALLSITE_SHM_TEXTS) {
        return 0;
    }
    memcpy(share->texts + place, written, length);
    share->texts_used = (uint32_t)end;
    return place;
}

static uint32_t text_of(const struct spw_cli_recorded_sites *sites, uint64_t number)
{
    return (uint32_t)(uintptr_t)spw_map_get(&sites->texts, number);
}

static void take_text(struct spw_cli_recorded_sites *sites, const struct spw_cli_event *event)
{
    uint32_t place = 0;

    if (text_of(sites, event->number) == 0) {
        place = add_text(sites->share, &event->text);
    }
    if (place != 0) {
        (void)spw_map_put(&sites->texts, event->number, (void *)(uintptr_t)place);
    }
}

static void take_module(struct spw_callsite_shm *share, const struct spw_cli_event *event)
{
    uint32_t count = atomic_load(&share->module_count);
    struct spw_module *module = &share->modules[count];
    size_t length = event->text.length;

    if (count >= SPW_MODULE_MOST || event->number != count || event->id.length > SPW_MODULE_ID ||
        length >= SPW_MODULE_PATH || memchr(event->text.bytes, '\0', length) != NULL) {
        return;
    }
    *module = (struct spw_module){
        .base = event->base,
        .begin = event->begin,
        .end = event->end,
        .dynamic = event->dynamic,
        .id_bytes = (uint8_t)event->id.length,
    };
    memcpy(module->id, event->id.bytes, event->id.length);
    memcpy(module->path, event->text.bytes, length);
    atomic_store(&share->module_count, count + 1);
}

static void take_site(struct spw_cli_recorded_sites *sites, const struct spw_cli_event *event)
{
    struct spw_callsite_shm *share = sites->share;
    uint32_t number = atomic_load(&share->count) + 1;
    size_t bytes = sizeof(struct spw_callsite) + event->native_count * sizeof(event->native[0]) +
                   event->python_count * sizeof(event->python[0]);
    const size_t largest = sizeof(struct spw_callsite) + SPW_CALLSITE_NATIVE * sizeof(uint64_t) +
                           SPW_CALLSITE_PYTHON * sizeof(struct spw_callsite_line);
    struct spw_callsite *site;
    struct spw_callsite_line *lines;

    if (number >= SPW_CALLSITE_MOST || sites->used + largest > sizeof(share->sites) ||
        spw_map_get(&sites->numbers, event->number) != NULL ||
        !spw_map_put(&sites->numbers, event->number, (void *)(uintptr_t)number)) {
        return;
    }
    site = (struct spw_callsite *)(void *)(share->sites + sites->used);
    site->thread = text_of(sites, event->role);
    site->modules = text_of(sites, event->modules);
    site->cut = event->cut;
    site->native_count = (uint16_t)event->native_count;
    site->python_count = (uint16_t)event->python_count;
    memcpy(site->native, event->native, event->native_count * sizeof(event->native[0]));
    lines = (struct spw_callsite_line *)(void *)(site->native + site->native_count);
    for (unsigned i = 0; i < event->python_count; i++) {
        lines[i] = (struct spw_callsite_line){text_of(sites, event->python[i].file),
                                              text_of(sites, event->python[i].function),
                                              event->python[i].line};
    }
    share->apis[number] = add_text(share, &event->text);
    share->offsets[number] = (uint32_t)(sites->used / ALIGNMENT);
    sites->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    atomic_store(&share->count, number);
}

static void take_tag(struct spw_cli_recorded_sites *sites, const struct spw_cli_event *event)
{
    struct spw_callsite_shm *share = sites->share;
    uint32_t number = spw_cli_recorded_sites_number(sites, event->number);
    struct spw_callsite *site;

    if (number != 0) {
        site = (void *)(share->sites + (size_t)share->offsets[number] * ALIGNMENT);
        site->tag = site->tag == 0 ? add_text(share, &event->text) : site->tag;
    }
}

void spw_cli_recorded_sites_take(struct spw_cli_recorded_sites *sites,
                                 const struct spw_cli_event *event)
{
    switch (event->kind) {
    case SPW_RECORD_TEXT_:
        take_text(sites, event);
        break;
    case SPW_RECORD_MODULE:
        take_module(sites->share, event);
        break;
    case SPW_RECORD_SITE:
        take_site(sites, event);
        break;
    case SPW_RECORD_NAME:
        if (event->named == SPW_RECORD_NAMED_TAG) {
            take_tag(sites, event);
        }
        break;
    default:
        break;
    }
}

uint32_t spw_cli_recorded_sites_number(const struct spw_cli_recorded_sites *sites,
                                       uint64_t recorded)
{
    return (uint32_t)(uintptr_t)spw_map_get(&sites->numbers, recorded);
}

uint32_t spw_cli_recorded_sites_count(const struct spw_cli_recorded_sites *sites)
{
    return atomic_load(&sites->share->count);
}

bool spw_cli_recorded_sites_ready(struct spw_cli_recorded_sites *sites)
{
    forward_known = false;
    return spw_cli_call_sites_adopt(sites->share);
}

/* ---- describing ---- */

static const struct spw_callsite *site_of(uint32_t number)
{
    return spw_callsite_table_get(spw_callsite_known(), number);
}

void spw_cli_recorded_sites_label(uint32_t number, char *ret_label)
{
    const struct spw_callsite *site = site_of(number);
    static struct spw_callsite_words words;

    if (site == NULL) {
        snprintf(ret_label, SPW_CALLSITE_LABEL, "not known");
        return;
    }
    spw_callsite_describe(site, /* native */ true, &words);
    spw_callsite_label(&words.facts, ret_label, SPW_CALLSITE_LABEL);
    spw_utf8_plain(ret_label, /* keep */ "");
}

const char *spw_cli_recorded_sites_api(uint32_t number)
{
    const struct spw_callsite *site = site_of(number);

    return site != NULL ? site->api : "";
}

bool spw_cli_recorded_sites_describe(uint32_t number, struct spw_callsite_words *ret_words)
{
    const struct spw_callsite *site = site_of(number);

    if (site != NULL) {
        spw_callsite_describe(site, /* native */ true, ret_words);
    }
    return site != NULL;
}

static void native_frame(const struct spw_native_frame *from, struct spw_cli_frame *frame)
{
    const char *library = from->library != NULL ? from->library : "";

    *frame = (struct spw_cli_frame){.native = true};
    snprintf(frame->file, sizeof(frame->file), "%s", library);
    if (from->symbol != NULL) {
        snprintf(frame->name, sizeof(frame->name), "%s", from->symbol);
    } else {
        snprintf(frame->name, sizeof(frame->name), "%s",
                 *library != '\0' ? spw_path_name(library) : "?");
    }
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path), rest = strlen(end);

    return length > rest && strcmp(path + length - rest, end) == 0;
}

static bool is_wrapper(const struct spw_python_frame *frame)
{
    static const char *const rows[][2] = {
#define SPW_WRAPPER(file, function) {file, function},
#include "cli/recording/wrappers.def"
    };

    for (size_t i = 0;
         frame->file != NULL && frame->function != NULL && i < sizeof(rows) / sizeof(*rows); i++) {
        if (strcmp(frame->function, rows[i][1]) == 0 && ends_with(frame->file, rows[i][0])) {
            return true;
        }
    }
    return false;
}

static void python_frame(const struct spw_python_frame *from, struct spw_cli_frame *frame)
{
    *frame = (struct spw_cli_frame){.line = from->line, .wrapper = is_wrapper(from)};
    snprintf(frame->file, sizeof(frame->file), "%s", from->file != NULL ? from->file : "?");
    snprintf(frame->name, sizeof(frame->name), "%s", from->function != NULL ? from->function : "?");
}

/* Returns the line of the forward pass of the node of a site, or NULL. All sites are
 * read when the first line is needed. */
static const struct spw_python_frame *forward_line(const char *node)
{
    static struct spw_callsite_words words;
    const struct spw_callsite *site;

    if (!forward_known) {
        spw_cli_forward_clear();
        for (uint32_t number = 1; (site = site_of(number)) != NULL; number++) {
            spw_callsite_describe(site, /* native */ true, &words);
            spw_cli_forward_take(&words.facts);
        }
        forward_known = true;
    }
    return spw_cli_forward_line(node);
}

static void named_frame(const char *name, struct spw_cli_frame *frame)
{
    *frame = (struct spw_cli_frame){.native = true};
    snprintf(frame->name, sizeof(frame->name), "%s", name);
}

/* Writes the frames that a user of Python knows. Returns 0 if there are none. */
static unsigned known_frames(const struct spw_callsite_facts *facts, bool wrappers,
                             struct spw_cli_frame *ret_frames)
{
    char name[sizeof(ret_frames[0].name)]; /* of the operator */
    unsigned count = 0;

    if (spw_callsite_operator(facts, name, sizeof(name))) {
        named_frame(name, &ret_frames[count++]);
    }
    if (facts->node != NULL) {
        named_frame(facts->node, &ret_frames[count++]);
    }
    for (size_t i = 0; i < facts->python_count; i++) {
        python_frame(&facts->python[i], &ret_frames[count]);
        count += wrappers || !ret_frames[count].wrapper;
    }
    if (facts->node != NULL && facts->python_count == 0) {
        const struct spw_python_frame *line = forward_line(facts->node);

        if (line != NULL) {
            python_frame(line, &ret_frames[count++]);
        }
        named_frame("backward pass", &ret_frames[count++]);
    }
    return count;
}

static unsigned all_frames(const struct spw_callsite_facts *facts, struct spw_cli_frame *ret_frames)
{
    unsigned count = 0;

    for (size_t i = 0; i < facts->native_count; i++) {
        native_frame(&facts->native[i], &ret_frames[count++]);
    }
    for (size_t i = 0; i < facts->python_count; i++) {
        python_frame(&facts->python[i], &ret_frames[count++]);
    }
    return count;
}

unsigned spw_cli_recorded_sites_frames(uint32_t number, enum spw_cli_shown shown,
                                       struct spw_cli_frame *ret_frames)
{
    const struct spw_callsite *site = site_of(number);
    static struct spw_callsite_words words;
    unsigned count = 0;

    if (site != NULL) {
        spw_callsite_describe(site, /* native */ true, &words);
        if (shown != SPW_CLI_SHOWN_NATIVE) {
            count = known_frames(&words.facts, shown == SPW_CLI_SHOWN_WRAPPERS, ret_frames);
        }
        count = count > 0 ? count : all_frames(&words.facts, ret_frames);
    }
    if (count == 0) {
        named_frame(site != NULL && site->api[0] != '\0' ? site->api : "not known",
                    &ret_frames[count++]);
    }
    for (unsigned i = 0; i < count; i++) {
        spw_utf8_plain(ret_frames[i].name, /* keep */ "");
        spw_utf8_plain(ret_frames[i].file, /* keep */ "");
    }
    return count;
}
