/* Loaded before libc's: counts the system calls of a sender's upload path, and lets one of them be a fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NONE, COUNT, KILL, FULL, CUT, CLOCK };
enum { DISK = 1, LINE = 2 };

static atomic_int kind;
static atomic_long calls, at, shift;

void faulting_arm(int of_kind, long call, long seconds) {
    at = call;
    shift = seconds;
    calls = 0;
    kind = of_kind;
}

long faulting_calls(void) { return calls; }

/* The error of this call, or 0. */
static int fault(int where) {
    if (kind == NONE) return 0;
    long call = ++calls;
    if (kind == KILL && call == at) kill(getpid(), SIGKILL);
    if (kind == FULL && call >= at && where == DISK) return ENOSPC;
    if (kind == CUT && call >= at && where == LINE) {
        kind = COUNT;
        return ECONNRESET;
    }
    return 0;
}

static int on_disk(int descriptor) {
    struct stat about;
    return descriptor > 2 && fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAIL(where)                   \
    do {                              \
        int error = fault(where);     \
        if (error) {                  \
            errno = error;            \
            return -1;                \
        }                             \
    } while (0)

#define OPENING(name, given, ...)                                  \
    int name given {                                                     \
        NEXT(name);                                                      \
        va_list more;                                                    \
        va_start(more, flags);                                           \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;        \
        va_end(more);                                                    \
        if (flags & (O_CREAT | O_WRONLY | O_RDWR)) FAIL(DISK);           \
        return next(__VA_ARGS__, flags, mode);                           \
    }
OPENING(open, (const char *path, int flags, ...), path)
OPENING(open64, (const char *path, int flags, ...), path)
OPENING(openat, (int folder, const char *path, int flags, ...), folder, path)
OPENING(openat64, (int folder, const char *path, int flags, ...), folder, path)

#define CALL(where, result, name, given, ...) \
    result name given {                       \
        NEXT(name);                           \
        FAIL(where);                          \
        return next(__VA_ARGS__);             \
    }
CALL(DISK, int, fsync, (int file), file)
CALL(DISK, int, mkdir, (const char *path, mode_t mode), path, mode)
CALL(DISK, int, rename, (const char *from, const char *to), from, to)
CALL(0, int, unlink, (const char *path), path)
CALL(0, int, close, (int file), file)
CALL(LINE, int, connect, (int line, const struct sockaddr *to, socklen_t length), line, to, length)

/* A line that is cut stays so: httpcore reads an answer although sending failed, and would wait for it as long as its timeout. */
#define TALK(name, given, ...)                          \
    ssize_t name given {                                \
        NEXT(name);                                     \
        int error = fault(LINE);                        \
        if (error) {                                    \
            shutdown(line, SHUT_RDWR);                  \
            errno = error;                              \
            return -1;                                  \
        }                                               \
        return next(__VA_ARGS__);                       \
    }
TALK(send, (int line, const void *bytes, size_t length, int flags), line, bytes, length, flags)
TALK(recv, (int line, void *bytes, size_t length, int flags), line, bytes, length, flags)

ssize_t write(int file, const void *bytes, size_t length) {
    NEXT(write);
    if (kind != NONE && on_disk(file)) FAIL(DISK);
    return next(file, bytes, length);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int done = next(clock, now);
    if (kind == CLOCK && clock == CLOCK_REALTIME && calls >= at) now->tv_sec += shift;
    return done;
}
