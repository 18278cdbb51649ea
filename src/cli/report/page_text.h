/* Text in the script of the page of `spillway report --html`. */
#pragma once

#include "common/write.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* Write a string of JSON that cannot end the script around it; a comma, a key and such a string. */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);
