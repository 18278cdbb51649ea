/* Any bytes as the text of a call site: refused, or read; what is read is printed, and that text is
 * read and printed alike. */
#include "callsite/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { TEXT_BYTES = 4 * SPW_CALLSITE_STORAGE };

static struct spw_callsite_text site;
static char printed[2][TEXT_BYTES];
static char complaint[512];

static bool reprint(const char *text, char *buffer)
{
    complaint[0] = '\0';
    if (!spw_callsite_parse(text, &site, complaint, sizeof(complaint))) {
        FUZZ_REQUIRE(strncmp(complaint, "character ", 10) == 0);
        return false;
    }
    FUZZ_REQUIRE(spw_callsite_print(&site.site, &site.request, buffer, TEXT_BYTES) < TEXT_BYTES);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (reprint(text, printed[0])) {
        FUZZ_REQUIRE(reprint(printed[0], printed[1]));
        FUZZ_REQUIRE(strcmp(printed[0], printed[1]) == 0);
    }
    free(text);
    return 0;
}
