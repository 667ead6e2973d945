import Foundation
package import SheafModel

/// The header `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
package enum RetryAfter {
  /// The longest wait that an endpoint can ask for, in seconds.
  private static let limit = 86_400.0

  /// Seconds to wait from `now` on; nil for a value that makes no sense.
  package static func seconds(_ text: String, at now: Timestamp) -> Double? {
    let trimmed = text.trimmingCharacters(in: .whitespaces)
    if let seconds = UInt32(trimmed) { return min(Double(seconds), limit) }
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    guard let date = format.date(from: trimmed) else { return nil }
    return min(max(0, date.timeIntervalSince1970 - Double(now.seconds)), limit)
  }
}
