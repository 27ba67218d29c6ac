/* A wall clock that stands still, for strict runs: preloaded into dynamically linked programs.
 * JAIL_CLOCK is the time in seconds since 1970. Clocks that measure time spent go on. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t standing(void) {
    const char *text = getenv("JAIL_CLOCK");
    return text ? atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE && clock != CLOCK_TAI)
        return syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){.tv_sec = standing()};
    return 0;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, now) ? base : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    *now = (struct timeval){.tv_sec = standing()};
    if (zone) *(struct timezone *)zone = (struct timezone){0, 0};
    return 0;
}

time_t time(time_t *now) {
    time_t standing_time = standing();
    if (now) *now = standing_time;
    return standing_time;
}
