import Glibc
import Fuse
import SheafLibrary
import SheafModel
import Synchronization

/// Open files: documents by the library's handles, versions by readers of this mount.
extension AccountFileSystem {
  func open(_ node: NodeID, flags: OpenFlags, caller: RequestContext, reply: consuming OpenReply) {
    var opened: (ino: Int64, handle: FileHandle)?
    let delivered = reply.answer { () throws(Errno) in
      if try repeater.serve(node, caller) != nil {
        return OpenResult(handle: Repeater.handle, keepCache: true, noFlush: true)
      }
      switch Node(node) {
      case .inode(let ino):
        let allowsUnlinked = unlinkedOpens.allows(ino, by: caller.pid)
        let handle: FileHandle
        do throws(Errno) {
          handle = FileHandle(
            rawValue: try translatedForNode {
              try library.open(
                ino, flags: accessTimes.flags(flags), allowsUnlinked: allowsUnlinked, credentials(caller))
            })
        } catch {
          if error == .staleFileHandle, !allowsUnlinked { unlinkedOpens.refuse(ino, to: caller.pid) }
          throw error
        }
        opened = (ino, handle)
        return OpenResult(handle: handle, keepCache: true, directIO: directWrites.opens(ino, flags, handle))
      case .versionFile(let item, let number):
        if flags.isWritable || flags.truncates { throw .readOnlyFileSystem }
        let reader = try translated { try library.openVersion(of: item, number: number, credentials(caller)) }
        // The file of an open version changes with the next autosave: reading shows its present bytes.
        return OpenResult(handle: listings.add(reader), noFlush: true)
      case .deleted(let ino):
        if flags.isWritable || flags.truncates { throw .readOnlyFileSystem }
        let reader = try translatedForNode { try library.openDeleted(ino, credentials(caller)) }
        return OpenResult(handle: listings.add(reader), noFlush: true)
      default: throw .isDirectory
      }
    }
    if !delivered, let opened {
      directWrites.releases(opened.ino, opened.handle)
      try? library.release(opened.handle.rawValue)
    }
  }

  func create(
    _ name: FileName, in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext,
    reply: consuming CreateReply
  ) {
    let body = { @Sendable [self] () throws -> (ino: Int64, entry: Entry, opened: OpenResult) in
      let (attributes, number): (Attributes, UInt64)
      var isNew = false
      var timeout = Self.forever
      if case .sharedOwner(let owner) = Node(parent) {
        timeout = 0
        (attributes, number) = try library.createShared(
          account, owner: owner, name.bytes, mode: mode, flags: accessTimes.flags(flags), credentials(caller))
      } else {
        let ino = try changeable(parent)
        timeout = self.timeout(in: ino)
        do {
          (attributes, number, isNew) = try library.create(
            ino, name.bytes, mode: mode, flags: accessTimes.flags(flags), credentials(caller))
        } catch let error as SheafError where Errno(error.kind) == .fileExists && flags.rawValue & O_EXCL == 0 {
          // For a folder or a fifo: makes the kernel look the name up anew (fs/namei.c, do_filp_open).
          throw Errno.staleFileHandle
        }
      }
      let (ino, handle) = (attributes.ino, FileHandle(rawValue: number))
      let isDirect = isNew ? directWrites.begins(ino, flags, handle) : directWrites.opens(ino, flags, handle)
      return (
        ino, entry(attributes, timeout: timeout), OpenResult(handle: handle, keepCache: true, directIO: isDirect)
      )
    }
    answer(parent, reply, body) { [self] reply, result in
      switch result {
      case .success(let made):
        guard !reply.succeed(made.entry, made.opened) else { return }
        directWrites.releases(made.ino, made.opened.handle)
        try? library.release(made.opened.handle.rawValue)
      case .failure(let error): reply.fail(error)
      }
    }
  }

  func tmpfile(
    in parent: NodeID, mode: UInt32, flags: OpenFlags, caller: RequestContext, reply: consuming CreateReply
  ) {
    var opened: (ino: Int64, handle: FileHandle)?
    let delivered = reply.answer { () throws(Errno) in
      // `Shared/OWNER` is no folder of the library. Programs do without such a file where they hear that there are none.
      if case .sharedOwner = Node(parent) { throw .notSupported }
      let folder = try changeable(parent)
      let (attributes, number) = try translated {
        try library.createNameless(folder, mode: mode, flags: accessTimes.flags(flags), credentials(caller))
      }
      let (ino, handle) = (attributes.ino, FileHandle(rawValue: number))
      opened = (ino, handle)
      return (
        entry(attributes, timeout: Self.forever),
        OpenResult(handle: handle, keepCache: true, directIO: directWrites.begins(ino, flags, handle))
      )
    }
    if !delivered, let opened {
      directWrites.releases(opened.ino, opened.handle)
      try? library.release(opened.handle.rawValue)
    }
  }

