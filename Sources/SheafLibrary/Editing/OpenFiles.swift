/// The open files, each under a handle of its own.
struct OpenFiles {
  private var files: [UInt64: OpenFile] = [:]
  private var nextHandle: UInt64 = 1

  subscript(handle: UInt64) -> OpenFile? { files[handle] }

  var all: some Collection<OpenFile> { files.values }

  /// Adds a file; returns its handle.
  mutating func insert(_ file: OpenFile) -> UInt64 {
    let handle = nextHandle
    nextHandle += 1
    files[handle] = file
    return handle
  }

  @discardableResult
  mutating func remove(_ handle: UInt64) -> OpenFile? { files.removeValue(forKey: handle) }

  /// The handles of what was opened by a door.
  func handles(of door: Int) -> [UInt64] { files.filter { $0.value.door == door }.map(\.key) }
}
