#define _GNU_SOURCE
#include "CTestSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
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

const int sheaf_test_no_access_time = O_NOATIME, sheaf_test_direct = O_DIRECT;

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

int sheaf_test_set_groups(const gid_t *groups, size_t count) { return (int)syscall(SYS_setgroups, count, groups); }

int sheaf_test_drop_capability(int number) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) != 0) return -1;
  uint32_t others = ~(1U << number % 32);
  sets[number / 32].effective &= others;
  sets[number / 32].permitted &= others;
  return (int)syscall(SYS_capset, &header, sets);
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

ssize_t sheaf_test_write_asynchronously(int descriptor, const void *bytes, size_t count, off_t offset) {
  enum { depth = 16, length = 65536 };
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, depth, &context) != 0) return -1;
  size_t written = 0;
  int error = 0;
  while (written < count && error == 0) {
    struct iocb requests[depth] = {0};
    struct iocb *pointers[depth];
    int number = 0;
    for (size_t at = written; at < count && number < depth; at += length, number++) {
      requests[number].aio_lio_opcode = IOCB_CMD_PWRITE;
      requests[number].aio_fildes = descriptor;
      requests[number].aio_buf = (uintptr_t)bytes + at;
      requests[number].aio_nbytes = count - at < length ? count - at : length;
      requests[number].aio_offset = offset + (off_t)at;
      pointers[number] = &requests[number];
    }
    for (int sent = 0, done = 0; done < number && error == 0;) {
      int taken = sent < number ? (int)syscall(SYS_io_submit, context, number - sent, pointers + sent) : 0;
      if (taken < 0) error = errno;
      sent += taken > 0 ? taken : 0;
      struct io_event events[depth];
      int ended = sent > done ? (int)syscall(SYS_io_getevents, context, 1, depth, events, NULL) : 0;
      if (ended < 0) error = errno;
      for (int i = 0; i < ended; i++) {
        if (events[i].res < 0) error = (int)-events[i].res;
        else written += (size_t)events[i].res;
      }
      done += ended > 0 ? ended : 0;
    }
  }
  syscall(SYS_io_destroy, context);
  if (error == 0) return (ssize_t)written;
  errno = error;
  return -1;
}

int sheaf_test_unlink_and_open_handle(const char *path) {
  union {
    struct file_handle handle;
    unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } found;
  found.handle.handle_bytes = MAX_HANDLE_SZ;
  char folder[4096];
  if (strlen(path) >= sizeof folder) { errno = ENAMETOOLONG; return -1; }
  strcpy(folder, path);
  char *slash = strrchr(folder, '/');
  if (slash) *slash = 0;
  int mount;
  if (name_to_handle_at(AT_FDCWD, path, &found.handle, &mount, 0) != 0) return -1;
  int place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place < 0) return -1;
  int descriptor = unlink(path) == 0 ? open_by_handle_at(place, &found.handle, O_RDONLY | O_CLOEXEC) : -1;
  int error = errno;
  close(place);
  errno = error;
  return descriptor;
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
