import Foundation
import Glibc
import NIOCore
import SheafClient
import SheafModel
import SheafWire

@testable import Fuse
@testable import SheafCommand
@testable import SheafHubClient
@testable import SheafSidecar

extension Decoder {
  /// What the kernel sends, as far as it is ours to take apart: names, attributes, locks; and what it gets.
  static let requests = Decoder(name: "requests") { bytes in
    var input = Input(bytes)
    var lock = Glibc.flock()
    lock.l_type = Int16(input.byte() % 4)
    lock.l_start = off_t(input.number())
    lock.l_len = off_t(input.number())
    let range = FileLock(lock).range
    try expect(range.lowerBound >= 0 && FileLock(FileLock(lock).flock).range == range, "a lock is another one")
    var status = stat()
    withUnsafeMutableBytes(of: &status) { status in for index in status.indices { status[index] = input.byte() } }
    let valid = Int32(truncatingIfNeeded: input.number())
    let attributes = SetAttributes(status, valid: valid, handle: nil)
    try expect((attributes.size == nil) == (valid & 8 == 0), "a size that nobody sets")
    let name = FileName(input.piece())
    try expect(!name.bytes.contains(0), "a name with a NUL")
    try expect(!name.description.unicodeScalars.contains { $0.value < 32 }, "a control character is printed")
    let capacity = Int(input.byte()) * 8
    var buffer = DirectoryBuffer(capacity: capacity)
    while !input.isAtEnd {
      let entry = FileName(input.piece())
      let fits = buffer.add(
        entry, node: NodeID(rawValue: UInt64(bitPattern: input.number())), mode: UInt32(input.byte()) << 9, next: 1)
      try expect(buffer.storage.filled.count <= capacity, "\(buffer.storage.filled.count) of \(capacity) bytes")
      if !fits { break }
    }
  }

  /// Lines of a stream of events, whatever the pieces in which they come.
  static let stream = Decoder(name: "stream") { bytes in
    var input = Input(bytes)
    var buffer = LineBuffer()
    var (lines, given): ([[UInt8]], [UInt8]) = ([], [])
    while !input.isAtEnd {
      let piece = input.piece()
      given += piece
      buffer.append(ByteBuffer(bytes: piece))
      while let line = buffer.next() { lines.append(Array(line.readableBytesView)) }
    }
    let parts = given.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
    try expect(lines == Array(parts.dropLast()), "lines are others")
  }