  func read(
    _ node: NodeID, handle: FileHandle, offset: Int64, size: Int, caller: RequestContext, reply: consuming DataReply
  ) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer { buffer.deallocate() }
    let absent: AbsentContents
    switch Attempt({ try readNow(handle, offset, buffer) }) {
    case .done(let count): return reply.succeed(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    case .failed(let error): return reply.fail(error)
    case .absent(let contents): absent = contents
    }
    let body = { @Sendable [self] () throws -> [UInt8] in
      try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
        count = try readNow(
          handle, offset, UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<size])))
      }
    }
    answerLater(node, reply, absent, body) { reply, result in
      switch result {
      case .success(let bytes): reply.succeed(bytes)
      case .failure(let error): reply.fail(error)
      }
    }
  }

  private func readNow(_ handle: FileHandle, _ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if let reader = listings.reader(handle) { return try library.read(reader, at: offset, into: buffer) }
    return try library.read(handle.rawValue, at: offset, into: buffer)
  }

  func write(
    _ node: NodeID, handle: FileHandle, offset: Int64, data: UnsafeRawBufferPointer, origin: WriteOrigin,
    caller: RequestContext, reply: consuming WriteReply
  ) {
    let absent: AbsentContents
    switch Attempt({ try writeNow(node, handle, offset, data, origin, caller) }) {
    case .done: return reply.succeed(data.count)
    case .failed(let error): return reply.fail(error)
    case .absent(let contents): absent = contents
    }
    let bytes = [UInt8](data)
    let body = { @Sendable [self] () throws -> Int in
      try bytes.withUnsafeBytes { try writeNow(node, handle, offset, $0, origin, caller) }
      return bytes.count
    }
    answerLater(node, reply, absent, body, Self.give)
  }

  private static func give(_ reply: consuming WriteReply, _ result: Result<Int, Errno>) {
    switch result {
    case .success(let count): reply.succeed(count)
    case .failure(let error): reply.fail(error)
    }
  }

  private func writeNow(
    _ node: NodeID, _ handle: FileHandle, _ offset: Int64, _ data: UnsafeRawBufferPointer, _ origin: WriteOrigin,
    _ caller: RequestContext
  ) throws {
    // Pages of a mapping are written back to their places, even by a handle that appends.
    let direct = Node(node).ino.flatMap { !origin.isWriteBack && directWrites.contains($0) ? $0 : nil }
    try library.write(
      handle.rawValue, at: offset, data, appends: origin.openFlags.appends && !origin.isWriteBack,
      isWriteBack: origin.isWriteBack, by: caller.uid != 0 && !origin.isWriteBack ? credentials(caller) : nil,
      thread: origin.isWriteBack ? 0 : caller.pid, clearsCapability: direct != nil)
    guard let direct else { return }
    directWrites.wrote(direct)
    if origin.openFlags.synchronizes { try library.fsync(direct) }
  }

  func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      // What is written is there when others get the locks.
      let saved = Result { () throws(Errno) in
        guard Node(node).ino != nil else { return }
        try translated { try library.flush(handle.rawValue) }
      }
      let owner = FileLocks.Owner(door: door, id: lockOwner)
      if library.locks.holds(node.rawValue, by: owner) {
        library.saveBeforeUnlocking(account, thread: caller.pid)
      }
      library.locks.closed(node.rawValue, by: owner)
      try saved.get()
    }
  }

  func release(
    _ node: NodeID, handle: FileHandle, flags: OpenFlags, caller: RequestContext, reply: consuming EmptyReply
  ) {
    if library.locks.holds(node.rawValue, door: door) {
      library.saveBeforeUnlocking(account, thread: caller.pid)
    }
    library.locks.released(node.rawValue, door: door, handle: handle.rawValue)
    if listings.remove(handle) { return reply.succeed() }
    if let ino = Node(node).ino { directWrites.releases(ino, handle) }
    do {
      try library.release(handle.rawValue)
    } catch {
      // No program hears of it: close(2) has reported already, and autosave tries again.
      log.error("a document could not be saved", metadata: ["error": "\(error)"])
    }
    reply.succeed()
  }

  func fsync(
    _ node: NodeID, handle: FileHandle, dataOnly: Bool, caller: RequestContext, reply: consuming EmptyReply
  ) {
    reply.answer { () throws(Errno) in
      guard let ino = Node(node).ino else { return }
      try translated { try library.fsync(ino) }
    }
  }

  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: FallocateMode, offset: Int64, length: Int64, caller: RequestContext,
    reply: consuming EmptyReply
  ) {
    let body = { @Sendable [self] () throws in
      let allocation: Library.Allocation =
        switch mode {
        case []: .preallocate(keepsSize: false)
        case .keepSize: .preallocate(keepsSize: true)
        case [.punchHole, .keepSize]: .punchHole
        case .zeroRange: .zero(keepsSize: false)
        case [.zeroRange, .keepSize]: .zero(keepsSize: true)
        default: throw Errno.notSupported
        }
      let (end, overflow) = offset.addingReportingOverflow(length)
      guard !overflow else { throw Errno.fileTooLarge }
      try library.allocate(handle.rawValue, offset..<end, allocation)
    }
    answer(node, reply, body, Self.give)
  }

  static func give(_ reply: consuming EmptyReply, _ result: Result<Void, Errno>) {
    switch result {
    case .success: reply.succeed()
    case .failure(let error): reply.fail(error)
    }
  }

  func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int64, whence: Whence, caller: RequestContext,
    reply: consuming LseekReply
  ) {
    reply.answer { () throws(Errno) in
      guard whence == .data || whence == .hole else { throw .invalidArgument }
      return try translated {
        if let reader = listings.reader(handle) {
          return try library.seek(reader, offset, hole: whence == .hole)
        }
        return try library.seek(handle.rawValue, offset, hole: whence == .hole)
      }
    }
  }

  func copyFileRange(
    from source: FileRange, to target: FileRange, length: Int, caller: RequestContext, reply: consuming WriteReply
  ) {
    let body = { @Sendable [self] () throws -> Int in
      // The kernel itself copies out of a version.
      guard Node(source.node).ino != nil, Node(target.node).ino != nil else { throw Errno.notSupported }
      // The reply counts in 32 bits.
      let count = Int64(min(length, 1 << 30))
      return Int(
        try library.copy(
          from: source.handle.rawValue, at: source.offset, to: target.handle.rawValue, at: target.offset,
          count: count))
    }
    answer(source.node, reply, body, Self.give)
  }
}

