#define _GNU_SOURCE
#include "CTestSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

int sheaf_test_own_umask(mode_t mask) {
  if (unshare(CLONE_FS) != 0) return -1;
  umask(mask);
  return 0;
}

int sheaf_test_become(uid_t uid, gid_t gid, const gid_t *groups, size_t count) {
  if (syscall(SYS_setgroups, count, groups) != 0) return -1;
  if (syscall(SYS_setresgid, gid, gid, gid) != 0) return -1;
  return (int)syscall(SYS_setresuid, uid, uid, uid);
}

int sheaf_test_pidfd(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int sheaf_test_power_cut(int descriptor) {
  uint32_t without_log_flush = 2;
  return ioctl(descriptor, _IOR('X', 125, uint32_t), &without_log_flush);
}

int sheaf_test_rename(int folder, const char *from, const char *to, unsigned flags) {
  return renameat2(folder, from, folder, to, flags);
}

ssize_t sheaf_test_write_synchronously(int descriptor, const void *bytes, size_t count) {
  struct iovec part = {(void *)bytes, count};
  return pwritev2(descriptor, &part, 1, -1, RWF_DSYNC);
}

int sheaf_test_allocate(int descriptor, int mode, off_t offset, off_t length) {
  return fallocate(descriptor, mode, offset, length);
}

ssize_t sheaf_test_copy_range(int from, off_t offset, int to, off_t target_offset, size_t count) {
  return copy_file_range(from, &offset, to, &target_offset, count, 0);
}

int sheaf_test_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

const char *sheaf_test_errno_name(int code) { return strerrorname_np(code); }

int sheaf_test_spawn_folder(posix_spawn_file_actions_t *actions, const char *path) {
  return posix_spawn_file_actions_addchdir_np(actions, path);
}

static int unix_socket(const char *path, struct sockaddr_un *address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address->sun_path, path);
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int sheaf_test_listen(const char *path) {
  struct sockaddr_un address;
  int fd = unix_socket(path, &address);
  if (fd < 0) return -1;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 4) == 0) return fd;
  int saved = errno;
  close(fd);
  errno = saved;
  return -1;
}

int sheaf_test_connect(const char *path) {
  struct sockaddr_un address;
  int fd = unix_socket(path, &address);
  if (fd < 0) return -1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  int saved = errno;
  close(fd);
  errno = saved;
  return -1;
}
