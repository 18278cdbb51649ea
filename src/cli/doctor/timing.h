/* The clock and the statistics of the doctor's measurements. No locking. */
#pragma once

enum { SPW_CLI_SAMPLES = 16 };

/* The monotonic clock, in microseconds. */
double spw_cli_now_us(void);

/* The median of `count` values, at most SPW_CLI_SAMPLES; sorts them. */
double spw_cli_median(double *values, int count);
