/* Times of the doctor's measurements. No locking. */
#pragma once

enum { SPW_SAMPLES = 16 };

/* The monotonic clock, in microseconds. */
double spw_now_us(void);

/* The median of `count` values, at most SPW_SAMPLES; sorts them. */
double spw_median(double *values, int count);