/// Handles of this mount's own: folders being listed and versions being read.
final class Listings: Sendable {
  /// A folder that Sheaf makes up, as it was when it was opened or rewound.
  struct Listing {
    let entries: [(name: FileName, entry: Entry)]
    /// Whether another account owns the nodes of the entries.
    let areForeign: Bool
    /// Whether somebody has begun to read it.
    fileprivate var isBegun = false

    init(_ entries: [(name: FileName, entry: Entry)], areForeign: Bool = false) {
      self.entries = entries
      self.areForeign = areForeign
    }
  }

  private struct State {
    var next: UInt64 = 1 << 63
    var readers: [FileHandle: VersionReader] = [:]
    var listings: [FileHandle: Listing] = [:]
  }

  private let state = Mutex(State())

  func add(_ reader: VersionReader) -> FileHandle {
    state.withLock { state in
      let handle = FileHandle(rawValue: state.next)
      state.next += 1
      state.readers[handle] = reader
      return handle
    }
  }

  func add(_ listing: Listing) -> FileHandle {
    state.withLock { state in
      let handle = FileHandle(rawValue: state.next)
      state.next += 1
      state.listings[handle] = listing
      return handle
    }
  }

  func reader(_ handle: FileHandle) -> VersionReader? {
    guard handle.rawValue >> 63 == 1 else { return nil }
    return state.withLock { $0.readers[handle] }
  }

  func listing(_ handle: FileHandle) -> Listing? {
    guard handle.rawValue >> 63 == 1 else { return nil }
    return state.withLock { $0.listings[handle] }
  }

  /// Whether a listing that is about to be read from its first entry was read before; notes that it is read.
  func beginsAgain(_ handle: FileHandle) -> Bool {
    guard handle.rawValue >> 63 == 1 else { return false }
    return state.withLock { state in
      let isBegun = state.listings[handle]?.isBegun ?? false
      state.listings[handle]?.isBegun = true
      return isBegun
    }
  }

  /// Gives a handle the folder's present entries.
  func renew(_ handle: FileHandle, _ listing: Listing) {
    state.withLock { state in
      guard state.listings[handle] != nil else { return }
      state.listings[handle] = listing
      state.listings[handle]?.isBegun = true
    }
  }

  /// Forgets a handle; false if it is not one of these.
  func remove(_ handle: FileHandle) -> Bool {
    guard handle.rawValue >> 63 == 1 else { return false }
    return state.withLock { state in
      state.readers[handle] = nil
      state.listings[handle] = nil
      return true
    }
  }
}
