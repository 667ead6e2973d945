import Glibc
import SheafModel

/// Facts as people read them.
enum Format {
  /// `812 bytes`, `3.4 kB`, `12 MB`: powers of a thousand, as file managers show them.
  static func size(_ bytes: Int64) -> String {
    if bytes < 1000 { return bytes == 1 ? "1 byte" : "\(bytes) bytes" }
    var value = Double(bytes)
    var unit = ""
    for next in ["kB", "MB", "GB", "TB", "PB", "EB"] where value >= 999.5 || unit.isEmpty {
      value /= 1000
      unit = next
    }
    let tenths = Int((value * 10).rounded())
    return tenths < 100 ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(Int(value.rounded())) \(unit)"
  }

  /// `90 seconds`, `36 hours`, `7 days`, `2 years`, in the largest unit that it is a whole number of.
  static func span(_ seconds: Int64) -> String {
    for (unit, length) in [("year", Int64(365 * 86_400)), ("day", 86_400), ("hour", 3600), ("minute", 60)]
    where seconds >= length && seconds % length == 0 {
      return count(Int(seconds / length), unit)
    }
    return count(Int(seconds), "second")
  }

  /// Local time to the second: `2026-11-21 10:32:05`.
  static func time(_ time: Timestamp) -> String {
    var seconds = time_t(time.seconds)
    var parts = tm()
    guard localtime_r(&seconds, &parts) != nil else { return time.secondsText }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      let length = strftime(buffer.baseAddress, buffer.count, "%Y-%m-%d %H:%M:%S", &parts)
      return String(decoding: buffer[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }

  /// A time that a hub told (RFC 3339), as people here read it.
  static func time(ofHub text: String) -> String { Timestamp(rfc3339: text).map(time) ?? text.printable }

  /// `The link lets nobody new in after 2026-11-21 10:32:05`, or the same of a time that is over.
  static func linkEnd(_ end: Timestamp) -> String {
    end > .now ? "The link lets nobody new in after \(time(end))" : "The link has let nobody new in since \(time(end))"
  }

  /// `bob@example.com`, `bob@example.com and 2 others`.
  static func people(_ handles: [AccountHandle]) -> String {
    guard handles.count > 3 else { return list(handles.map(\.description)) }
    return list(handles.prefix(2).map(\.description) + [count(handles.count - 2, "other")])
  }

  /// `a`, `a and b`, `a, b and c`.
  static func list(_ words: [String]) -> String {
    guard let last = words.last, words.count > 1 else { return words.first ?? "" }
    return words.dropLast().joined(separator: ", ") + " and " + last
  }

  /// `Documents/notes.md`. Where commands do not take the path as it is printed, since it has control characters or
  /// bytes that are no UTF-8, the item's id follows, which they do take: `id:01a1fe1d-…`.
  static func path(_ path: String, id: String) -> String {
    let shown = path.escapingControls
    return shown == path && !path.unicodeScalars.contains("\u{FFFD}") ? path : "\(shown)  id:\(id)"
  }

  /// `1 document`, `2 documents`.
  static func count(_ count: Int, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }
}
