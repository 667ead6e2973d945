import CFuse
import Glibc

/// The attributes that a SETATTR request changes; those that are nil stay.
///
/// chmod(2), chown(2), truncate(2) and utimensat(2) come as this one request.
package struct SetAttributes: Hashable, Sendable {
  /// A time to set.
  package enum Time: Hashable, Sendable {
    /// The time at which the file system sets it (`UTIME_NOW`).
    case now
    case at(TimeSpec)
  }

  package var mode: UInt32?
  package var uid: UInt32?
  package var gid: UInt32?
  package var size: Int64?
  package var accessTime: Time?
  package var modificationTime: Time?
  package var changeTime: TimeSpec?
  /// The open file through which the change came (ftruncate(2) and the like).
  package var handle: FileHandle?

  package init() {}

  /// Whether nothing is to be set, as for a request that only clears set-id bits.
  package var isEmpty: Bool {
    mode == nil && uid == nil && gid == nil && size == nil && accessTime == nil && modificationTime == nil
      && changeTime == nil
  }
}

extension SetAttributes {
  init(_ values: stat, valid: Int32, handle: FileHandle?) {
    self.handle = handle
    if valid & FUSE_SET_ATTR_MODE != 0 { mode = values.st_mode }
    if valid & FUSE_SET_ATTR_UID != 0 { uid = values.st_uid }
    if valid & FUSE_SET_ATTR_GID != 0 { gid = values.st_gid }
    if valid & FUSE_SET_ATTR_SIZE != 0 { size = Int64(values.st_size) }
    if valid & FUSE_SET_ATTR_ATIME_NOW != 0 {
      accessTime = .now
    } else if valid & FUSE_SET_ATTR_ATIME != 0 {
      accessTime = .at(TimeSpec(values.st_atim))
    }
    if valid & FUSE_SET_ATTR_MTIME_NOW != 0 {
      modificationTime = .now
    } else if valid & FUSE_SET_ATTR_MTIME != 0 {
      modificationTime = .at(TimeSpec(values.st_mtim))
    }
    if valid & FUSE_SET_ATTR_CTIME != 0 { changeTime = TimeSpec(values.st_ctim) }
  }
}
