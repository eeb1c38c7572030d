// A disk and a clock that fail on demand. Loaded before libc (LD_PRELOAD), this looks into the folder FAULTS at every
// call: while it holds a file
//   write  writes to files in the folder FAULTY_DISK fail with the error whose number it holds;
//   sync   the next sync of such a file fails with EIO, and the file is gone;
//   hang   syncs of such files do not return;
//   clock  the time of day differs by the seconds it holds.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// The number that a file of FAULTS holds; 0 when there is no such file.
static long fault(const char *name, char *path) {
  const char *folder = getenv("FAULTS");
  if (!folder || snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) return 0;
  char text[32] = {0};
  int before = errno, fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd >= 0) {
    if (syscall(SYS_read, fd, text, sizeof text - 1) < 0) text[0] = 0;
    syscall(SYS_close, fd);
  }
  errno = before;
  return atol(text);
}

static int on_faulty_disk(int fd) {
  const char *disk = getenv("FAULTY_DISK");
  char link[64], path[PATH_MAX];
  if (!disk) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  size_t depth = strlen(disk);
  return strncmp(path, disk, depth) == 0 && path[depth] == '/';
}

// Whether a write fails; errno says why.
static int refused(int fd) {
  char path[PATH_MAX];
  long error = fault("write", path);
  if (!error || !on_faulty_disk(fd)) return 0;
  errno = error;
  return 1;
}

static int sync_refused(int fd) {
  char path[PATH_MAX];
  if (!fault("sync", path) || !on_faulty_disk(fd)) return 0;
  syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  errno = EIO;
  return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  return refused(fd) ? -1 : syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  return refused(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

int ftruncate(int fd, off_t length) {
  return refused(fd) ? -1 : syscall(SYS_ftruncate, fd, length);
}

#ifdef __GLIBC__
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) {
  return pwrite(fd, bytes, count, at);
}

int ftruncate64(int fd, off_t length) {
  return ftruncate(fd, length);
}
#endif

int fallocate(int fd, int mode, off_t from, off_t length) {
  return refused(fd) ? -1 : syscall(SYS_fallocate, fd, mode, from, length);
}

static void hang(int fd) {
  char path[PATH_MAX];
  while (fault("hang", path) && on_faulty_disk(fd)) usleep(5000);
}

int fsync(int fd) {
  hang(fd);
  return sync_refused(fd) ? -1 : syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  hang(fd);
  return sync_refused(fd) ? -1 : syscall(SYS_fdatasync, fd);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  char path[PATH_MAX];
  int result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += fault("clock", path);
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}
