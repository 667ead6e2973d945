import CFuse

/// The file system's choice among the kernel's offers.
///
/// A choice that the kernel does not know is dropped in silence; ``ConnectionInfo/capabilities`` tells what it knows.
/// Two abilities cannot be chosen: the write-back cache, which makes the kernel's sizes and times authoritative, and
/// splicing, since contents are wanted in memory, and a pipe there costs one more copy and two more system calls.
package struct ConnectionOptions: Hashable, Sendable {
  /// When a directory is read with attributes.
  package enum Readdirplus: Hashable, Sendable {
    case never
    /// The kernel decides: for the first part of a listing, and while the names are looked up afterwards.
    case auto
    case always
  }

  package var readdirplus: Readdirplus = .auto
  /// Pages are dropped by ``Notifier/invalidateInode(_:offset:length:)`` alone (`FUSE_CAP_EXPLICIT_INVAL_DATA`).
  package var explicitInvalidateData = true
  /// Pages are dropped when GETATTR shows another mtime or size: a writer loses its own (`FUSE_CAP_AUTO_INVAL_DATA`).
  package var autoInvalidateData = false
  /// Lookups and listings of one directory at the same time (`FUSE_PARALLEL_DIROPS`).
  package var parallelDirectoryOperations = true
  /// `O_TRUNC` comes with open instead of a SETATTR before it (`FUSE_CAP_ATOMIC_O_TRUNC`).
  package var atomicTruncate = true
  /// Lookups of `.` and `..` reach the file system, so that name_to_handle_at(2) and NFS work
  /// (`FUSE_CAP_EXPORT_SUPPORT`). Lookup must then answer them for any node, forgotten ones with ESTALE.
  package var exportSupport = true
  /// The kernel keeps the targets of symbolic links (`FUSE_CAP_CACHE_SYMLINKS`).
  package var cacheSymlinks = false
  /// The kernel does not apply the umask (`FUSE_CAP_DONT_MASK`); see ``RequestContext/umask``.
  package var dontMask = false
  /// Several reads of a file at a time (`FUSE_CAP_ASYNC_READ`).
  package var asyncRead = true
  /// Direct I/O in parts, several at a time (`FUSE_CAP_ASYNC_DIO`).
  package var asyncDirectIO = true
  /// The file system clears set-id bits and `security.capability` when a file is written, truncated or given away, and
  /// the kernel asks for that attribute once for a file instead of before each write (`FUSE_HANDLE_KILLPRIV_V2`, set
  /// past libfuse). A SETATTR that only clears bits then has nothing to set.
  package var handleKillprivV2 = false
  /// Files opened with ``OpenResult/directIO`` can be mapped shared, too (`FUSE_DIRECT_IO_ALLOW_MMAP`, Linux 6.6, set
  /// past libfuse).
  package var directIOMappings = false
  /// The kernel asks the file system for locks of flock(2) and fcntl(2) (`FUSE_CAP_FLOCK_LOCKS`,
  /// `FUSE_CAP_POSIX_LOCKS`); otherwise it keeps each mount's locks itself.
  package var locks = false
  /// The kernel checks and stores POSIX ACLs (`FUSE_CAP_POSIX_ACL`).
  package var posixACL = false
  /// The largest WRITE in bytes; libfuse's buffers end at 1 MiB.
  package var maximumWrite: UInt32 = 1 << 20
  /// The largest read-ahead in bytes, if the kernel allows that much; see ``SessionOptions/readAheadKilobytes``.
  package var maximumReadahead: UInt32 = .max
  /// How many background requests (read-ahead, asynchronous direct I/O) may wait, 0 for the kernel's default.
  package var maximumBackground: UInt32 = 0

  package init() {}
}

extension ConnectionOptions {
  /// Writes the choices into `connection`, and returns the flags that libfuse does not send by itself.
  func apply(to connection: inout fuse_conn_info) -> UInt64 {
    var wanted: Capabilities = .ioctlDirectory
    func want(_ capability: Capabilities, _ isWanted: Bool) {
      if isWanted { wanted.insert(capability) }
    }
    want(.asyncRead, asyncRead)
    want(.atomicTruncate, atomicTruncate)
    want(.exportSupport, exportSupport)
    want(.dontMask, dontMask)
    want(.autoInvalidateData, autoInvalidateData)
    want(.explicitInvalidateData, explicitInvalidateData)
    want(.readdirplus, readdirplus != .never)
    want(.readdirplusAuto, readdirplus == .auto)
    want(.asyncDirectIO, asyncDirectIO)
    want(.parallelDirectoryOperations, parallelDirectoryOperations)
    want(.posixLocks, locks)
    want(.flockLocks, locks)
    want(.posixACL, posixACL)
    want(.cacheSymlinks, cacheSymlinks)
    connection.want = wanted.rawValue & connection.capable
    connection.max_write = min(connection.max_write, max(maximumWrite, 4096))
    connection.max_readahead = min(connection.max_readahead, maximumReadahead)
    if maximumBackground > 0 { connection.max_background = maximumBackground }
    return (parallelDirectoryOperations ? cfuse_init_parallel_dirops : 0)
      | (handleKillprivV2 ? cfuse_init_handle_killpriv_v2 : 0)
      | (directIOMappings ? cfuse_init_direct_io_allow_mmap : 0)
  }
}
