/* Any bytes as what the reader of Python stacks decodes: line tables in their three forms and
 * texts; and as the mangled name of a function. Nothing is read outside of them, and a line depends
 * only on the bytes it is said to depend on. */
#include "callsite/cpython/line.h"
#include "callsite/cpython/python_walk.h"
#include "callsite/symbols.h"

#include <stdbool.h>
#include <string.h>

#include "fuzz.h"

enum { CODE_MOST = 4096 };

/* Memory of the very size, for a sanitizer to see reads behind it. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + (size == 0));

    if (copy != NULL) {
        memcpy(copy, data, size);
    }
    return copy;
}

static void read_lines(enum spw_callsite_line_form form, const uint8_t *data, size_t size, int code)
{
    uint8_t *table = copy_of(data, size);
    size_t used = 0, again = 0;
    uint32_t line;

    if (table == NULL) {
        return;
    }
    line = spw_callsite_line_find(form, table, size, 1, code, &used);
    FUZZ_REQUIRE(used <= size && line <= INT32_MAX);
    memset(table + used, 0xff, size - used);
    FUZZ_REQUIRE(spw_callsite_line_find(form, table, size, 1, code, &again) == line &&
                 again == used);
    free(table);
}

/* A text object with these characters, of the kind that `state` says. */
static void read_text(const struct spw_python_layout *layout, uint32_t state, const uint8_t *data,
                      size_t size)
{
    unsigned kind = state >> 2 & 7;
    size_t begin = (state >> 6 & 1) != 0 ? layout->text_ascii : layout->text_compact;
    uint64_t count = kind == 0 ? 0 : size / kind;
    uint8_t *text = calloc(1, begin + size + 1);
    char utf8[256];
    size_t length;

    if (text != NULL) {
        memcpy(text + SPW_PYTHON_SIZE, &count, sizeof(count));
        memcpy(text + SPW_PYTHON_TEXT_STATE, &state, sizeof(state));
        memcpy(text + begin, data, size);
        length = spw_callsite_python_text(layout, (uintptr_t)text, utf8, sizeof(utf8));
        FUZZ_REQUIRE(length <= sizeof(utf8) && length <= 4 * count);
        free(text);
    }
}

static void read_symbol(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1);
    char node[16];
    bool apply;

    if (name != NULL) {
        memcpy(name, data, size);
        name[size] = '\0';
        FUZZ_REQUIRE(!spw_callsite_symbol_node(name, &apply, node, sizeof(node)) ||
                     strlen(node) < sizeof(node));
        free(name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t head = 3;

    read_symbol(data, size);
    if (size < head) {
        return 0;
    }
    read_lines((enum spw_callsite_line_form)(data[0] % 3), data + head, size - head,
               (data[1] | data[2] << 8) % CODE_MOST);
    read_text(spw_callsite_python_layout_of(8 + data[0] % 7), data[1], data + head, size - head);
    return 0;
}
