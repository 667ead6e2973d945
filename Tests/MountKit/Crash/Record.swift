import ConformanceKit
import Foundation
import Glibc

/// A line of the record that is kept outside of the mount: an action that began, or the result of one.
public struct RecordLine: Codable, Sendable {
  /// Set if the line tells the beginning.
  public var begun: Action?
  /// The errno of the action that began last; 0 for success.
  public var returned: Int32?
  /// Seconds since 1970.
  public var time: Double
}

/// An action as the record tells it.
public struct RecordedAction: Sendable, CustomStringConvertible {
  public var action: Action
  public var begun: Double
  /// Nil if it had not returned when the record ended.
  public var returned: Int32?
  public var ended: Double?

  public var description: String {
    let seconds = begun.truncatingRemainder(dividingBy: 1000)
    return "\(action) at \((seconds * 1000).rounded() / 1000): \(returned.map { Errno.name($0) } ?? "under way")"
  }
}

/// Errnos of a mount whose process or disk is gone.
public let deadMount: Set<Int32> = [ENOTCONN, ECONNABORTED, ECONNREFUSED, ENODEV, ESHUTDOWN]

/// Does actions one after the other and records each, before and after, until they are done or the mount is dead.
public func performActions(_ actions: some Sequence<Action>, in folder: String, record: String) throws {
  let file = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
  guard file >= 0 else { throw Errno(errno, "open \(record)") }
  defer { close(file) }
  let encoder = JSONEncoder()
  func write(_ line: RecordLine) throws {
    let bytes = Array(try encoder.encode(line)) + [UInt8(ascii: "\n")]
    guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw Errno(errno, "write \(record)") }
  }
  for action in actions {
    try write(RecordLine(begun: action, returned: nil, time: Date().timeIntervalSince1970))
    var code: Int32 = 0
    do throws(Errno) { try action.perform(in: folder) } catch { code = error.code }
    guard !deadMount.contains(code) else { return }
    try write(RecordLine(begun: nil, returned: code, time: Date().timeIntervalSince1970))
  }
}

/// Reads a record; a torn last line is left out.
public func readRecord(_ path: String) throws -> [RecordedAction] {
  guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
  var actions: [RecordedAction] = []
  let decoder = JSONDecoder()
  for line in text.split(separator: "\n") {
    guard let line = try? decoder.decode(RecordLine.self, from: Data(line.utf8)) else { break }
    if let action = line.begun {
      actions.append(RecordedAction(action: action, begun: line.time, returned: nil, ended: nil))
    } else if !actions.isEmpty {
      actions[actions.count - 1].returned = line.returned
      actions[actions.count - 1].ended = line.time
    }
  }
  return actions
}
