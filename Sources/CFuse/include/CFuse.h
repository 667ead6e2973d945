/// The parts of libfuse 3 that Swift cannot express: its macros, its printf-style log, and the two functions by which
/// it uses the device.
///
/// _FILE_OFFSET_BITS stays undefined: off_t has 64 bits on every platform of 64, and with it `struct statvfs` and
/// `struct flock` would differ from those of the module Glibc.
#ifndef SHEAF_CFUSE_H
#define SHEAF_CFUSE_H
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#include <fuse3/fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/// The userdata of a session: who handles its requests, and the state of its INIT handshake.
///
/// Made before the session and freed after it. libfuse gives it to every device function and every request.
struct cfuse_context {
  /// The object that handles the requests.
  void *handler;
  /// Called once on a worker thread after the kernel accepted the answer to INIT: from then on the mount answers.
  void (*initialized)(void *handler);
  /// Flags of struct fuse_init_out that libfuse does not send by itself, set by the init operation; `flags2` above bit
  /// 31.
  uint64_t extra_init_flags;
  /// The flags that the kernel offered in INIT, before libfuse filters them.
  uint64_t offered_init_flags;
  /// The `unique` of the INIT request while its answer is due, else 0.
  _Atomic uint64_t init_unique;
};

/// FUSE_PARALLEL_DIROPS, FUSE_HANDLE_KILLPRIV_V2 and FUSE_DIRECT_IO_ALLOW_MMAP of <linux/fuse.h>: libfuse 3.14 knows
/// the first and never sends it (lib/fuse_lowlevel.c, do_init), and does not know the others.
extern const uint64_t cfuse_init_parallel_dirops;
extern const uint64_t cfuse_init_handle_killpriv_v2;
extern const uint64_t cfuse_init_direct_io_allow_mmap;

/// fuse_session_new(3), which some versions of libfuse make a macro.
struct fuse_session *cfuse_session_new(struct fuse_args *args, const struct fuse_lowlevel_ops *operations,
                                       struct cfuse_context *context);

/// Puts the session's device, after fuse_session_mount(), behind functions that complete the answer to INIT, and hand
/// FUSE_TMPFILE to libfuse, which does not know it, as FUSE_CREATE. Both have the same arguments and answer; the kernel
/// gives the file without a name the name `/`, which no other one has (fs/namei.c, vfs_tmpfile).
int cfuse_session_adopt_device(struct fuse_session *session);

/// Has the kernel look up all names anew before it uses them (FUSE_NOTIFY_INC_EPOCH, which libfuse 3.14 does not know);
/// 0 or a negated errno, -EINVAL where the kernel does not know it.
int cfuse_notify_inc_epoch(struct fuse_session *session);

/// Stores no bytes in a node's pages (FUSE_NOTIFY_STORE), which changes nothing and shows whether the kernel knows the
/// node: 0 or a negated errno, -ENOENT where it does not.
int cfuse_notify_nothing_stored(struct fuse_session *session, uint64_t node);

/// Sends libfuse's own messages, formatted, to `sink` (process-wide, as fuse_set_log_func() is).
void cfuse_set_log(void (*sink)(enum fuse_log_level level, const char *message));

/// A file in memory, closed by execve(2); memfd_create(2) is hidden from Swift.
int cfuse_memory_file(void);

/// Gives the calling thread a file table of its own, with nothing in it but the standard streams (close_range(2)).
int cfuse_part_with_files(void);

/// gettid(2).
pid_t cfuse_thread(void);

/// O_PATH of open(2), which Swift does not see.
extern const int cfuse_path_only;

/// mkdirat(2) with the rights of a user and one group alone, to whom the folder belongs then (setfsuid(2), of this
/// thread); EPERM where this thread cannot take them.
int cfuse_make_folder(int folder, const char *name, mode_t mode, uid_t user, gid_t group);

/// Leaves programs that the calling thread starts no capabilities (capabilities(7)) but those whose bits are set, and
/// none to gain by what they start in turn (PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS of prctl(2)).
int cfuse_limit_privileges(uint64_t kept);

/// The device of the file system that shows at a name, which is not asked (statx(2)); -1 where there is nothing.
int cfuse_device(int folder, const char *name, uint32_t *major, uint32_t *minor);

/// utimensat(2) of the modification time alone.
int cfuse_touch(int folder, const char *name);

/// renameat2(2) with RENAME_EXCHANGE.
int cfuse_exchange(int folder, const char *name, int other_folder, const char *other_name);
#endif
