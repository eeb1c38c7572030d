// What a disk holds after a power cut: the bytes that were synced, and no others. Loaded before libc (LD_PRELOAD), this
// copies each file of the folder POWER_LOSS_LIVE, at the moment it is synced, into the folder POWER_LOSS_DISK. Names
// follow at once, as on a file system with a journal: what is removed or renamed is so on the disk too.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The place on the disk of a path in the live folder; 0 when it lies elsewhere.
static int on_disk(const char *path, char *place) {
  const char *live = getenv("POWER_LOSS_LIVE"), *disk = getenv("POWER_LOSS_DISK");
  if (!live || !disk) return 0;
  size_t length = strlen(live);
  if (strncmp(path, live, length) || path[length] != '/' || strchr(path + length + 1, '/')) return 0;
  return snprintf(place, PATH_MAX, "%s/%s", disk, path + length + 1) < PATH_MAX;
}

static void keep(int fd) {
  char link[64], path[PATH_MAX], place[PATH_MAX], draft[PATH_MAX + 8];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = 0;
  if (!on_disk(path, place)) return;
  // By way of a draft, since the cut may come while this copies.
  snprintf(draft, sizeof draft, "%s.draft", place);
  int in = open(path, O_RDONLY), out = open(draft, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in >= 0 && out >= 0) {
    while (copy_file_range(in, NULL, out, NULL, 1 << 30, 0) > 0) continue;
    syscall(SYS_rename, draft, place);
  }
  if (in >= 0) close(in);
  if (out >= 0) close(out);
}

int fsync(int fd) {
  int result = syscall(SYS_fsync, fd);
  if (result == 0) keep(fd);
  return result;
}

int fdatasync(int fd) {
  int result = syscall(SYS_fdatasync, fd);
  if (result == 0) keep(fd);
  return result;
}

int unlink(const char *path) {
  char place[PATH_MAX];
  int result = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (result == 0 && on_disk(path, place)) syscall(SYS_unlinkat, AT_FDCWD, place, 0);
  return result;
}
