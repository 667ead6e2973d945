import ConformanceKit
import Foundation
import Glibc

/// A line of the record that is kept outside of the mount: a deed that began, or the result of one.
public struct RecordLine: Codable, Sendable {
  /// Set if the line tells the beginning.
  public var begun: Deed?
  /// The errno of the deed that began last; 0 for success.
  public var returned: Int32?
  /// Seconds since 1970.
  public var time: Double
}

/// A deed as the record tells it.
public struct RecordedDeed: Sendable, CustomStringConvertible {
  public var deed: Deed
  public var begun: Double
  /// Nil if it had not returned when the record ended.
  public var returned: Int32?
  public var ended: Double?

  public var description: String {
    let seconds = begun.truncatingRemainder(dividingBy: 1000)
    return "\(deed) at \((seconds * 1000).rounded() / 1000): \(returned.map { Errno.name($0) } ?? "under way")"
  }
}

/// Errnos of a mount whose process or disk is gone.
public let deadMount: Set<Int32> = [ENOTCONN, ECONNABORTED, ECONNREFUSED, ENODEV, ESHUTDOWN]

/// Does deeds one after the other and records each, before and after, until they are done or the mount is dead.
public func performDeeds(_ deeds: some Sequence<Deed>, in folder: String, record: String) throws {
  let file = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
  guard file >= 0 else { throw Errno(errno, "open \(record)") }
  defer { close(file) }
  let encoder = JSONEncoder()
  func write(_ line: RecordLine) throws {
    let bytes = Array(try encoder.encode(line)) + [UInt8(ascii: "\n")]
    guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw Errno(errno, "write \(record)") }
  }
  for deed in deeds {
    try write(RecordLine(begun: deed, returned: nil, time: Date().timeIntervalSince1970))
    var code: Int32 = 0
    do throws(Errno) { try deed.perform(in: folder) } catch { code = error.code }
    guard !deadMount.contains(code) else { return }
    try write(RecordLine(begun: nil, returned: code, time: Date().timeIntervalSince1970))
  }
}

/// Reads a record; a torn last line is left out.
public func readRecord(_ path: String) throws -> [RecordedDeed] {
  guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
  var deeds: [RecordedDeed] = []
  let decoder = JSONDecoder()
  for line in text.split(separator: "\n") {
    guard let line = try? decoder.decode(RecordLine.self, from: Data(line.utf8)) else { break }
    if let deed = line.begun {
      deeds.append(RecordedDeed(deed: deed, begun: line.time, returned: nil, ended: nil))
    } else if !deeds.isEmpty {
      deeds[deeds.count - 1].returned = line.returned
      deeds[deeds.count - 1].ended = line.time
    }
  }
  return deeds
}
