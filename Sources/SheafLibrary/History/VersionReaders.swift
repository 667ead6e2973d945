import SheafStore

/// Versions that someone reads, whose chunks outlast them.
struct VersionReaders {
  private struct Weak {
    weak var reader: VersionReader?
  }

  private var readers: [ObjectIdentifier: Weak] = [:]

  /// Those that someone still has.
  var all: [VersionReader] { readers.values.compactMap(\.reader) }

  /// Adds a reader, for as long as someone has it.
  mutating func insert(_ reader: VersionReader) -> VersionReader {
    if readers.count % 64 == 63 { readers = readers.filter { $0.value.reader != nil } }
    readers[ObjectIdentifier(reader)] = Weak(reader: reader)
    return reader
  }
}

/// A version that someone reads.
// Sendable: `copy` is touched only by functions of `Library` that hold the lock, and by the initialiser.
package final class VersionReader: @unchecked Sendable {
  var copy: WorkingCopy
  /// Bytes of the contents.
  package let size: Int64
  /// The document, the version and the account that reads, where another account owns it.
  let access: (item: Int64, number: Int64, caller: Caller)?

  init(_ content: StoredContent, access: (item: Int64, number: Int64, caller: Caller)?) {
    copy = WorkingCopy(content)
    size = content.length
    self.access = access
  }
}
