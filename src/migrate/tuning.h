/* Defines each tuning constant NAME of tuning.def as SPW_TUNE_NAME. */
#pragma once

enum {
#define SPW_TUNING(name, value, unit, row, reason) SPW_TUNE_##name = (value),
#include "migrate/tuning.def"
#undef SPW_TUNING
};
