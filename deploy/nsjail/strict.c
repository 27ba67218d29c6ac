/* A wall clock that stands still and entropy from a seed, for strict runs: preloaded into
 * dynamically linked programs. JAIL_CLOCK is the time in seconds since 1970. Clocks that measure
 * time spent go on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
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

/* The system call does not exist here. Each call takes what follows in the file of entropy, which
 * begins anew at its end: what asks until it likes the answer must not get the same one for ever. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    static size_t taken;
    struct stat file;
    size_t done = 0, from = __atomic_fetch_add(&taken, length, __ATOMIC_RELAXED);
    int entropy = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    (void)flags;
    if (entropy < 0) return -1;
    if (!fstat(entropy, &file) && file.st_size > 0)
        for (ssize_t n = 1; n > 0 && done < length; done += n > 0 ? n : 0)
            n = pread(entropy, (char *)buffer + done, length - done, (from + done) % file.st_size);
    close(entropy);
    if (done < length) return errno = EIO, -1;
    return done;
}

int getentropy(void *buffer, size_t length) {
    if (length > 256) return errno = EIO, -1;
    return getrandom(buffer, length, 0) < 0 ? -1 : 0;
}