  /// A sidecar's file.
  static let configuration = Decoder(name: "configuration") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    // No file of this machine is part of a trial.
    guard !text.contains("secret-file") else { return }
    // The parser ends the process on some of what is not ASCII; the file is its reader's own.
    guard text.utf8.allSatisfy({ $0 < 128 }) else { return }
    let folder = URL(fileURLWithPath: "/nonexistent")
    let read = try attempt(allowing: [.invalid, .notFound]) {
      try ConfigurationFile.parse(text, named: "file", folder: folder)
    }
    for sink in read?.sinks ?? [] {
      try expect(sink.problem == nil, "a sink that makes no sense")
      let (now, long) = (Timestamp(nanoseconds: .max), Timestamp(nanoseconds: .min))
      _ = sink.schedule.gives(up: long, failingSince: long, at: now)
      _ = sink.schedule.gives(up: now, failingSince: now, at: long)
    }
  }

  /// What a hub says to its devices: a stream in pieces, a page of events, a link.
  static let hubAnswers = Decoder(name: "hub-answers") { bytes in
    var input = Input(bytes)
    var pieces: [ByteBuffer] = []
    while !input.isAtEnd { pieces.append(ByteBuffer(bytes: input.piece())) }
    func messages(_ pieces: [ByteBuffer]) -> [ServerSentText.Message?] {
      var text = ServerSentText(longest: 64)
      var found: [ServerSentText.Message?] = []
      for piece in pieces {
        text.append(piece)
        do {
          while let message = try text.next() { found.append(message) }
        } catch {
          return found + [nil]
        }
      }
      return found
    }
    let whole = ByteBuffer(bytes: pieces.flatMap { Array($0.readableBytesView) })
    try expect(messages(pieces) == messages([whole]), "messages depend on their pieces")
    let shape = JSONShape(of: bytes)
    if shape.depth <= JSONShape.deepest, shape.number <= JSONShape.longestNumber,
      let page = try? JSONDecoder().decode(LogPage<Event>.self, from: Data(bytes)), page.isSound(after: 0, limit: 100)
    {
      for event in page.events {
        let words = [event.id, event.subject, event.source].joined()
        try expect(words.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "an id that is no word")
        try expect((1...page.next).contains(event.sequence), "an event behind its page")
      }
    }
    let text = String(decoding: bytes, as: UTF8.self)
    if let link = try attempt({ try Enrolment(text) }) {
      try expect(text.hasPrefix("\(link.hub)/enrol/\(link.code)"), "a link is another one")
      try expect(link.hub.isSecure || link.hub.address.isLoopback, "a link lets everybody read along")
    }
  }

  /// Contents of several versions, as a hub answers them: the boundary's `Content-Type`, and the parts in pieces.
  static let hubContents = Decoder(name: "hub-contents") { bytes in
    var input = Input(bytes)
    let boundary = MultipartReader.boundary(of: String(decoding: input.piece(), as: UTF8.self))
    if let boundary {
      try expect(
        (1...70).contains(boundary.utf8.count) && boundary.utf8.allSatisfy { (0x20...0x7E).contains($0) },
        "a boundary that is none")
    }
    var pieces: [ByteBuffer] = []
    while !input.isAtEnd { pieces.append(ByteBuffer(bytes: input.piece())) }
    /// What is read: each head and each end, and between them all bytes of the part; nil for what is refused.
    func elements(_ pieces: [ByteBuffer]) throws -> (found: [MultipartReader.Element?], isAtEnd: Bool) {
      var reader = MultipartReader(boundary: boundary ?? "b")
      var (found, rest): ([MultipartReader.Element?], Int64) = ([], 0)
      for piece in pieces {
        reader.append(piece)
        do {
          while let element = try reader.next() {
            switch element {
            case .head(let head): rest = head.length
            case .bytes(let some):
              try expect(some.readableBytes > 0, "bytes that are none")
              rest -= Int64(some.readableBytes)
              if case .bytes(var whole)?? = found.last {
                whole.writeImmutableBuffer(some)
                found[found.count - 1] = .bytes(whole)
                continue
              }
            case .endOfPart: try expect(rest == 0, "a part of another length than it says")
            }
            try expect(rest >= 0, "a part that is longer than it says")
            found.append(element)
          }
        } catch is MultipartReader.Malformed {
          return (found + [nil], false)
        }
      }
      return (found, reader.isAtEnd)
    }
    let whole = ByteBuffer(bytes: pieces.flatMap { Array($0.readableBytesView) })
    try expect(try elements(pieces) == elements([whole]), "parts depend on their pieces")
  }

  /// What stands behind `-o`.
  static let mountOptions = Decoder(name: "mount-options") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    guard let options = try attempt({ try MountOptions(parsing: [text]) }) else { return }
    try expect(
      !options.forwarded.contains { $0.contains(",") || $0.contains("=") && $0 != "xattrs=named" }, "an option of two")
  }

  /// `/proc/self/mountinfo`, in which other users' paths stand.
  static let mountTables = Decoder(name: "mount-tables") { bytes in
    let table = MountTable(parsing: bytes)
    try expect(table.entries.count <= bytes.count / 8, "more mounts than lines")
    for entry in table.entries {
      _ = table.entry(containing: entry.mountpoint)
      try expect(table.mountpoints(sharing: entry).contains(entry.mountpoint), "a mount without itself")
    }
  }
}
