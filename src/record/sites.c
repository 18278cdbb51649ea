#include "record/sites.h"

#include "callsite/capture.h"
#include "callsite/modules.h"
#include "record/writer.h"

#include <string.h>

enum {
    TEXT_ROOM = SPW_RECORD_ROOM + SPW_RECORD_TEXT,
    MODULE_ROOM = SPW_RECORD_ROOM + SPW_MODULE_PATH + SPW_MODULE_ID,
    SITE_ROOM = SPW_RECORD_ROOM + SPW_CALLSITE_NATIVE * 10 + SPW_CALLSITE_PYTHON * 15 + 5,
};

static void define_text(uint32_t number)
{
    uint8_t *texts = spw_record.known.texts;
    uint8_t *byte = &texts[number / 4 / 8 % sizeof(spw_record.known.texts)];
    uint8_t bit = (uint8_t)(1u << (number / 4 % 8));
    uint8_t *at;

    if (number == 0 || (*byte & bit) != 0) {
        return;
    }
    at = spw_record_begin_plain(SPW_RECORD_TEXT_, spw_record.writer.last.device, TEXT_ROOM);
    if (at != NULL) {
        at = spw_record_put(at, number);
        at = spw_record_put_text(at, spw_callsite_strings_text(spw_callsite_texts(), number));
        spw_record_end(at);
        *byte |= bit;
    }
}

/* The text is no longer than SPW_CALLSITE_TAG. */
static void define_tag(uint32_t site, uint32_t text)
{
    uint8_t *at = spw_record_begin_plain(SPW_RECORD_NAME, spw_record.writer.last.device, TEXT_ROOM);

    if (at != NULL) {
        at = spw_record_put(at, SPW_RECORD_NAMED_TAG);
        at = spw_record_put(at, site);
        at = spw_record_put_text(at, spw_callsite_strings_text(spw_callsite_texts(), text));
        spw_record_end(at);
    }
}

static void define_modules(void)
{
    size_t *known = &spw_record.known.modules;

    for (; *known < spw_callsite_modules_count(); ++*known) {
        const struct spw_module *module = spw_callsite_modules_get(*known);
        uint8_t *at =
            spw_record_begin_plain(SPW_RECORD_MODULE, spw_record.writer.last.device, MODULE_ROOM);

        if (at == NULL) {
            return;
        }
        at = spw_record_put(at, *known);
        at = spw_record_put(at, module->base);
        at = spw_record_put(at, module->begin);
        at = spw_record_put(at, module->end);
        at = spw_record_put(at, module->dynamic);
        at = spw_record_put(at, module->id_bytes);
        memcpy(at, module->id, module->id_bytes);
        at = spw_record_put_text(at + module->id_bytes, module->path);
        spw_record_end(at);
    }
}

static uint8_t *put_frames(uint8_t *at, const struct spw_callsite *site)
{
    uint64_t last = 0;

    at = spw_record_put(at, site->native_count);
    for (int i = 0; i < site->native_count; i++) {
        at = spw_record_put_signed(at, (int64_t)(site->native[i] - last));
        last = site->native[i];
    }
    at = spw_record_put(at, site->python_count);
    for (int i = 0; i < site->python_count; i++) {
        const struct spw_callsite_line *line = &spw_callsite_lines(site)[i];

        at = spw_record_put(at, line->file);
        at = spw_record_put(at, line->function);
        at = spw_record_put(at, line->line);
    }
    return at;
}

void spw_record_sites_define(uint32_t number)
{
    const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), number);
    uint8_t *at;

    if (site == NULL) {
        spw_record.known.sites[number] = 1;
        return;
    }
    define_modules();
    define_text(site->thread);
    define_text(site->modules);
    for (int i = 0; i < site->python_count; i++) {
        define_text(spw_callsite_lines(site)[i].file);
        define_text(spw_callsite_lines(site)[i].function);
    }
    at = spw_record_begin_plain(SPW_RECORD_SITE | (site->modules != 0 ? SPW_RECORD_HAS_MORE : 0u),
                                spw_record.writer.last.device, SITE_ROOM);
    if (at != NULL) {
        at = spw_record_put(at, number);
        at = spw_record_put_text(at, site->api);
        at = spw_record_put(at, site->thread);
        at = spw_record_put(at, site->cut);
        at = put_frames(at, site);
        spw_record_end(site->modules != 0 ? spw_record_put(at, site->modules) : at);
        spw_record.known.sites[number] = 1;
        if (site->tag != 0) {
            define_tag(number, site->tag);
        }
    }
}

void spw_record_sites_reset(void)
{
    memset(&spw_record.known, 0, sizeof(spw_record.known));
}
