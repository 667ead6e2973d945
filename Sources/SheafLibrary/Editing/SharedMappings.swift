import SheafModel

/// Files that programs have mapped shared by one mount and change by another one.
///
/// A kernel keeps the pages that a mapping changed, and writes them whole when somebody asks for them: over what came
/// by another mount meanwhile. So before bytes are changed by one door, the kernels of the others are asked for what
/// they have of them; after the change they forget the pages, as always.
extension Library {
  /// Makes other mounts of the account write back what may be mapped of bytes that are about to be changed by an open
  /// file.
  ///
  /// - Parameters:
  ///   - start: the first byte.
  ///   - count: how many; nil for all that follow.
  func collectMapped(_ start: Int64, _ count: Int64?, of handle: UInt64) {
    locked {
      guard doors.areSeveral, let file = files[handle], file.draft.writerCount > 1 else { return }
      tellOverwriting(start, count, of: file.inode, file.draft, from: file.door)
    }
  }

  /// As ``collectMapped(_:_:of:)``, where a file is truncated.
  func collectMapped(_ start: Int64, of ino: Int64, _ caller: Caller) {
    locked {
      guard doors.areSeveral, let inode = inodes[ino], inode.writerCount > 0 else { return }
      tellOverwriting(start, nil, of: inode, inode.draft(of: caller.account), from: caller.door)
    }
  }

  private func tellOverwriting(_ start: Int64, _ count: Int64?, of inode: Inode, _ draft: Draft, from door: Int) {
    // Who mapped it shared to write there has a handle that can do both, for as long as the mapping is.
    let isMapped = files.all.contains { $0.draft === draft && $0.door != door && $0.canRead && $0.canWrite }
    guard isMapped, start >= 0 else { return }
    let end = count.map { start.addingReportingOverflow($0) } ?? (.max, false)
    tell(.overwriting(inode.ino, start..<(end.overflow ? .max : max(start, end.partialValue))), of: draft, from: door)
  }
}
