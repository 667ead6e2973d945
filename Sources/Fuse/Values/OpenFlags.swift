import CFuse
import Glibc

/// The flags of open(2) that reached the file system.
///
/// The kernel keeps `O_CREAT`, `O_EXCL` and `O_NOCTTY` to itself; `O_TRUNC` arrives where
/// ``ConnectionOptions/atomicTruncate`` is on.
package struct OpenFlags: Hashable, Sendable, RawRepresentable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  package var isReadable: Bool { rawValue & O_ACCMODE != O_WRONLY }
  package var isWritable: Bool { rawValue & O_ACCMODE != O_RDONLY }
  /// `O_TRUNC`: the file is to be emptied by this open.
  package var truncates: Bool { rawValue & O_TRUNC != 0 }
  /// `O_APPEND`: writes go to the end, where the kernel sees it.
  package var appends: Bool { rawValue & O_APPEND != 0 }
  /// `O_DSYNC` or `O_SYNC`: each write is durable before it is answered. A WRITE carries it also if only that write is
  /// to be durable (`RWF_DSYNC` of pwritev2(2)); past the page cache the kernel says no more of it.
  package var synchronizes: Bool { rawValue & O_DSYNC != 0 }
}

/// The file system's answer to open, opendir and create.
///
/// The corresponding C type is `struct fuse_file_info`. Flags that make no sense for the operation have no effect.
package struct OpenResult: Hashable, Sendable {
  package var handle: FileHandle
  /// The pages that the kernel holds of an earlier open stay valid (files).
  package var keepCache: Bool
  /// Reads and writes go past the page cache (files); shared mappings need ``ConnectionOptions/directIOMappings`` then.
  package var directIO: Bool
  /// The kernel may keep the listing (directories); it is used again where ``keepCache`` is set by a later opendir.
  package var cacheDirectory: Bool
  /// close(2) need not send flush (files).
  package var noFlush: Bool

  package init(
    handle: FileHandle, keepCache: Bool = false, directIO: Bool = false, cacheDirectory: Bool = false,
    noFlush: Bool = false
  ) {
    self.handle = handle
    self.keepCache = keepCache
    self.directIO = directIO
    self.cacheDirectory = cacheDirectory
    self.noFlush = noFlush
  }
}

extension OpenResult {
  var fileInfo: fuse_file_info {
    var info = fuse_file_info()
    info.fh = handle.rawValue
    info.keep_cache = keepCache ? 1 : 0
    info.direct_io = directIO ? 1 : 0
    info.cache_readdir = cacheDirectory ? 1 : 0
    info.noflush = noFlush ? 1 : 0
    return info
  }
}
