import CFuse
import Glibc

/// Directory entries on their way to the kernel.
package struct DirectoryBuffer: ~Copyable {
  var storage: DirectoryStorage

  init(capacity: Int) {
    storage = DirectoryStorage(capacity: capacity)
  }

  /// Adds an entry, if it fits.
  ///
  /// - Parameters:
  ///   - node: the number that `d_ino` shows; this adds nothing to the node's lookup count.
  ///   - mode: only its type bits count.
  ///   - next: the cookie from which a later readdir goes on behind this entry: 1 to `Int64.max`.
  /// - Returns: false if the buffer is full: stop here.
  package mutating func add(_ name: FileName, node: NodeID, mode: UInt32, next: UInt64) -> Bool {
    var status = stat()
    status.st_ino = .init(node.rawValue)
    status.st_mode = mode
    return storage.add(name) { name, space in
      fuse_add_direntry(
        nil, space.baseAddress?.assumingMemoryBound(to: CChar.self), space.count, name, &status,
        off_t(Int64(bitPattern: next)))
    }
  }
}

/// Directory entries with attributes on their way to the kernel.
package struct DirectoryPlusBuffer: ~Copyable {
  var storage: DirectoryStorage

  init(capacity: Int) {
    storage = DirectoryStorage(capacity: capacity)
  }

  /// Adds an entry, if it fits.
  ///
  /// - Parameters:
  ///   - entry: the entry that a lookup of the name would give; this adds one to the node's lookup count. For `.` and
  ///     `..`, and for names whose attributes are not at hand, give ``NodeID/none`` as the node: the kernel then takes
  ///     only number and type from the attributes, and nothing is counted.
  ///   - next: the cookie from which a later readdirplus goes on behind this entry: 1 to `Int64.max`.
  /// - Returns: false if the buffer is full: stop here, and do not count the entry.
  package mutating func add(_ name: FileName, _ entry: Entry, next: UInt64) -> Bool {
    var parameters = entry.parameters
    return storage.add(name) { name, space in
      fuse_add_direntry_plus(
        nil, space.baseAddress?.assumingMemoryBound(to: CChar.self), space.count, name, &parameters,
        off_t(Int64(bitPattern: next)))
    }
  }
}

/// Memory that is filled from its start.
struct DirectoryStorage: ~Copyable {
  private let memory: UnsafeMutableRawBufferPointer
  private var used = 0

  init(capacity: Int) {
    memory = .allocate(byteCount: capacity, alignment: 8)
  }

  deinit {
    memory.deallocate()
  }

  var filled: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<used]) }

  /// Calls one of libfuse's `fuse_add_direntry…` functions, which return the size that they need and write if it fits.
  mutating func add(
    _ name: FileName, _ write: (UnsafePointer<CChar>, UnsafeMutableRawBufferPointer) -> Int
  ) -> Bool {
    let space = UnsafeMutableRawBufferPointer(rebasing: memory[used...])
    let needed = name.withCString { write($0, space) }
    guard needed <= space.count else { return false }
    used += needed
    return true
  }
}
